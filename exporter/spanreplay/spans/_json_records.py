"""One OTLP JSON span or log record, with its events and links, read into the neutral records."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from spanreplay.spans._anyvalue import Fault, as_object, as_text, prefix_faults, read_attributes, read_value
from spanreplay.spans._fields import (
    SPAN_ID_BYTES,
    TRACE_ID_BYTES,
    camel,
    hex_id,
    read_count,
    read_enum,
    read_time,
    required_id,
)
from spanreplay.spans.errors import EVENT_DROPPED, LINK_DROPPED, FormatError, ProblemCode, describe
from spanreplay.spans.record import EventRecord, LinkRecord, LogRecord, Resource, Scope, SpanRecord, Value

KINDS: Final = {"UNSPECIFIED": 0, "INTERNAL": 1, "SERVER": 2, "PRODUCER": 4, "CONSUMER": 5, "CLIENT": 3}
_CODES: Final = {"UNSET": 0, "OK": 1, "ERROR": 2}
_SEVERITIES: Final = {
    "UNSPECIFIED": 0,
    **{
        f"{name}{'' if step == 1 else step}": 4 * level + step
        for level, name in enumerate(("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"))
        for step in (1, 2, 3, 4)
    },
    "WARNING": 13,
    "INFO": 9,
}

_PART_FIELDS: Final = frozenset(
    ("traceId", "spanId", "traceState", "flags", "name", "timeUnixNano", "attributes", "droppedAttributesCount")
)
_SPAN_FIELDS: Final = _PART_FIELDS | {
    "parentSpanId",
    "kind",
    "startTimeUnixNano",
    "endTimeUnixNano",
    "events",
    "droppedEventsCount",
    "links",
    "droppedLinksCount",
    "status",
}


def fields_attributes(message: dict[str, Any], faults: list[Fault]) -> dict[str, Value]:
    """Reads the ``attributes`` of a message, with fault paths relative to the message.

    Raises:
        FormatError: They are no list.
    """
    items = message.get("attributes")
    if not items and (items is None or isinstance(items, list)):
        return {}
    mark = len(faults)
    try:
        out = read_attributes(items, faults)
    except FormatError as error:
        raise error.within("attributes") from None
    if len(faults) != mark:
        prefix_faults(faults, mark, "attributes")
    return out


def _dropped(message: dict[str, Any], faults: list[Fault]) -> int:
    return read_count(message.get("droppedAttributesCount"), "droppedAttributesCount", faults)


def read_span(raw: dict[str, Any], resource: Resource, scope: Scope, faults: list[Fault]) -> SpanRecord:
    """Reads one ``Span``.

    Raises:
        FormatError: An id, a time, the kind or the status cannot be read; ``where`` is the field.
    """
    if not _SPAN_FIELDS.issuperset(raw):
        raw = camel(raw)
    get = raw.get
    trace_id = required_id(get("traceId"), TRACE_ID_BYTES, "traceId")
    span_id = required_id(get("spanId"), SPAN_ID_BYTES, "spanId")
    attributes = fields_attributes(raw, faults)
    dropped_attributes = dropped_events = dropped_links = 0
    if "droppedAttributesCount" in raw:
        dropped_attributes = _dropped(raw, faults)
    status, message = 0, ""
    if raw_status := get("status"):
        status, message = read_status(raw_status)
    events: tuple[EventRecord, ...] = ()
    links: tuple[LinkRecord, ...] = ()
    if "droppedEventsCount" in raw:
        dropped_events = read_count(raw["droppedEventsCount"], "droppedEventsCount", faults)
    if "droppedLinksCount" in raw:
        dropped_links = read_count(raw["droppedLinksCount"], "droppedLinksCount", faults)
    if items := get("events"):
        events = read_events(items, faults)
    if items := get("links"):
        links = read_links(items, faults)
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=hex_id(get("parentSpanId"), SPAN_ID_BYTES, "parentSpanId"),
        name=as_text(get("name"), "name"),
        kind=read_enum(get("kind"), KINDS, "SPAN_KIND_", "kind"),
        start_ns=read_time(get("startTimeUnixNano"), "startTimeUnixNano", faults),
        end_ns=read_time(get("endTimeUnixNano"), "endTimeUnixNano", faults) or None,
        status=status,
        status_message=message,
        attributes=attributes,
        events=events,
        links=links,
        resource=resource,
        scope=scope,
        trace_state=as_text(get("traceState"), "traceState"),
        flags=read_count(get("flags"), "flags", faults),
        dropped_attributes=dropped_attributes,
        dropped_events=dropped_events,
        dropped_links=dropped_links,
    )


def read_status(raw: object) -> tuple[int, str]:
    """Reads the code and the message of a ``Status``.

    Raises:
        FormatError: It is none.
    """
    raw = as_object(raw, "status")
    code = read_enum(raw.get("code"), _CODES, "STATUS_CODE_", "status.code")
    return code, as_text(raw.get("message"), "status.message")


def read_events(items: object, faults: list[Fault]) -> tuple[EventRecord, ...]:
    """Reads the events of a span; one that is malformed is left out and added to ``faults``.

    Raises:
        FormatError: They are no list.
    """
    return _read_parts(items, "events", _read_event, EVENT_DROPPED, faults)


def read_links(items: object, faults: list[Fault]) -> tuple[LinkRecord, ...]:
    """Reads its links in the same way."""
    return _read_parts(items, "links", _read_link, LINK_DROPPED, faults)


_Part = TypeVar("_Part")


def _read_parts(
    items: object, name: str, read: Callable[[dict[str, Any], list[Fault]], _Part], code: ProblemCode, faults: list[Fault]
) -> tuple[_Part, ...]:
    """Reads events or links. Gives those that could be read."""
    if not isinstance(items, list):
        raise FormatError(name, "an array", describe(items))
    out: list[_Part] = []
    for index, raw in enumerate(items):
        mark = len(faults)
        try:
            part = as_object(raw)
            out.append(read(part if _PART_FIELDS.issuperset(part) else camel(part), faults))
        except FormatError as error:
            faults[mark:] = [(code, error.where, error.expected, error.found)]
        if len(faults) != mark:
            prefix_faults(faults, mark, f"{name}[{index}]")
    return tuple(out)


def _read_event(raw: dict[str, Any], faults: list[Fault]) -> EventRecord:
    attributes = fields_attributes(raw, faults)
    return EventRecord(
        name=as_text(raw.get("name"), "name"),
        attributes=attributes,
        dropped_attributes=_dropped(raw, faults),
        time_ns=read_time(raw.get("timeUnixNano"), "timeUnixNano", faults),
    )


def _read_link(raw: dict[str, Any], faults: list[Fault]) -> LinkRecord:
    attributes = fields_attributes(raw, faults)
    return LinkRecord(
        trace_id=required_id(raw.get("traceId"), TRACE_ID_BYTES, "traceId"),
        span_id=required_id(raw.get("spanId"), SPAN_ID_BYTES, "spanId"),
        trace_state=as_text(raw.get("traceState"), "traceState"),
        flags=read_count(raw.get("flags"), "flags", faults),
        attributes=attributes,
        dropped_attributes=_dropped(raw, faults),
    )


def read_log(raw: dict[str, Any], resource: Resource, scope: Scope, faults: list[Fault]) -> LogRecord:
    """Reads one ``LogRecord``; ids may be absent.

    Raises:
        FormatError: An id, a time, the severity or the body cannot be read; ``where`` is the field.
    """
    raw = camel(raw)
    attributes = fields_attributes(raw, faults)
    dropped = _dropped(raw, faults)
    mark = len(faults)
    try:
        body = read_value(raw.get("body"), faults)
    except FormatError as error:
        raise error.within("body") from None
    prefix_faults(faults, mark, "body")
    return LogRecord(
        time_ns=read_time(raw.get("timeUnixNano"), "timeUnixNano", faults),
        observed_ns=read_time(raw.get("observedTimeUnixNano"), "observedTimeUnixNano", faults),
        trace_id=hex_id(raw.get("traceId"), TRACE_ID_BYTES, "traceId"),
        span_id=hex_id(raw.get("spanId"), SPAN_ID_BYTES, "spanId"),
        event_name=as_text(raw.get("eventName"), "eventName"),
        severity=read_enum(raw.get("severityNumber"), _SEVERITIES, "SEVERITY_NUMBER_", "severityNumber"),
        severity_text=as_text(raw.get("severityText"), "severityText"),
        body=body,
        attributes=attributes,
        resource=resource,
        scope=scope,
        flags=read_count(raw.get("flags"), "flags", faults),
        dropped_attributes=dropped,
    )
