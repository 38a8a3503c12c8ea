"""One span, or one log record, as a plain JSON object, by whatever names a tool gives its fields.

Read are the ``to_json`` of the Python SDK, dumps of its ``ReadableSpan`` by pydantic, the ``ReadableSpan`` of the JavaScript SDK, rows of
evaluation tools in snake_case, spans of OTLP JSON without their groups, and mixtures of these.
"""

import itertools
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from spanreplay.replay.inputs.formats import plain_parts as parts
from spanreplay.replay.inputs.formats.notes import Notes, Table
from spanreplay.replay.inputs.formats.plain import first, plain_value
from spanreplay.replay.inputs.formats.plain_ids import Ids
from spanreplay.replay.inputs.formats.plain_parts import count_of, read_attributes, text_of
from spanreplay.replay.inputs.formats.plain_times import read_duration, read_instant
from spanreplay.spans._anyvalue import Fault, as_object, prefix_faults
from spanreplay.spans._fields import MAX_TIME
from spanreplay.spans.errors import EVENT_DROPPED, LINK_DROPPED, FormatError, ProblemCode, describe
from spanreplay.spans.record import KIND_UNSPECIFIED, EventRecord, LinkRecord, LogRecord, Record, Resource, Scope, SpanRecord, Value

TRACE_IDS: Final = ("trace_id", "traceId", "traceID")
SPAN_IDS: Final = ("span_id", "spanId", "spanID")
CONTEXTS: Final = ("context", "spanContext", "_spanContext", "span_context")
STARTS: Final = (
    "start_time",
    "startTime",
    "start_time_unix_nano",
    "startTimeUnixNano",
    "start_time_ns",
    "start_ns",
    "start_timestamp",
    "startTimestamp",
    "started_at",
    "start",
)
ENDS: Final = tuple(name.replace("start", "end") for name in STARTS)
_PARENT_IDS: Final = ("parent_span_id", "parentSpanId", "parent_id", "parentId", "parentSpanID")
_PARENTS: Final = ("parent", "parentSpanContext", "parent_span_context", "parentContext", "parent_context")
_NAMES: Final = ("name", "span_name", "spanName")
_KINDS: Final = ("kind", "span_kind", "spanKind")
_STATUSES: Final = ("status", "status_code", "statusCode", "otel_status_code")
_MESSAGES: Final = ("status_message", "statusMessage", "status_description", "statusDescription", "otel_status_message")
_ATTRIBUTES: Final = ("attributes", "span_attributes", "spanAttributes")
EVENTS: Final = ("events", "span_events", "spanEvents")
_LINKS: Final = ("links", "span_links", "spanLinks")
_DROPPED_EVENTS: Final = ("dropped_events", "droppedEventsCount", "_droppedEventsCount")
_DROPPED_LINKS: Final = ("dropped_links", "droppedLinksCount", "_droppedLinksCount")
_TRACE_STATES: Final = ("trace_state", "traceState")
_FLAGS: Final = ("trace_flags", "traceFlags", "flags")
_EVENT_NAMES: Final = ("name", "event_name", "eventName")
_EVENT_TIMES: Final = ("timestamp", "time", "time_unix_nano", "timeUnixNano", "time_ns")
_BODIES: Final = ("body", "event_body")
OBSERVED: Final = ("observed_timestamp", "observedTimestamp", "observedTimeUnixNano", "observed_time_unix_nano")
SEVERITIES: Final = ("severity_number", "severityNumber")
_SEVERITY_TEXTS: Final = ("severity_text", "severityText")
_READ: Final = frozenset(
    itertools.chain(
        TRACE_IDS, SPAN_IDS, CONTEXTS, STARTS, ENDS, _PARENT_IDS, _PARENTS, _NAMES, _KINDS, _STATUSES, _MESSAGES, _ATTRIBUTES, EVENTS,
        _LINKS, _DROPPED_EVENTS, _DROPPED_LINKS, _TRACE_STATES, _FLAGS, parts.SCOPES, parts.SCOPE_NAMES, parts.SCOPE_VERSIONS,
        parts.RESOURCES,
        ("duration", "ended", "droppedAttributesCount", "dropped_attributes"),
    )
)  # fmt: skip

OTHERS: Final = "span_list."
"""Before the names of attributes that were fields of the object."""

