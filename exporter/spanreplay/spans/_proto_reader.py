"""One OTLP protobuf span or log record, with its events and links, read into the neutral records."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spanreplay.spans._anyvalue import Fault, prefix_faults
from spanreplay.spans._fields import MAX_TIME, SPAN_ID_BYTES, TRACE_ID_BYTES
from spanreplay.spans.errors import DUPLICATE_KEY, EVENT_DROPPED, LINK_DROPPED, FormatError, ProblemCode, describe
from spanreplay.spans.record import EventRecord, LinkRecord, LogRecord, Resource, Scope, SpanRecord, Value

KeyValues: TypeAlias = Any
"""A repeated ``KeyValue`` field."""


def _id(raw: bytes, size: int, field: str) -> str | None:
    if len(raw) == size:
        return raw.hex() if any(raw) else None
    if not any(raw):
        return None
    raise FormatError(field, f"an id of {size} bytes", f"{len(raw)} bytes")


def _required_id(raw: bytes, size: int, field: str) -> str:
    found = _id(raw, size, field)
    if found is None:
        raise FormatError(field, f"an id of {size} bytes", "an id of zeros" if raw else "an empty id")
    return found


def _time(value: int, field: str) -> int:
    if value > MAX_TIME:
        raise FormatError(field, "nanoseconds since 1970", describe(value))
    return value


def read_span(span: SpanMessage, resource: Resource, scope: Scope, faults: list[Fault]) -> SpanRecord:
    """Reads one ``Span``; a malformed event or link is left out and counted.

    Raises:
        FormatError: An id or a time cannot be read; ``where`` is the field.
    """
    attributes = read_attributes(span.attributes, faults)
    events, links, status = span.events, span.links, span.status
    return SpanRecord(
        trace_id=_required_id(span.trace_id, TRACE_ID_BYTES, "trace_id"),
        span_id=_required_id(span.span_id, SPAN_ID_BYTES, "span_id"),
        parent_span_id=_id(span.parent_span_id, SPAN_ID_BYTES, "parent_span_id"),
        name=span.name,
        kind=span.kind,
        start_ns=_time(span.start_time_unix_nano, "start_time_unix_nano"),
        end_ns=_time(span.end_time_unix_nano, "end_time_unix_nano") or None,
        status=status.code,
        status_message=status.message,
        attributes=attributes,
        events=_read_parts(events, "events", _read_event, EVENT_DROPPED, faults) if events else (),
        links=_read_parts(links, "links", _read_link, LINK_DROPPED, faults) if links else (),
        resource=resource,
        scope=scope,
        trace_state=span.trace_state,
        flags=span.flags,
        dropped_attributes=span.dropped_attributes_count,
        dropped_events=span.dropped_events_count,
        dropped_links=span.dropped_links_count,
    )


_Part = TypeVar("_Part")


def _read_parts(
    items: Any, name: str, read: Callable[[Any, list[Fault]], _Part], code: ProblemCode, faults: list[Fault]
) -> tuple[_Part, ...]:
    out: list[_Part] = []
    for index, item in enumerate(items):
        mark = len(faults)
        try:
            out.append(read(item, faults))
        except FormatError as error:
            faults[mark:] = [(code, error.where, error.expected, error.found)]
        if len(faults) != mark:
            prefix_faults(faults, mark, f"{name}[{index}]")
    return tuple(out)


def _read_event(event: SpanMessage.Event, faults: list[Fault]) -> EventRecord:
    return EventRecord(
        name=event.name,
        time_ns=_time(event.time_unix_nano, "time_unix_nano"),
        attributes=read_attributes(event.attributes, faults),
        dropped_attributes=event.dropped_attributes_count,
    )


def _read_link(link: SpanMessage.Link, faults: list[Fault]) -> LinkRecord:
    return LinkRecord(
        trace_id=_required_id(link.trace_id, TRACE_ID_BYTES, "trace_id"),
        span_id=_required_id(link.span_id, SPAN_ID_BYTES, "span_id"),
        trace_state=link.trace_state,
        flags=link.flags,
        attributes=read_attributes(link.attributes, faults),
        dropped_attributes=link.dropped_attributes_count,
    )


def read_log(log: LogMessage, resource: Resource, scope: Scope, faults: list[Fault]) -> LogRecord:
    """Reads one ``LogRecord``; ids may be absent.

    Raises:
        FormatError: An id or a time cannot be read; ``where`` is the field.
    """
    attributes = read_attributes(log.attributes, faults)
    mark = len(faults)
    body = _read_value(log.body, faults)
    prefix_faults(faults, mark, "body")
    return LogRecord(
        time_ns=_time(log.time_unix_nano, "time_unix_nano"),
        observed_ns=_time(log.observed_time_unix_nano, "observed_time_unix_nano"),
        trace_id=_id(log.trace_id, TRACE_ID_BYTES, "trace_id"),
        span_id=_id(log.span_id, SPAN_ID_BYTES, "span_id"),
        event_name=log.event_name,
        severity=log.severity_number,
        severity_text=log.severity_text,
        body=body,
        attributes=attributes,
        resource=resource,
        scope=scope,
        flags=log.flags,
        dropped_attributes=log.dropped_attributes_count,
    )


def read_attributes(items: KeyValues, faults: list[Fault], name: str = "attributes") -> dict[str, Value]:
    """Reads a repeated ``KeyValue``; a key given twice keeps its last value and is added to ``faults``."""
    out: dict[str, Value] = {}
    for index, item in enumerate(items):
        key, value = item.key, item.value
        if key not in out:
            # Of a oneof, what is not empty is what is set: asked for at once, which most attributes have.
            text = value.string_value
            if text:
                out[key] = text
                continue
            number = value.int_value
            if number:
                out[key] = number
                continue
        mark = len(faults)
        if key in out:
            faults.append((DUPLICATE_KEY, f"{name}[{index}].key", "each key once", f"{describe(key)} again; the last value is kept"))
            mark += 1
        out[key] = _read_value(value, faults)
        if len(faults) != mark:
            prefix_faults(faults, mark, f"{name}[{index}].value")
    return out


def _read_value(value: AnyValue, faults: list[Fault]) -> Value:
    kind = value.WhichOneof("value")
    match kind:
        case "string_value" | "bool_value" | "int_value" | "double_value" | "bytes_value":
            out: Value = getattr(value, kind)
            return out
        case "array_value":
            return tuple(_read_value(item, faults) for item in value.array_value.values)
        case "kvlist_value":
            return read_attributes(value.kvlist_value.values, faults, "kvlist_value.values")
    return None
