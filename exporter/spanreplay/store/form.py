"""Spans and logs as JSON objects: what a journal line holds, and what the database keeps in pieces.

A key is absent where the value is the default of the record, so that lines stay short. Attribute values are in the form of
:mod:`spanreplay.store.encoding`.
"""

from collections.abc import Mapping
from typing import Final

from spanreplay.spans.record import EventRecord, LinkRecord, LogRecord, Resource, Scope, SpanRecord, Value
from spanreplay.store.encoding import (
    Content,
    Json,
    Keep,
    MissingContentError,
    WrittenMap,
    decode_map,
    decode_text,
    decode_value,
    encode_map,
    encode_text,
    encode_value,
    map_pairs,
    to_sorted_json,
)
from spanreplay.store.late import Joined, LateAttributes

TRACE: Final = "trace"
SPAN: Final = "span"
PARENT: Final = "parent"
NAME: Final = "name"
KIND: Final = "kind"
START: Final = "start"
END: Final = "end"
STATUS: Final = "status"
MESSAGE: Final = "message"
ATTRIBUTES: Final = "attrs"
EVENTS: Final = "events"
LINKS: Final = "links"
RESOURCE: Final = "resource"
"""Digest of the resource's text, see :func:`resource_text`."""
SCOPE: Final = "scope"
STATE: Final = "state"
FLAGS: Final = "flags"
DROPPED: Final = "dropped"
"""Of a span: ``[attributes, events, links]``; elsewhere one number."""
TIME: Final = "time"
OBSERVED: Final = "observed"
EVENT: Final = "event"
SEVERITY: Final = "severity"
SEVERITY_TEXT: Final = "severity_text"
BODY: Final = "body"
VERSION: Final = "version"
SCHEMA_URL: Final = "schema_url"

Form = dict[str, Json]


def resource_form(resource: Resource, keep: Keep) -> Form:
    """A resource as a JSON object."""
    return _origin_form("", "", resource.attributes, resource.schema_url, resource.dropped_attributes, keep)


def resource_text(form: Form) -> str:
    """The text whose digest names a resource: sorted, so that the order of attributes makes no difference."""
    return to_sorted_json(form)


def scope_form(scope: Scope, keep: Keep) -> Form:
    """An instrumentation scope as a JSON object."""
    return _origin_form(scope.name, scope.version, scope.attributes, scope.schema_url, scope.dropped_attributes, keep)


def _origin_form(name: str, version: str, attributes: Mapping[str, Json], schema_url: str, dropped: int, keep: Keep) -> Form:
    form: Form = {}
    if name:
        form[NAME] = encode_text(name, keep)
    if version:
        form[VERSION] = encode_text(version, keep)
    if attributes:
        form[ATTRIBUTES] = encode_map(attributes, keep)
    if schema_url:
        form[SCHEMA_URL] = encode_text(schema_url, keep)
    if dropped:
        form[DROPPED] = dropped
    return form


def event_form(event: EventRecord, keep: Keep) -> Form:
    """A span event as a JSON object."""
    form: Form = {NAME: encode_text(event.name, keep), TIME: event.time_ns}
    if event.attributes:
        form[ATTRIBUTES] = encode_map(event.attributes, keep)
    if event.dropped_attributes:
        form[DROPPED] = event.dropped_attributes
    return form


def link_form(link: LinkRecord, keep: Keep) -> Form:
    """A span link as a JSON object."""
    form: Form = {TRACE: link.trace_id, SPAN: link.span_id}
    if link.trace_state:
        form[STATE] = encode_text(link.trace_state, keep)
    if link.flags:
        form[FLAGS] = link.flags
    if link.attributes:
        form[ATTRIBUTES] = encode_map(link.attributes, keep)
    if link.dropped_attributes:
        form[DROPPED] = link.dropped_attributes
    return form