_OTLP: Final = "let the agent write OTLP: a Collector's file exporter, or opentelemetry-exporter-otlp-json-file"
TABLE: Final[Table] = {
    "time-us": ("has times in microseconds only", _OTLP),
    "time-ms": ("has times in milliseconds only: what began within one has the order of the file", _OTLP),
    "time-s": ("has times in seconds only: what began within one has the order of the file", _OTLP),
    "time-missing": ("has no time at which it began", _OTLP),
    "scope-lost": ("is without its instrumentation scope, by which some instrumentations are told apart", _OTLP),
    "resource-lost": ("is without the resource that produced it", _OTLP),
    "id-derived": ("has ids that are none of OpenTelemetry's; what it has now is made from their text", ""),
    "id-float": ("has ids written as floating point numbers, which may have lost digits", "write ids as hex text"),
    "attributes-nested": ("had attributes in objects within each other, and has them by their dotted names", ""),
    "fields-kept": ("has fields that are no part of a span, kept as attributes (span_list.…)", ""),
}
"""What spans in plain JSON may have lost."""

_Part = TypeVar("_Part", EventRecord, LinkRecord)


class Reading(NamedTuple):
    """What is needed beside the span itself."""

    ids: Ids
    notes: Notes
    faults: list[Fault]
    """Receives what was malformed and left out or altered, with paths from the span."""
    trace: Any = None
    """The id of the trace around the span, for one that has none of its own."""


def read_record(raw: dict[str, Any], reading: Reading) -> list[Record]:
    """Reads one object: a span, with the log records among its events behind it, or a log record.

    Raises:
        FormatError: An id or a time cannot be read; ``where`` is the field.
    """
    starts = first(raw, STARTS) is not None
    if not starts and any(name in raw for name in (*OBSERVED, *SEVERITIES, *_BODIES)):
        return [_log(raw, _Around.of(raw, reading), reading)]
    return _span(raw, reading)


class _Around(NamedTuple):
    """What a log record has of the span or object around it."""

    trace: str | None
    span: str | None
    resource: Resource
    scope: Scope

    @classmethod
    def of(cls, raw: dict[str, Any], reading: Reading) -> "_Around":
        trace, span = _own_ids(raw, reading)
        faults = reading.faults
        return cls(trace, span, parts.read_resource(raw, faults, reading.notes), parts.read_scope(raw, faults, reading.notes))


def _own_ids(raw: dict[str, Any], reading: Reading) -> tuple[str | None, str | None]:
    context = first(raw, CONTEXTS)
    context = context if isinstance(context, dict) else {}
    given = first(context, TRACE_IDS) if first(raw, TRACE_IDS) is None else first(raw, TRACE_IDS)
    trace = reading.ids.trace(reading.trace if given is None else given, "trace_id", reading.notes)
    given = first(context, SPAN_IDS) if first(raw, SPAN_IDS) is None else first(raw, SPAN_IDS)
    return trace, reading.ids.span(trace or "", given, "span_id", reading.notes)


def _span(raw: dict[str, Any], reading: Reading) -> list[Record]:
    notes, faults = reading.notes, reading.faults
    around = _Around.of(raw, reading)
    if around.trace is None:
        raise FormatError("trace_id", "an id of 32 hex digits", "none")
    if around.span is None:
        raise FormatError("span_id", "an id of 16 hex digits", "none")
    start, end = _times(raw, reading)
    status, message = parts.read_status(first(raw, _STATUSES), first(raw, _MESSAGES))
    kind = parts.read_kind(first(raw, _KINDS), of_otlp="startTimeUnixNano" in raw or "start_time_unix_nano" in raw)
    attributes = read_attributes(first(raw, _ATTRIBUTES), "attributes", faults, notes) | _others(raw, kind, reading)
    logs: list[Record] = []
    events = _parts(raw, EVENTS, EVENT_DROPPED, lambda item, inner: _event(item, inner, around, reading, logs), faults)
    links = _parts(raw, _LINKS, LINK_DROPPED, lambda item, inner: _link(item, inner, reading), faults)
    context = first(raw, CONTEXTS)
    context = context if isinstance(context, dict) else {}
    span = SpanRecord(
        trace_id=around.trace,
        span_id=around.span,
        parent_span_id=_parent(raw, around.trace, reading),
        name=text_of(first(raw, _NAMES)),
        kind=KIND_UNSPECIFIED if kind is None else kind,
        start_ns=start,
        end_ns=end,
        status=status,
        status_message=message,
        attributes=attributes,
        events=events,
        links=links,
        resource=around.resource,
        scope=around.scope,
        trace_state=parts.trace_state_of(first(context, _TRACE_STATES) or first(raw, _TRACE_STATES)),
        flags=parts.flags_of(first(context, _FLAGS) or first(raw, _FLAGS)),
        dropped_attributes=count_of(raw),
        dropped_events=count_of(raw, _DROPPED_EVENTS),
        dropped_links=count_of(raw, _DROPPED_LINKS),
    )
    return [span, *logs]


