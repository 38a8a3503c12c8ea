"""OTLP in its JSON encoding: lenient reading of what tools really write, strict writing.

Form: "JSON Protobuf Encoding" of opentelemetry-proto's ``docs/specification.md`` (1.11.0). ``google.protobuf.json_format`` is of no use
here: it takes the hex ids for base64 and answers with ids of the wrong length, without an error.

Read besides the form of the specification:

- containers ``batches`` (Tempo), ``{"trace": …}`` (Tempo v2), ``{"result": …}`` (Jaeger v3), ``{"data": [ … ]}``, arrays of documents,
  ``instrumentationLibrarySpans`` (before OTLP 0.16); snake_case names; unknown fields are passed over;
- ids as hex in any case, with ``0x``, 16 digits for a trace id (padded on the left), base64, base64 of the hex text;
- enums as numbers or names, with or without their prefix; times and 64-bit ints as numbers, text or floating point numbers (noted).

A span or log record whose ids, times or kind cannot be read is left out; a malformed attribute, event or link is left out of its record.
Both are told to ``problems`` with their place; the counts of what was dropped where it was recorded stay as they are.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from spanreplay.spans._anyvalue import Fault, as_object, as_text, write_attributes, write_value
from spanreplay.spans._fields import TRACE_ID_BYTES, camel, hex_id, read_count
from spanreplay.spans._groups import consecutive
from spanreplay.spans._json_records import fields_attributes, read_log, read_span
from spanreplay.spans.errors import (
    REJECTED,
    RESOURCE_DROPPED,
    SIGNAL_SKIPPED,
    FormatError,
    Problem,
    Problems,
    describe,
    ignore,
    join,
)
from spanreplay.spans.record import EventRecord, LinkRecord, LogRecord, Record, Resource, Scope, SpanRecord, Value

SPAN_CONTAINERS: Final = ("resourceSpans", "resource_spans", "batches")
LOG_CONTAINERS: Final = ("resourceLogs", "resource_logs")
OTHER_SIGNALS: Final = ("resourceMetrics", "resource_metrics", "resourceProfiles", "resource_profiles")
WRAPPERS: Final = ("trace", "result", "data")

_SPAN_GROUPS: Final = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans")
_LOG_GROUPS: Final = ("scopeLogs", "scope_logs", "instrumentationLibraryLogs", "instrumentation_library_logs")
_MAX_WRAPPING: Final = 8

_R = TypeVar("_R", SpanRecord, LogRecord)
ReadOne = Callable[[dict[str, Any], Resource, Scope, list[Fault]], Record]


def decode(document: object, where: str = "", problems: Problems = ignore) -> Iterator[Record]:
    """Reads the spans and log records of one parsed JSON document, in its order.

    Args:
        document: What ``json.loads`` gave.
        where: Names the document in problems and errors, such as ``trace.json line 3``.
        problems: Told about everything left out or altered, before the next record is given.

    Raises:
        FormatError: The document is not OTLP JSON at all. Never after the first record.
    """
    prefix = f"{where}: " if where else ""
    for path, key, groups in _containers(document, prefix, problems, 0):
        if key in SPAN_CONTAINERS:
            yield from _decode_groups(groups, path, _SPAN_GROUPS, ("spans",), read_span, problems)
        else:
            yield from _decode_groups(groups, path, _LOG_GROUPS, ("logRecords", "log_records", "logs"), read_log, problems)


def _containers(document: object, path: str, problems: Problems, depth: int) -> Iterator[tuple[str, str, object]]:
    if isinstance(document, list):
        for index, item in enumerate(document):
            try:
                yield from _containers(item, f"{path}[{index}]", problems, depth + 1)
            except FormatError as error:
                problems(Problem(code=REJECTED, where=error.where, expected=error.expected, found=error.found))
        return
    if not isinstance(document, dict) or depth > _MAX_WRAPPING:
        raise FormatError(path.removesuffix(": "), "an object with resourceSpans or resourceLogs", describe(document))
    known = not document
    for key, value in document.items():
        place = path + key if not path or path.endswith(": ") else f"{path}.{key}"
        if key in SPAN_CONTAINERS or key in LOG_CONTAINERS:
            known = True
            yield place, key, value
        elif key in _SPAN_GROUPS or key in _LOG_GROUPS:
            yield path, SPAN_CONTAINERS[0] if key in _SPAN_GROUPS else LOG_CONTAINERS[0], document
            return
        elif key in OTHER_SIGNALS:
            known = True
            problems(Problem(code=SIGNAL_SKIPPED, where=place, expected="traces or logs", found=key))
        elif key in WRAPPERS and isinstance(value, dict | list):
            known = True
            yield from _containers(value, place, problems, depth + 1)
    if not known:
        raise FormatError(path.removesuffix(": "), "an object with resourceSpans or resourceLogs", describe(document))


def _decode_groups(
    groups: object, path: str, group_names: tuple[str, ...], list_names: tuple[str, ...], read: ReadOne, problems: Problems
) -> Iterator[Record]:
    """Walks resource groups, scope groups and records. ``path`` is the place of ``groups``, a list of groups or one group."""
    for group, group_path in _each(groups, path, "a resource group", problems):
        message = camel(group)
        resource = read_resource(message, group_path, problems)
        for name in group_names:
            if name not in group:
                continue
            for scoped, scope_path in _each(group[name], f"{group_path}.{name}", "a scope group", problems):
                scope = read_scope(camel(scoped), scope_path, problems)
                for list_name in list_names:
                    if list_name in scoped:
                        yield from _decode_list(scoped[list_name], f"{scope_path}.{list_name}", resource, scope, read, problems)


def _decode_list(records: object, path: str, resource: Resource, scope: Scope, read: ReadOne, problems: Problems) -> Iterator[Record]:
    for index, raw in enumerate(_list(records, path, problems)):
        record = decode_one(raw, f"{path}[{index}]", resource, scope, read, problems)
        if record is not None:
            yield record


def decode_one(raw: object, place: str, resource: Resource, scope: Scope, read: ReadOne, problems: Problems) -> Record | None:
    """Reads one record with :func:`~spanreplay.spans._json_records.read_span` or ``read_log``; ``None`` of one that cannot be read."""
    faults: list[Fault] = []
    try:
        record = read(as_object(raw), resource, scope, faults)
    except FormatError as error:
        where, trace_id = join(place, error.where), _trace_of(raw)
        problems(Problem(code=REJECTED, where=where, expected=error.expected, found=error.found, trace_id=trace_id))
        return None
    if faults:
        _tell(faults, place, problems, record)
    return record


def _trace_of(raw: object) -> str | None:
    """The trace of a record that cannot be read, if that can be."""
    try:
        return hex_id(camel(as_object(raw)).get("traceId"), TRACE_ID_BYTES, "traceId")
    except FormatError:
        return None


def _tell(faults: list[Fault], path: str, problems: Problems, record: Record | None = None) -> None:
    for code, place, expected, found in faults:
        problems(
            Problem(
                code=code,
                where=join(path, place),
                expected=expected,
                found=found,
                trace_id=record.trace_id if record else None,
                span_id=record.span_id if record else None,
            )
        )
    faults.clear()


def _list(items: object, path: str, problems: Problems) -> list[Any]:
    if isinstance(items, list):
        return items
    if items is not None:
        problems(Problem(code=REJECTED, where=path, expected="an array", found=describe(items)))
    return []


def _each(items: object, path: str, what: str, problems: Problems) -> Iterator[tuple[dict[str, Any], str]]:
    if isinstance(items, dict):
        yield items, path
        return
    for index, item in enumerate(_list(items, path, problems)):
        if isinstance(item, dict):
            yield item, f"{path}[{index}]"
        else:
            problems(Problem(code=REJECTED, where=f"{path}[{index}]", expected=f"{what} (an object)", found=describe(item)))


def read_resource(group: dict[str, Any], path: str, problems: Problems) -> Resource:
    """Reads the resource of a group; empty where it cannot be read."""
    _, attributes, dropped = _read_head(group, "resource", path, problems)
    return Resource(attributes=attributes, schema_url=_text_of(group, "schemaUrl", path, problems), dropped_attributes=dropped)


def read_scope(group: dict[str, Any], path: str, problems: Problems) -> Scope:
    """Reads the scope of a group; empty where it cannot be read."""
    name = "scope" if group.get("scope") is not None else "instrumentationLibrary"
    message, attributes, dropped = _read_head(group, name, path, problems)
    return Scope(
        name=_text_of(message, "name", f"{path}.{name}", problems),
        version=_text_of(message, "version", f"{path}.{name}", problems),
        attributes=attributes,
        schema_url=_text_of(group, "schemaUrl", path, problems),
        dropped_attributes=dropped,
    )


def _read_head(group: dict[str, Any], name: str, path: str, problems: Problems) -> tuple[dict[str, Any], dict[str, Value], int]:
    """The resource or scope message of a group, its attributes, and how many of them are missing."""
    if group.get(name) is None:
        return {}, {}, 0
    faults: list[Fault] = []
    try:
        message = camel(as_object(group[name]))
        attributes = fields_attributes(message, faults)
        dropped = read_count(message.get("droppedAttributesCount"), "droppedAttributesCount", faults)
    except FormatError as error:
        place = join(f"{path}.{name}", error.where)
        problems(Problem(code=RESOURCE_DROPPED, where=place, expected=error.expected, found=error.found))
        return {}, {}, 0
    _tell(faults, f"{path}.{name}", problems)
    return message, attributes, dropped


def _text_of(message: dict[str, Any], field: str, path: str, problems: Problems) -> str:
    try:
        return as_text(message.get(field), field)
    except FormatError as error:
        problems(Problem(code=RESOURCE_DROPPED, where=f"{path}.{field}", expected=error.expected, found=error.found))
        return ""


def encode(records: Iterable[Record], problems: Problems = ignore) -> dict[str, Any]:
    """Gives one OTLP JSON document: ``resourceSpans`` if there are spans, ``resourceLogs`` if there are log records.

    Written as the specification asks: lower-case hex ids, enums as numbers, 64-bit ints as text, fields at their default left out.
    Neighbours of equal resource and scope share a group, so reading it back gives the same records in the same order (spans before
    logs). Text may hold lone surrogates: write it with ``json.dumps(…)`` and its default ``ensure_ascii=True``. NaN and the infinities
    are already text. An open span (``end_ns`` of ``None``) has no ``endTimeUnixNano``.

    Args:
        records: Spans and log records, in any order.
        problems: Told about values JSON cannot hold (:func:`spanreplay.spans._anyvalue.write_value`).
    """
    spans: list[SpanRecord] = []
    logs: list[LogRecord] = []
    for record in records:
        if isinstance(record, SpanRecord):
            spans.append(record)
        else:
            logs.append(record)
    faults: list[Fault] = []
    out: dict[str, Any] = {}
    if spans:
        out["resourceSpans"] = _write_groups(spans, "scopeSpans", "spans", lambda span: _write_span(span, faults, problems))
    if logs:
        out["resourceLogs"] = _write_groups(logs, "scopeLogs", "logRecords", lambda log: _write_log(log, faults, problems))
    return out


def _write_groups(records: list[_R], scopes_name: str, list_name: str, write: Callable[[_R], dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        _write_group(
            resource, scopes_name, [_write_scoped(scope, list_name, [write(record) for record in members]) for scope, members in scopes]
        )
        for resource, scopes in consecutive(records)
    ]


def _set(out: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Adds the fields that are not at their default."""
    out.update({name: value for name, value in fields.items() if value})
    return out


