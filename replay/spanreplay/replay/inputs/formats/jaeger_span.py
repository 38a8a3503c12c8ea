"""One span of Jaeger's JSON, read back into what OpenTelemetry gave to Jaeger.

How it came to be: :mod:`spanreplay.replay.inputs.formats.jaeger_names`; this undoes it as far as it can be undone.
"""

import re
from typing import Any, Final, NamedTuple

from spanreplay.replay.inputs.formats.jaeger_losses import Losses
from spanreplay.replay.inputs.formats.jaeger_names import (
    CHILD_OF,
    DROPPED_ATTRIBUTES,
    DROPPED_EVENTS,
    DROPPED_LINKS,
    ERROR,
    EVENT,
    FOLLOWS_FROM,
    KINDS,
    NOT_ENDED,
    REF_TYPE,
    SAMPLED,
    SCOPE_NAMES,
    SCOPE_VERSIONS,
    SPAN_KIND,
    STATUS_CODE,
    STATUS_DESCRIPTION,
    TRACE_STATE,
)
from spanreplay.replay.inputs.formats.jaeger_tags import Tags, as_attributes, read_tags, take
from spanreplay.replay.reading.fields import whole
from spanreplay.spans._anyvalue import Fault, as_object, as_text, prefix_faults, read_int
from spanreplay.spans._fields import MAX_TIME, MAX_UINT32, SPAN_ID_BYTES, TRACE_ID_BYTES, hex_id, required_id
from spanreplay.spans.errors import EVENT_DROPPED, LINK_DROPPED, FormatError, describe, join
from spanreplay.spans.record import (
    KIND_UNSPECIFIED,
    STATUS_ERROR,
    STATUS_OK,
    STATUS_UNSET,
    EventRecord,
    LinkRecord,
    Resource,
    Scope,
    SpanRecord,
    Value,
)

_HEX: Final = re.compile(r"[0-9a-fA-F]{1,32}", re.ASCII)
_OF_JAEGER: Final = "@jaeger@"
_SPAN_FORMAT: Final = "internal.span.format"
_MICRO: Final = 1000
_WRAPPED: Final = 1 << 63


class _Reference(NamedTuple):
    kind: str
    trace_id: str
    span_id: str


def read_span(raw: dict[str, Any], resource: Resource, faults: list[Fault], losses: Losses, *, texts: bool = False) -> SpanRecord:
    """Reads one span.

    Args:
        raw: The span.
        resource: Of its process.
        faults: Receives what was malformed and left out or altered, with paths from the span.
        losses: Receives what the form has lost of it.
        texts: Whether it is in the Elasticsearch form.

    Raises:
        FormatError: An id or a time cannot be read; ``where`` is the field.
    """
    trace_id = required_id(padded(raw.get("traceID"), TRACE_ID_BYTES), TRACE_ID_BYTES, "traceID")
    span_id = required_id(padded(raw.get("spanID"), SPAN_ID_BYTES), SPAN_ID_BYTES, "spanID")
    start = _start(raw, faults)
    warnings = [text for text in _list(raw, "warnings") if isinstance(text, str)]
    end = None if NOT_ENDED in warnings else _end(start, raw.get("duration"), faults)
    tags = read_tags(raw, "tags", faults, texts=texts)
    losses.tags([key for key, _ in tags])
    own = [tag for tag in tags if not tag[0].startswith(_OF_JAEGER) and tag[0] != _SPAN_FORMAT]
    losses.of("backend-attributes", len(own) != len(tags))
    status, message = _status(own)
    scope = Scope(name=_first_text(own, SCOPE_NAMES), version=_first_text(own, SCOPE_VERSIONS))
    kind = take(own, SPAN_KIND, lambda value: isinstance(value, str) and value in KINDS, last=True)
    trace_state = take(own, TRACE_STATE, _is_text, last=True)
    parent, links = _relations(raw, trace_id, span_id, faults, losses)
    events = _events(raw, faults, losses, texts)
    dropped_attributes, dropped_events, dropped_links = (_count(own, name) for name in (DROPPED_ATTRIBUTES, DROPPED_EVENTS, DROPPED_LINKS))
    attributes = as_attributes(own, "tags", faults)
    losses.of("values-flattened", any(_looks_flattened(value) for value in attributes.values()))
    losses.of("scope-attributes-lost", bool(scope.name))
    for text in warnings:
        if text != NOT_ENDED:
            losses.warned(text)
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=parent,
        name=as_text(raw.get("operationName"), "operationName"),
        kind=KINDS[kind] if isinstance(kind, str) else KIND_UNSPECIFIED,
        start_ns=start * _MICRO,
        end_ns=None if end is None else end * _MICRO,
        status=status,
        status_message=message,
        attributes=attributes,
        events=events,
        links=links,
        resource=resource,
        scope=scope,
        trace_state=trace_state if isinstance(trace_state, str) else "",
        flags=_flags(raw),
        dropped_attributes=dropped_attributes,
        dropped_events=dropped_events,
        dropped_links=dropped_links,
    )


