"""From the SDK's ``ReadableSpan`` and ``ReadableLogRecord`` to our own records.

Total: a value of a kind that OTLP lacks becomes text and its attribute is named under ``spanreplay.lossy``; nothing raises because of one
value. The SDK is not imported here, so that a process that has none pays nothing.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from spanreplay.content.redaction import Redactor
from spanreplay.exporter.overflow import attributes_of, has_events, has_links, overflow, raw
from spanreplay.semconv import attributes as names
from spanreplay.spans.record import EventRecord, LinkRecord, LogRecord, Resource, Scope, SpanRecord, Value
from spanreplay.store.record_text import plain_place

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadableLogRecord, ReadWriteLogRecord
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext

MAX_DEPTH: Final = 32
"""Levels of nesting kept; what lies deeper becomes text."""

_NO_ATTRIBUTE: Final = ""
"""Redactions in a span's name and status message are counted under the empty name: they are no attribute."""

_MEMO: Final = 256
_HAS_IS_REMOTE: Final = 0x100  # SpanFlags of opentelemetry-proto trace.proto
_IS_REMOTE: Final = 0x200


class Converter:
    """Makes records, redacting every text on the way.

    Args:
        redactor: applied to every text; ``None`` leaves them as they are.
    """

    def __init__(self, redactor: Redactor | None = None) -> None:
        self.redactor = redactor
        self._resources: dict[int, tuple[object, Resource]] = {}
        self._scopes: dict[int, tuple[object, Scope]] = {}

    def span(self, span: "ReadableSpan", extra: Mapping[str, Value] | None = None) -> SpanRecord:
        """One span, whole, or as far as it has come.

        Args:
            span: of the SDK.
            extra: attributes to add where the span has none of that name.
        """
        notes = _Notes(self.redactor)
        context = span.get_span_context()
        parent = span.parent
        spilled, lost = overflow(span)
        attributes = notes.attributes({**spilled, **attributes_of(span)} if spilled else attributes_of(span))
        if extra:
            attributes = {**extra, **attributes}
        events = tuple([_event(event, notes) for event in _each(span.events)]) if has_events(span) else ()
        links = tuple([_link(link, notes) for link in _each(span.links)]) if has_links(span) else ()
        status = span.status
        message = notes.text(_NO_ATTRIBUTE, str(status.description)) if status.description else ""
        resource, scope = self.resource(span.resource), self.scope(span.instrumentation_scope)
        notes.put_into(attributes)
        return SpanRecord(
            trace_id=f"{context.trace_id:032x}" if context else "",
            span_id=f"{context.span_id:016x}" if context else "",
            parent_span_id=f"{parent.span_id:016x}" if parent is not None and parent.span_id else None,
            name=notes.text(_NO_ATTRIBUTE, str(span.name)),
            kind=span.kind.value + 1,
            start_ns=span.start_time or 0,
            end_ns=span.end_time,
            status=status.status_code.value,
            status_message=message,
            attributes=attributes,
            events=events,
            links=links,
            resource=resource,
            scope=scope,
            trace_state=self._clean(context.trace_state.to_header()) if context and context.trace_state else "",
            flags=_flags(context, parent),
            dropped_attributes=_count(span, "dropped_attributes") if lost is None else lost,
            dropped_events=_count(span, "dropped_events"),
            dropped_links=_count(span, "dropped_links"),
        )

    def start(self, span: "ReadableSpan", extra: Mapping[str, Value] | None = None) -> SpanRecord:
        """A span that has just begun: its place and name; the attributes come when it ends."""
        context = span.get_span_context()
        parent = span.parent
        name = str(span.name)
        return SpanRecord(
            trace_id=f"{context.trace_id:032x}" if context else "",
            span_id=f"{context.span_id:016x}" if context else "",
            parent_span_id=f"{parent.span_id:016x}" if parent is not None and parent.span_id else None,
            name=self._clean(name),
            kind=span.kind.value + 1,
            start_ns=span.start_time or 0,
            attributes=dict(extra or {}),
            resource=self.resource(span.resource),
            scope=self.scope(span.instrumentation_scope),
            trace_state=self._clean(context.trace_state.to_header()) if context and context.trace_state else "",
            flags=_flags(context, parent),
        )

    def place(self, span: "ReadableSpan", key: tuple[int, int], context: "SpanContext") -> str | None:
        """What is known of a span when it starts, as its lines in a journal have it; ``None`` where these take more than that.

        Args:
            span: of the SDK.
            key: its trace id and span id.
            context: of the span.
        """
        parent, name = span.parent, span.name
        if context.trace_state or type(name) is not str or not name.isascii():
            return None
        if self.redactor is not None and self.redactor.text(name)[1]:
            return None
        flags, parent_id = int(context.trace_flags) | _HAS_IS_REMOTE, None
        if parent is not None:
            parent_id = parent.span_id or None
            if parent.is_remote:
                flags |= _IS_REMOTE
        return plain_place(*key, parent_id, name, span.kind._value_ + 1, span.start_time or 0, flags)

    def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Value]:
        """An attribute mapping, with what was redacted or lost noted in it."""
        notes = _Notes(self.redactor)
        kept = notes.attributes(attributes)
        notes.put_into(kept)
        return kept

    def events(self, events: Iterable[Any]) -> tuple[EventRecord, ...]:
        """Span events of the SDK."""
        notes = _Notes(self.redactor)
        return tuple(_event(event, notes) for event in events)

    def links(self, links: Iterable[Any]) -> tuple[LinkRecord, ...]:
        """Span links of the SDK."""
        notes = _Notes(self.redactor)
        return tuple(_link(link, notes) for link in links)

    def log(self, data: "ReadableLogRecord | ReadWriteLogRecord", extra: Mapping[str, Value] | None = None) -> LogRecord:
        """One log record. ``extra`` is added where the record has no attribute of that name."""
        record: Any = data.log_record
        notes = _Notes(self.redactor)
        attributes = {**(extra or {}), **notes.attributes(record.attributes)}
        body = notes.value("body", record.body)
        notes.put_into(attributes)
        severity = getattr(record, "severity_number", None)
        resource = getattr(data, "resource", None) or getattr(record, "resource", None)
        return LogRecord(
            time_ns=record.timestamp or record.observed_timestamp or 0,
            observed_ns=record.observed_timestamp or 0,
            trace_id=f"{record.trace_id:032x}" if record.trace_id else None,
            span_id=f"{record.span_id:016x}" if record.span_id else None,
            event_name=self._clean(str(getattr(record, "event_name", None) or "")),
            severity=int(severity.value) if severity is not None else 0,
            severity_text=self._clean(str(record.severity_text or "")),
            body=body,
            attributes=attributes,
            resource=self.resource(resource),
            scope=self.scope(data.instrumentation_scope),
            flags=int(record.trace_flags or 0),
            dropped_attributes=_count(data, "dropped_attributes"),
        )

    def resource(self, resource: Any) -> Resource:  # the SDK's Resource
        """A resource, converted once for each object."""
        known = self._resources.get(id(resource))
        if known is not None and known[0] is resource:
            return known[1]
        made = Resource()
        if resource is not None:
            made = Resource(
                attributes=_Notes(self.redactor).attributes(resource.attributes),
                schema_url=self._clean(str(getattr(resource, "schema_url", "") or "")),
            )
        if len(self._resources) >= _MEMO:
            self._resources.clear()
        self._resources[id(resource)] = (resource, made)
        return made

    def scope(self, scope: Any) -> Scope:  # the SDK's InstrumentationScope
        """An instrumentation scope, converted once for each object."""
        known = self._scopes.get(id(scope))
        if known is not None and known[0] is scope:
            return known[1]
        made = Scope()
        if scope is not None:
            made = Scope(
                name=self._clean(str(scope.name or "")),
                version=self._clean(str(scope.version or "")),
                attributes=_Notes(self.redactor).attributes(getattr(scope, "attributes", None)),
                schema_url=self._clean(str(scope.schema_url or "")),
            )
        if len(self._scopes) >= _MEMO:
            self._scopes.clear()
        self._scopes[id(scope)] = (scope, made)
        return made

    def _clean(self, text: str) -> str:
        return text if self.redactor is None else self.redactor.text(text)[0]