def span_form(span: SpanRecord, resource: str | None, scope: Form, keep: Keep, attributes: Json = None) -> Form:
    """A span as a JSON object.

    Args:
        span: the span.
        resource: digest of its resource, ``None`` for the empty one.
        scope: its scope as a JSON object.
        keep: gets the long content.
        attributes: the attributes, if they are encoded already.
    """
    form: Form = {TRACE: span.trace_id, SPAN: span.span_id}
    if span.parent_span_id is not None:
        form[PARENT] = span.parent_span_id
    form[NAME] = span.name if span.name.isascii() else encode_text(span.name, keep)
    form[START] = span.start_ns
    if attributes is None:
        attributes = encode_map(span.attributes, keep)
    if attributes:
        form[ATTRIBUTES] = attributes
    if resource is not None:
        form[RESOURCE] = resource
    if scope:
        form[SCOPE] = scope
    if span.kind:
        form[KIND] = span.kind
    if span.end_ns is not None:
        form[END] = span.end_ns
        _add_end(form, span, keep)
    elif span.status or span.status_message or span.events:
        _add_end(form, span, keep)
    if span.links:
        form[LINKS] = [link_form(link, keep) for link in span.links]
    if span.trace_state:
        form[STATE] = encode_text(span.trace_state, keep)
    if span.flags:
        form[FLAGS] = span.flags
    if span.dropped_attributes or span.dropped_events or span.dropped_links:
        form[DROPPED] = [span.dropped_attributes, span.dropped_events, span.dropped_links]
    return form


def _add_end(form: Form, span: SpanRecord, keep: Keep) -> None:
    """What a span has only rarely while it is open."""
    if span.status:
        form[STATUS] = span.status
    if span.status_message:
        form[MESSAGE] = encode_text(span.status_message, keep)
    if span.events:
        form[EVENTS] = [event_form(event, keep) for event in span.events]


def log_form(log: LogRecord, resource: str | None, scope: Form, keep: Keep, attributes: Json = None) -> Form:
    """A log record as a JSON object; the arguments are those of :func:`span_form`."""
    form: Form = {TIME: log.time_ns}
    if log.observed_ns:
        form[OBSERVED] = log.observed_ns
    if log.trace_id is not None:
        form[TRACE] = log.trace_id
    if log.span_id is not None:
        form[SPAN] = log.span_id
    if log.event_name:
        form[EVENT] = encode_text(log.event_name, keep)
    if log.severity:
        form[SEVERITY] = log.severity
    if log.severity_text:
        form[SEVERITY_TEXT] = encode_text(log.severity_text, keep)
    if log.body is not None:
        form[BODY] = encode_value(log.body, keep)
    if attributes is None:
        attributes = encode_map(log.attributes, keep)
    if attributes:
        form[ATTRIBUTES] = attributes
    if resource is not None:
        form[RESOURCE] = resource
    if scope:
        form[SCOPE] = scope
    if log.flags:
        form[FLAGS] = log.flags
    if log.dropped_attributes:
        form[DROPPED] = log.dropped_attributes
    return form


def check_form(form: Form) -> None:
    """Refuses a record that no row can be made of, so that it cannot spoil the ones beside it.

    Raises:
        ValueError: a field has another type than the formats of this module have.
    """
    for key, value in form.items():
        kinds = _FIELD_TYPES.get(key)
        if kinds is not None and type(value) not in kinds:
            raise ValueError(f"{key} is {value!r}")
    for key in (EVENTS, LINKS):
        if key not in form:
            continue
        for item in form[key]:
            if type(item) is not dict or type(item.get(TIME, 0)) is not int:
                raise ValueError(f"{key} holds {item!r}")


_FIELD_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    PARENT: (str,),
    NAME: (str, dict),
    KIND: (int,),
    START: (int,),
    END: (int,),
    STATUS: (int,),
    MESSAGE: (str, dict),
    ATTRIBUTES: (dict, WrittenMap),
    EVENTS: (list,),
    LINKS: (list,),
    RESOURCE: (str,),
    SCOPE: (dict,),
    STATE: (str, dict),
    FLAGS: (int,),
    TIME: (int,),
    OBSERVED: (int,),
    EVENT: (str, dict),
    SEVERITY: (int,),
    SEVERITY_TEXT: (str, dict),
}


_NO_RESOURCE: Final = Resource()