def _write_group(resource: Resource, name: str, scopes: list[dict[str, Any]]) -> dict[str, Any]:
    head = _set({}, attributes=write_attributes(resource.attributes, []), droppedAttributesCount=resource.dropped_attributes)
    return _set({"resource": head, name: scopes}, schemaUrl=resource.schema_url)


def _write_scoped(scope: Scope, name: str, members: list[dict[str, Any]]) -> dict[str, Any]:
    head = _set(
        {},
        name=scope.name,
        version=scope.version,
        attributes=write_attributes(scope.attributes, []),
        droppedAttributesCount=scope.dropped_attributes,
    )
    return _set({"scope": head, name: members}, schemaUrl=scope.schema_url)


def _write_span(span: SpanRecord, faults: list[Fault], problems: Problems) -> dict[str, Any]:
    out = _set(
        {"traceId": span.trace_id, "spanId": span.span_id},
        traceState=span.trace_state,
        parentSpanId=span.parent_span_id,
        flags=span.flags,
        name=span.name,
        kind=span.kind,
        startTimeUnixNano=span.start_ns and str(span.start_ns),
        endTimeUnixNano=span.end_ns and str(span.end_ns),
        attributes=write_attributes(span.attributes, faults),
        droppedAttributesCount=span.dropped_attributes,
        events=[_write_event(event, faults) for event in span.events],
        droppedEventsCount=span.dropped_events,
        links=[_write_link(link, faults) for link in span.links],
        droppedLinksCount=span.dropped_links,
        status=_set({}, message=span.status_message, code=span.status),
    )
    if faults:
        _tell(faults, f"span {span.span_id}", problems, span)
    return out