class _Notes:
    """What happened to the values of one record: redactions and losses, by attribute name."""

    __slots__ = ("_lossy", "_redacted", "_redactor")

    def __init__(self, redactor: Redactor | None) -> None:
        self._redactor = redactor
        self._redacted: dict[str, int] = {}
        self._lossy: set[str] = set()

    def text(self, name: str, text: str) -> str:
        if self._redactor is None:
            return text
        clean, replaced = self._redactor.text(text)
        if replaced:
            self._redacted[name] = self._redacted.get(name, 0) + replaced
        return clean

    def name(self, name: Any) -> Any:
        return name if self._redactor is None or name.__class__ is not str else self._redactor.name(name)

    def value(self, name: str, value: object, depth: int = 0, key: str | None = None) -> Value:
        """A value as the store takes it.

        Args:
            name: of the attribute.
            value: anything.
            depth: how deep it lies in that.
            key: of the member that it is of, or is in, where that says secret or the attribute's does not.
        """
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, str):
            return self._named(name, key or name, value if value.__class__ is str else str.__str__(value))
        if isinstance(value, int):
            return int(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return self._data(name, key or name, bytes(value))
        try:
            if depth < MAX_DEPTH:
                if isinstance(value, Mapping):
                    outer = key or name
                    return {self.name(str(k)): self.value(name, item, depth + 1, self._key(outer, str(k))) for k, item in value.items()}
                if isinstance(value, Sequence | set | frozenset):
                    return tuple(self.value(name, item, depth + 1, key) for item in value)
            self._lossy.add(name)
            return self.text(name, str(value))
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            self._lossy.add(name)
            return f"<{type(value).__name__} that cannot be read>"

    def _key(self, outer: str, inner: str) -> str:
        """What is in a secret is one, whatever its own name."""
        return outer if self._redactor is not None and self._redactor.secret_name(outer) is not None else inner

    def _named(self, name: str, key: str, text: str) -> str:
        clean, replaced = (text, 0) if self._redactor is None else self._redactor.named(key, text)
        if replaced:
            self._redacted[name] = self._redacted.get(name, 0) + replaced
        return clean

    def _data(self, name: str, key: str, data: bytes) -> bytes:
        clean, replaced = (data, 0) if self._redactor is None else self._redactor.data(key, data)
        if replaced:
            self._redacted[name] = self._redacted.get(name, 0) + replaced
        return clean

    def attributes(self, attributes: Any) -> dict[str, Value]:
        kept: dict[str, Value] = {}
        if not attributes:
            return kept
        redactor = self._redactor
        for key, value in raw(attributes).items():
            name = self.name(key)
            kind = value.__class__
            if kind is str:
                clean, replaced = (value, 0) if redactor is None else redactor.named(key, value)
                if replaced:
                    self._redacted[name] = self._redacted.get(name, 0) + replaced
                kept[name] = clean
            elif kind is int or kind is bool or kind is float:
                kept[name] = value
            else:
                kept[str(name)] = self.value(str(name), value, key=None if name == key else key)
        return kept

    def put_into(self, attributes: dict[str, Value]) -> None:
        if self._redacted:
            _merge(attributes, names.STEP_REDACTED, self._redacted)
        if self._lossy:
            before = _parsed(attributes.get(names.STEP_LOSSY))
            both = self._lossy | {str(name) for name in before} if isinstance(before, list) else self._lossy
            attributes[names.STEP_LOSSY] = json.dumps(sorted(both))


def _merge(attributes: dict[str, Value], name: str, counts: Mapping[str, int]) -> None:
    before = _parsed(attributes.get(name))
    merged = dict(before) if isinstance(before, dict) else {}
    for key, number in counts.items():
        had = merged.get(key, 0)
        merged[key] = number + (had if isinstance(had, int) else 0)
    attributes[name] = json.dumps(merged, sort_keys=True, separators=(",", ":"))


def _parsed(text: Value) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _event(event: Any, notes: _Notes) -> EventRecord:
    return EventRecord(
        name=notes.text(_NO_ATTRIBUTE, str(event.name)),
        time_ns=event.timestamp or 0,
        attributes=notes.attributes(event.attributes),
        dropped_attributes=_count(event, "dropped_attributes") or _count(event.attributes, "dropped"),
    )


def _link(link: Any, notes: _Notes) -> LinkRecord:
    context = link.context
    return LinkRecord(
        trace_id=f"{context.trace_id:032x}",
        span_id=f"{context.span_id:016x}",
        trace_state=notes.text(_NO_ATTRIBUTE, context.trace_state.to_header()) if context.trace_state else "",
        flags=_flags(context, context),
        attributes=notes.attributes(link.attributes),
        dropped_attributes=_count(link, "dropped_attributes") or _count(link.attributes, "dropped"),
    )


def _flags(context: Any, parent: Any) -> int:
    flags = int(context.trace_flags) if context is not None else 0
    return flags | _HAS_IS_REMOTE | (_IS_REMOTE if parent is not None and parent.is_remote else 0)


def _count(owner: object, name: str) -> int:
    found = getattr(owner, name, 0)
    return found if isinstance(found, int) else 0


def _each(items: Any) -> Iterable[Any]:
    return items or ()