def padded(raw: Any, size: int) -> Any:
    """An id with the leading zeros that Jaeger leaves out: all of them before version 1.24, half a trace id of zeros still."""
    if isinstance(raw, str) and _HEX.fullmatch(raw):
        return raw.rjust(2 * size, "0")
    return raw


def _start(raw: dict[str, Any], faults: list[Fault]) -> int:
    micros = raw.get("startTime")
    if micros is None:
        raise FormatError("startTime", "microseconds since 1970", "nothing")
    try:
        start = read_int(micros, faults, "microseconds since 1970")
    except FormatError as error:
        raise error.within("startTime") from None
    if not 0 <= start <= MAX_TIME // _MICRO:
        raise FormatError("startTime", "microseconds since 1970", describe(micros))
    return start


def _end(start: int, raw: Any, faults: list[Fault]) -> int | None:
    """Start and duration; Jaeger makes an unsigned number of the negative duration of a span without an end."""
    if raw is None:
        return None
    try:
        duration = read_int(raw, faults, "microseconds")
    except FormatError as error:
        raise error.within("duration") from None
    end = start + (duration - 2 * _WRAPPED if duration >= _WRAPPED else duration)
    if end > MAX_TIME // _MICRO:
        raise FormatError("duration", "microseconds", describe(raw))
    return end if end > 0 else None


def _flags(raw: dict[str, Any]) -> int:
    flags = raw.get("flags")
    return flags & SAMPLED if isinstance(flags, int) else 0


def _count(tags: Tags, name: str) -> int:
    """A count of what a limit left out, taken out of the tags; 0 where there is none."""
    count = whole(take(tags, name, _is_count, last=True))
    return count or 0


def _is_count(value: Value) -> bool:
    number = whole(value)
    return number is not None and 0 < number <= MAX_UINT32


def _is_text(value: Value) -> bool:
    return isinstance(value, str)


def _first_text(tags: Tags, names: tuple[str, ...]) -> str:
    """The text of the first name that is there; the others, when they say the same, are taken out too."""
    found = ""
    for name in names:
        found = _take_text(tags, name, found) or found
    return found


def _take_text(tags: Tags, name: str, known: str) -> str:
    value = take(tags, name, lambda given: isinstance(given, str) and given != "" and known in ("", given))
    return value if isinstance(value, str) else ""


def _status(tags: Tags) -> tuple[int, str]:
    code = take(tags, STATUS_CODE, lambda value: value in ("OK", "ERROR"), last=True)
    message = take(tags, STATUS_DESCRIPTION, _is_text, last=True)
    status = STATUS_UNSET
    if code == "OK":
        status = STATUS_OK
    elif code == "ERROR" or any(key == ERROR and value is True for key, value in tags):
        # Clients of Jaeger's own protocol have the tag alone.
        take(tags, ERROR, lambda value: value is True, last=True)
        status = STATUS_ERROR
    return status, message if isinstance(message, str) else ""