def _others(raw: dict[str, Any], kind: int | None, reading: Reading) -> dict[str, Value]:
    """Fields that are no part of a span, and a kind that is none of OpenTelemetry's."""
    names = [name for name in raw if name not in _READ and not name.startswith("_") and raw[name] not in (None, "", [], {})]
    if kind is None:
        names += [name for name in _KINDS if raw.get(name) is not None]
    reading.notes.of("fields-kept", bool(names))
    return {f"{OTHERS}{name}": plain_value(raw[name], reading.faults, name) for name in names}


def _times(raw: dict[str, Any], reading: Reading) -> tuple[int, int | None]:
    start, end = (
        next((read_instant(raw[name], name, reading.faults, reading.notes) for name in names if raw.get(name) is not None), None)
        for names in (STARTS, ENDS)
    )
    if start is None:
        if first(raw, _NAMES) is None or first(raw, _ATTRIBUTES) is None:
            raise FormatError(STARTS[0], "a time since 1970", "nothing")
        reading.notes.of("time-missing")
        return end or 0, end
    duration = read_duration(raw.get("duration")) if end is None else None
    if duration is not None and 0 <= start + duration <= MAX_TIME:
        end = start + duration
    # Not ended: JavaScript has [0, 0] then.
    return start, end or None


def _parent(raw: dict[str, Any], trace: str, reading: Reading) -> str | None:
    given = first(raw, _PARENT_IDS)
    if given is None:
        given = first(raw, _PARENTS)
        given = first(given, SPAN_IDS) if isinstance(given, dict) else given
    return reading.ids.span(trace, given, "parent", reading.notes)


def _parts(
    raw: dict[str, Any], names: tuple[str, ...], code: ProblemCode, read: Callable[[Any, list[Fault]], _Part | None], faults: list[Fault]
) -> tuple[_Part, ...]:
    """Reads events or links. Gives those that could be read."""
    found: list[_Part] = []
    for name in names:
        items = raw.get(name)
        if items is None or items == "":
            continue
        if not isinstance(items, list):
            faults.append((code, name, "an array", describe(items)))
            continue
        for index, item in enumerate(items):
            inner: list[Fault] = []
            try:
                part = read(item, inner)
            except FormatError as error:
                inner[:] = [(code, error.where, error.expected, error.found)]
                part = None
            if part is not None:
                found.append(part)
            prefix_faults(inner, 0, f"{name}[{index}]")
            faults += inner
    return tuple(found)


def _event(raw: Any, faults: list[Fault], around: _Around, reading: Reading, logs: list[Record]) -> EventRecord | None:
    """An event; one with a body is a log record that a tool put there, and goes to ``logs``."""
    item = as_object(raw)
    inside = reading._replace(faults=faults)
    if first(item, _BODIES) is not None:
        logs.append(_log(item, around, inside))
        return None
    return EventRecord(
        name=text_of(first(item, _EVENT_NAMES)),
        time_ns=_first_time(item, _EVENT_TIMES, inside),
        attributes=read_attributes(item.get("attributes"), "attributes", faults),
        dropped_attributes=count_of(item),
    )


def _first_time(raw: dict[str, Any], names: tuple[str, ...], reading: Reading) -> int:
    name = next((name for name in names if raw.get(name) is not None), names[0])
    return read_instant(raw.get(name), name, reading.faults, reading.notes) or 0


def _link(raw: Any, faults: list[Fault], reading: Reading) -> LinkRecord:
    item = as_object(raw)
    trace, span = _own_ids(item, reading._replace(trace=None))
    if trace is None or span is None:
        raise FormatError("context", "the ids of a span", describe(first(item, CONTEXTS)))
    context = first(item, CONTEXTS)
    context = context if isinstance(context, dict) else {}
    return LinkRecord(
        trace_id=trace,
        span_id=span,
        trace_state=parts.trace_state_of(first(context, _TRACE_STATES) or first(item, _TRACE_STATES)),
        flags=parts.flags_of(first(context, _FLAGS) or first(item, _FLAGS)),
        attributes=read_attributes(item.get("attributes"), "attributes", faults),
        dropped_attributes=count_of(item),
    )


def _log(raw: dict[str, Any], around: _Around, reading: Reading) -> LogRecord:
    return LogRecord(
        time_ns=_first_time(raw, _EVENT_TIMES, reading),
        observed_ns=_first_time(raw, OBSERVED, reading),
        trace_id=around.trace,
        span_id=around.span if around.trace else None,
        event_name=text_of(first(raw, _EVENT_NAMES)),
        severity=min(parts.flags_of(first(raw, SEVERITIES)), 2**31 - 1),
        severity_text=text_of(first(raw, _SEVERITY_TEXTS)),
        body=plain_value(first(raw, _BODIES), reading.faults, "body"),
        attributes=read_attributes(raw.get("attributes"), "attributes", reading.faults),
        resource=around.resource,
        scope=around.scope,
        flags=parts.flags_of(first(raw, _FLAGS)),
        dropped_attributes=count_of(raw),
    )