def _write_event(event: EventRecord, faults: list[Fault]) -> dict[str, Any]:
    return _set(
        {},
        timeUnixNano=event.time_ns and str(event.time_ns),
        name=event.name,
        attributes=write_attributes(event.attributes, faults),
        droppedAttributesCount=event.dropped_attributes,
    )


def _write_link(link: LinkRecord, faults: list[Fault]) -> dict[str, Any]:
    return _set(
        {"traceId": link.trace_id, "spanId": link.span_id},
        traceState=link.trace_state,
        attributes=write_attributes(link.attributes, faults),
        droppedAttributesCount=link.dropped_attributes,
        flags=link.flags,
    )


def _write_log(log: LogRecord, faults: list[Fault], problems: Problems) -> dict[str, Any]:
    out = _set(
        {},
        timeUnixNano=log.time_ns and str(log.time_ns),
        observedTimeUnixNano=log.observed_ns and str(log.observed_ns),
        severityNumber=log.severity,
        severityText=log.severity_text,
        body=write_value(log.body, faults),
        attributes=write_attributes(log.attributes, faults),
        droppedAttributesCount=log.dropped_attributes,
        flags=log.flags,
        traceId=log.trace_id,
        spanId=log.span_id,
        eventName=log.event_name,
    )
    if faults:
        _tell(faults, "log record", problems, log)
    return out
