"""Jaeger's own JSON, as Jaeger makes it of OTLP: its UI loads the file without a back end.

The form is that of the answer of its ``/api/transform`` (v2.20); see :mod:`spanreplay.replay.inputs.formats.jaeger_names`. Where Jaeger
would write what its own UI cannot show, this differs: a span without an end, or with an end before its start, has the duration 0 and a
warning.
"""

import base64
import json
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any, Final

from spanreplay.replay.inputs.formats.go_json import go_json, no_number
from spanreplay.replay.inputs.formats.jaeger_names import (
    CHILD_OF,
    DROPPED_ATTRIBUTES,
    DROPPED_EVENTS,
    DROPPED_LINKS,
    ERROR,
    EVENT,
    FOLLOWS_FROM,
    KINDS,
    NO_SERVICE,
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
from spanreplay.replay.model import Run
from spanreplay.semconv.attributes import SERVICE_NAME
from spanreplay.spans.record import (
    STATUS_ERROR,
    STATUS_OK,
    EventRecord,
    LinkRecord,
    Record,
    Resource,
    SpanRecord,
    Value,
)

NAME: Final = "jaeger"
BINARY: Final = False
LOGS: Final = False

BACKWARDS: Final = "the span ended before it started"

_KIND_WORDS: Final = {number: word for word, number in KINDS.items()}
_SAFE: Final = 2**53 - 1
"""The largest integer that JavaScript holds exactly; larger ones are text, as in Jaeger."""
_MICRO: Final = 1000
_HIGH: Final = "0" * 16

_Tag = dict[str, Any]


def write(records: Iterable[Record], runs: Sequence[Run] = ()) -> bytes:
    """Gives the spans as one answer of Jaeger, a trace after the other, each with its spans in the order given.

    Args:
        records: Spans and log records, in any order. Log records have no place in the form and are left out.
        runs: Not needed.
    """
    del runs
    traces: dict[str, list[SpanRecord]] = {}
    for record in records:
        if isinstance(record, SpanRecord):
            traces.setdefault(record.trace_id, []).append(record)
    answer = {"data": [_trace(spans) for spans in traces.values()], "total": 0, "limit": 0, "offset": 0, "errors": None}
    return (json.dumps(answer, allow_nan=False) + "\n").encode("ascii")


def _trace(spans: list[SpanRecord]) -> dict[str, Any]:
    processes = _Processes()
    written = [_span(span, processes.name(span.resource)) for span in spans]
    return {"traceID": _trace_id(spans[0].trace_id), "spans": written, "processes": processes.written, "warnings": None}


class _Processes:
    """The processes of one trace: equal ones once, numbered in the order in which they come."""

    def __init__(self) -> None:
        self.written: dict[str, dict[str, Any]] = {}
        self._names: dict[str, str] = {}

    def name(self, resource: Resource) -> str:
        process = _process(resource)
        text = json.dumps(process)
        name = self._names.setdefault(text, f"p{len(self._names) + 1}")
        self.written.setdefault(name, process)
        return name


def _process(resource: Resource) -> dict[str, Any]:
    """A process; a ``service.name`` that cannot be read back from the field for it, such as a number, is a tag too."""
    attributes = resource.attributes
    service = attributes.get(SERVICE_NAME, "") if attributes else NO_SERVICE
    held = isinstance(service, str) and service not in ("", NO_SERVICE)
    tags = [_tag(key, value) for key, value in attributes.items() if key != SERVICE_NAME or not held]
    return {"serviceName": service if isinstance(service, str) else "", "tags": tags}


def _span(span: SpanRecord, process: str) -> dict[str, Any]:
    start, end = span.start_ns, span.end_ns
    warning = NOT_ENDED if end is None else BACKWARDS if end < start else None
    return {
        "traceID": _trace_id(span.trace_id),
        "spanID": span.span_id,
        **({"flags": SAMPLED} if span.flags & SAMPLED else {}),
        "operationName": span.name,
        "references": _references(span),
        "startTime": start // _MICRO,
        "duration": 0 if end is None or warning else (end - start) // _MICRO,
        "tags": _span_tags(span),
        "logs": [_log(event) for event in span.events],
        "processID": process,
        "warnings": [warning] if warning else None,
    }


def _trace_id(trace_id: str) -> str:
    """Jaeger writes half of an id whose first half is zeros."""
    return trace_id[16:] if trace_id.startswith(_HIGH) else trace_id


def _span_tags(span: SpanRecord) -> list[_Tag]:
    tags: list[_Tag] = []
    if span.scope.name:
        tags.append(_tag(SCOPE_NAMES[0], span.scope.name))
    if span.scope.version:
        tags.append(_tag(SCOPE_VERSIONS[0], span.scope.version))
    tags += [_tag(key, value) for key, value in span.attributes.items()]
    if span.kind in _KIND_WORDS:
        tags.append(_tag(SPAN_KIND, _KIND_WORDS[span.kind]))
    if span.status in (STATUS_OK, STATUS_ERROR):
        tags.append(_tag(STATUS_CODE, "OK" if span.status == STATUS_OK else "ERROR"))
    if span.status == STATUS_ERROR:
        tags.append(_tag(ERROR, True))
    if span.status_message:
        tags.append(_tag(STATUS_DESCRIPTION, span.status_message))
    if span.trace_state:
        tags.append(_tag(TRACE_STATE, span.trace_state))
    counts = ((DROPPED_ATTRIBUTES, span.dropped_attributes), (DROPPED_EVENTS, span.dropped_events), (DROPPED_LINKS, span.dropped_links))
    tags += [_tag(name, count) for name, count in counts if count]
    return tags


def _references(span: SpanRecord) -> list[dict[str, str]]:
    """The parent, then the links. A link to the parent says what kind of reference the parent is."""
    references: list[dict[str, str]] = []
    parent = span.parent_span_id
    if parent:
        references.append(_reference(CHILD_OF, span.trace_id, parent))
    for link in span.links:
        kind = _kind_of(link)
        if parent and (link.trace_id, link.span_id) == (span.trace_id, parent):
            references[0]["refType"] = kind
        else:
            references.append(_reference(kind, link.trace_id, link.span_id))
    return references


def _kind_of(link: LinkRecord) -> str:
    return CHILD_OF if link.attributes.get(REF_TYPE) == "child_of" else FOLLOWS_FROM


def _reference(kind: str, trace_id: str, span_id: str) -> dict[str, str]:
    return {"refType": kind, "traceID": _trace_id(trace_id), "spanID": span_id}


def _log(event: EventRecord) -> dict[str, Any]:
    """An event; an attribute of its own that is called ``event`` takes the place of its name."""
    named = [_tag(EVENT, event.name)] if event.name and EVENT not in event.attributes else []
    fields = named + [_tag(key, value) for key, value in event.attributes.items()]
    if event.dropped_attributes:
        fields.append(_tag(DROPPED_ATTRIBUTES, event.dropped_attributes))
    return {"timestamp": event.time_ns // _MICRO, "fields": fields}


def _tag(key: str, value: Value) -> _Tag:
    match value:
        case None:
            return {"key": key, "type": "string", "value": ""}
        case str():
            return {"key": key, "type": "string", "value": value}
        case bool():
            return {"key": key, "type": "bool", "value": value}
        case int():
            return _integer(key, value)
        case float():
            return {"key": key, "type": "float64", "value": value if isfinite(value) else no_number(value)}
        case bytes() | bytearray() | memoryview():
            return {"key": key, "type": "binary", "value": base64.b64encode(value).decode("ascii")}
    return {"key": key, "type": "string", "value": go_json(value)}


def _integer(key: str, value: int) -> _Tag:
    if -_SAFE <= value <= _SAFE:
        return {"key": key, "type": "int64", "value": value}
    try:
        return {"key": key, "type": "int64", "value": str(value)}
    except ValueError:  # beyond the digits that Python writes, and far beyond what OTLP holds
        return {"key": key, "type": "string", "value": hex(value)}