def _list(message: dict[str, Any], name: str) -> list[Any]:
    items = message.get(name)
    return items if isinstance(items, list) else []


def _relations(
    raw: dict[str, Any], trace_id: str, span_id: str, faults: list[Fault], losses: Losses
) -> tuple[str | None, tuple[LinkRecord, ...]]:
    """The parent, as Jaeger finds it, and the references to others as links.

    The parent is the first ``CHILD_OF`` of the same trace, else the first ``FOLLOWS_FROM`` of it, else ``parentSpanID``, which old
    documents of Elasticsearch have.
    """
    references: list[_Reference] = []
    for index, item in enumerate(_list(raw, "references")):
        try:
            references.append(_reference(item))
        except FormatError as error:
            faults.append((LINK_DROPPED, join(f"references[{index}]", error.where), error.expected, error.found))
    here = [found for found in references if found.trace_id == trace_id and (found.kind == CHILD_OF or found.span_id != span_id)]
    parent = next((found for found in here if found.kind == CHILD_OF), here[0] if here else None)
    if parent is None:
        losses.of("parent-elsewhere", any(found.kind == CHILD_OF for found in references))
    elif parent.kind != CHILD_OF:
        losses.of("parent-follows", True)
    links = [
        LinkRecord(trace_id=found.trace_id, span_id=found.span_id, attributes={REF_TYPE: "child_of"} if found.kind == CHILD_OF else {})
        for found in references
        if parent is None or (found.trace_id, found.span_id) != (parent.trace_id, parent.span_id)
    ]
    losses.of("link-attributes-lost", bool(links))
    old = None if parent else hex_id(padded(raw.get("parentSpanID"), SPAN_ID_BYTES), SPAN_ID_BYTES, "parentSpanID")
    return parent.span_id if parent else old, tuple(links)


def _reference(item: object) -> _Reference:
    raw = as_object(item)
    kind = raw.get("refType")
    if kind not in (CHILD_OF, FOLLOWS_FROM):
        raise FormatError("refType", f"{CHILD_OF} or {FOLLOWS_FROM}", describe(kind))
    return _Reference(
        kind,
        required_id(padded(raw.get("traceID"), TRACE_ID_BYTES), TRACE_ID_BYTES, "traceID"),
        required_id(padded(raw.get("spanID"), SPAN_ID_BYTES), SPAN_ID_BYTES, "spanID"),
    )


def _events(raw: dict[str, Any], faults: list[Fault], losses: Losses, texts: bool) -> tuple[EventRecord, ...]:
    """The events in the order of time, which adjusted answers do not have."""
    events: list[EventRecord] = []
    for index, item in enumerate(_list(raw, "logs")):
        inner: list[Fault] = []
        try:
            events.append(_event(as_object(item), inner, texts))
        except FormatError as error:
            inner[:] = [(EVENT_DROPPED, error.where, error.expected, error.found)]
        prefix_faults(inner, 0, f"logs[{index}]")
        faults += inner
    ordered = sorted(events, key=lambda event: event.time_ns)
    losses.of("events-sorted", ordered != events)
    return tuple(ordered)


def _event(raw: dict[str, Any], faults: list[Fault], texts: bool) -> EventRecord:
    try:
        micros = read_int(raw.get("timestamp"), faults, "microseconds since 1970")
    except FormatError as error:
        raise error.within("timestamp") from None
    if not 0 <= micros <= MAX_TIME // _MICRO:
        raise FormatError("timestamp", "microseconds since 1970", describe(micros))
    fields = read_tags(raw, "fields", faults, texts=texts)
    name = take(fields, EVENT, _is_text)
    dropped = _count(fields, DROPPED_ATTRIBUTES)
    return EventRecord(
        name=name if isinstance(name, str) else "",
        time_ns=micros * _MICRO,
        attributes=as_attributes(fields, "fields", faults),
        dropped_attributes=dropped,
    )


def _looks_flattened(value: Value) -> bool:
    """Whether a text may be what is left of a list or a map."""
    return isinstance(value, str) and value[:1] + value[-1:] in ("[]", "{}")