class FormReader:
    """Turns forms back into records.

    Args:
        content: bytes of everything the forms refer to, by digest.
        resources: resources by digest.
    """

    def __init__(self, content: Mapping[str, Content], resources: Mapping[str, Resource]) -> None:
        self._content = content
        self._late = {digest: found for digest, found in content.items() if isinstance(found, Joined)}
        self._resources = resources
        self._scopes: dict[tuple[str, str], Scope] = {}
        """Those that say nothing but a name and a version, by these: most spans have one of a few."""

    def _text(self, form: Form, key: str) -> str:
        value = form.get(key, "")
        if isinstance(value, str):
            return value
        try:
            return decode_text(value, self._content)
        except MissingContentError:
            return ""

    def _counted(self, form: Form, dropped: int) -> tuple[Mapping[str, Value], int]:
        """The attributes, and how many are not there: a value whose content was lost counts as dropped."""
        value = form.get(ATTRIBUTES)
        if not value:
            return {}, dropped
        late = self._late_of(value) if self._late else {}
        found, dropped = self._decoded({**value, **late} if late else value, dropped)
        return LateAttributes({**found}) if late else found, dropped

    def _late_of(self, value: Json) -> dict[str, Joined]:
        found = ((key, self._late.get(item["$blob"])) for key, item in value.items() if type(item) is dict and "$blob" in item)
        return {key: text for key, text in found if text is not None}

    def _decoded(self, value: Json, dropped: int) -> tuple[dict[str, Value], int]:
        try:
            return decode_map(value, self._content), dropped
        except MissingContentError:
            pass
        kept: dict[str, Value] = {}
        for key, item in map_pairs(value):
            try:
                kept[decode_text(key, self._content)] = decode_value(item, self._content)
            except MissingContentError:
                dropped += 1
        return kept, dropped

    def resource(self, form: Form) -> Resource:
        """The reverse of :func:`resource_form`."""
        attributes, dropped = self._counted(form, form.get(DROPPED, 0))
        return Resource(attributes=attributes, schema_url=self._text(form, SCHEMA_URL), dropped_attributes=dropped)

    def scope(self, form: Form) -> Scope:
        """The reverse of :func:`scope_form`."""
        name, version = form.get(NAME, ""), form.get(VERSION, "")
        if len(form) == (NAME in form) + (VERSION in form) and type(name) is str and type(version) is str:
            known = self._scopes.get((name, version))
            if known is None:
                known = self._scopes[name, version] = Scope(name=name, version=version)
            return known
        attributes, dropped = self._counted(form, form.get(DROPPED, 0))
        return Scope(
            name=self._text(form, NAME),
            version=self._text(form, VERSION),
            attributes=attributes,
            schema_url=self._text(form, SCHEMA_URL),
            dropped_attributes=dropped,
        )

    def _event(self, form: Form) -> EventRecord:
        attributes, dropped = self._counted(form, form.get(DROPPED, 0))
        return EventRecord(name=self._text(form, NAME), time_ns=form[TIME], attributes=attributes, dropped_attributes=dropped)

    def _link(self, form: Form) -> LinkRecord:
        attributes, dropped = self._counted(form, form.get(DROPPED, 0))
        return LinkRecord(
            trace_id=form[TRACE],
            span_id=form[SPAN],
            trace_state=self._text(form, STATE),
            flags=form.get(FLAGS, 0),
            attributes=attributes,
            dropped_attributes=dropped,
        )

    def span(self, form: Form) -> SpanRecord:
        """The reverse of :func:`span_form`."""
        dropped = form.get(DROPPED) or (0, 0, 0)
        attributes, dropped_attributes = self._counted(form, dropped[0])
        return SpanRecord(
            trace_id=form[TRACE],
            span_id=form[SPAN],
            parent_span_id=form.get(PARENT),
            name=self._text(form, NAME),
            kind=form.get(KIND, 0),
            start_ns=form.get(START, 0),
            end_ns=form.get(END),
            status=form.get(STATUS, 0),
            status_message=self._text(form, MESSAGE),
            attributes=attributes,
            events=tuple(self._event(event) for event in form.get(EVENTS, ())),
            links=tuple(self._link(link) for link in form.get(LINKS, ())),
            resource=self._resources[form[RESOURCE]] if RESOURCE in form else _NO_RESOURCE,
            scope=self.scope(form.get(SCOPE, {})),
            trace_state=self._text(form, STATE),
            flags=form.get(FLAGS, 0),
            dropped_attributes=dropped_attributes,
            dropped_events=dropped[1],
            dropped_links=dropped[2],
        )

    def log(self, form: Form) -> LogRecord:
        """The reverse of :func:`log_form`."""
        attributes, dropped = self._counted(form, form.get(DROPPED, 0))
        try:
            body = decode_value(form.get(BODY), self._content)
        except MissingContentError:
            body, dropped = None, dropped + 1
        return LogRecord(
            time_ns=form[TIME],
            observed_ns=form.get(OBSERVED, 0),
            trace_id=form.get(TRACE),
            span_id=form.get(SPAN),
            event_name=self._text(form, EVENT),
            severity=form.get(SEVERITY, 0),
            severity_text=self._text(form, SEVERITY_TEXT),
            body=body,
            attributes=attributes,
            resource=self._resources[form[RESOURCE]] if RESOURCE in form else _NO_RESOURCE,
            scope=self.scope(form.get(SCOPE, {})),
            flags=form.get(FLAGS, 0),
            dropped_attributes=dropped,
        )
