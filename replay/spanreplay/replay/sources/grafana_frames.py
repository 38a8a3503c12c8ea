"""Grafana's data frames of a trace: the answer of its query API, a panel's data as its inspector shows it, and single frames.

A frame has a column for each of ``traceID``, ``spanID``, ``parentSpanID``, ``operationName``, ``serviceName``, ``serviceTags``,
``startTime`` and ``duration`` (milliseconds), ``tags``, ``logs``, ``references``, ``kind``, ``statusCode``, ``statusMessage``, the scope.
Columns stand in ``data.values`` beside the ``schema``, or in the fields themselves. Form: ``trace_transform.go`` of Grafana's Tempo data
source, and ``TraceSpanRow`` of ``@grafana/data``; its Jaeger and Zipkin data sources make the same frames.
"""

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, BinaryIO, Final

from spanreplay.replay.inputs.formats.jaeger_losses import Losses
from spanreplay.replay.inputs.formats.jaeger_names import (
    SCOPE_NAMES,
    SCOPE_VERSIONS,
    SPAN_KIND,
    STATUS_CODE,
    STATUS_DESCRIPTION,
    TRACE_STATE,
)
from spanreplay.replay.inputs.formats.jaeger_span import read_span
from spanreplay.replay.inputs.formats.jaeger_tags import as_attributes, read_tags
from spanreplay.replay.inputs.formats.plain import at, tell
from spanreplay.replay.inputs.input_stream import document_limit
from spanreplay.replay.inputs.json_stream import documents
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.replay.reading.fields import decoded_json
from spanreplay.semconv.attributes import SERVICE_NAME
from spanreplay.spans._anyvalue import Fault
from spanreplay.spans.errors import REJECTED, FormatError, Problem, Problems, describe
from spanreplay.spans.record import Record, Resource

NAME: Final = "grafana-frames"

_MARKS: Final = tuple(re.compile(rb'"name"\s*:\s*"' + name + rb'"') for name in (b"traceID", b"spanID"))
_BEGINS: Final = (b"{", b"[")
_ADVICE: Final = "get the trace from Tempo itself: GET /api/v2/traces/ID with Accept: application/json"
_WORDS: Final = {
    "time-us": ("comes from Grafana's data frames, which have times as floating point numbers of milliseconds", _ADVICE),
    "dropped-counts-lost": ("is without its flags and the counts of what limits left out", _ADVICE),
    "values-flattened": ("has lists or maps as JSON text, which no longer differ from a text that was one", _ADVICE),
    "scope-attributes-lost": ("is without the attributes and the schema url of its scope, if there were any", _ADVICE),
    "link-attributes-lost": ("has links without their attributes and trace state", _ADVICE),
}
_CODES: Final = {1: "OK", 2: "ERROR", "ok": "OK", "error": "ERROR"}
_LARGEST: Final = 1 << 53
_MILLI: Final = 1000
_DEEPEST: Final = 12


def handles(head: bytes) -> bool:
    """Whether the text begins with a frame that has columns for the ids of spans."""
    return head.lstrip()[:1] in _BEGINS and all(mark.search(head) for mark in _MARKS)


def read(stream: BinaryIO, where: str, report: ReadReport) -> Iterator[Record]:
    """Reads the spans frame by frame; see :class:`spanreplay.replay.inputs.format.Source`."""
    problems = report.problems(where)
    losses = Losses(report, _WORDS)
    for place, document in documents(stream, where, report, limit=document_limit(stream)):
        for frame in _frames(document, 0):
            for number, row in enumerate(_rows(frame)):
                yield from _read(row, at(place, f"row {number}"), losses, problems)


def _frames(document: object, depth: int) -> Iterator[dict[str, Any]]:
    if isinstance(document, dict):
        if isinstance(_fields(document), list):
            yield document
            return
        document = list(document.values())
    if isinstance(document, list) and depth < _DEEPEST:
        for item in document:
            if isinstance(item, dict | list):
                yield from _frames(item, depth + 1)


def _fields(frame: Mapping[str, Any]) -> Any:
    schema = frame.get("schema")
    return schema.get("fields") if isinstance(schema, dict) else frame.get("fields")


def _rows(frame: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a frame by the names of its columns; none of one that has no spans."""
    data = frame.get("data")
    values = data.get("values") if isinstance(data, dict) else None
    columns: dict[str, list[Any]] = {}
    for place, field in enumerate(_fields(frame)):
        if isinstance(field, dict) and isinstance(field.get("name"), str):
            column = values[place] if isinstance(values, list) and place < len(values) else field.get("values")
            columns[field["name"]] = column if isinstance(column, list) else []
    for number in range(len(columns.get("spanID", ()))):
        yield {name: column[number] for name, column in columns.items() if number < len(column)}


def _read(row: Mapping[str, Any], place: str, losses: Losses, problems: Problems) -> Iterator[Record]:
    faults: list[Fault] = []
    try:
        record = read_span(_as_jaeger(row), _resource(row, faults), faults, losses)
    except FormatError as error:
        losses.forget()
        problems(Problem(code=REJECTED, where=at(place, error.where), expected=error.expected, found=error.found))
        return
    losses.kept()
    tell(faults, place, problems, record)
    yield record


def _as_jaeger(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row in the names of Jaeger's JSON, which Grafana's are made after."""
    parent = row.get("parentSpanID")
    references = [{"refType": "CHILD_OF", "traceID": row.get("traceID"), "spanID": parent}] if parent else []
    others = (one for one in _listed(row, "references") if isinstance(one, dict))
    references += [{"refType": "FOLLOWS_FROM", "traceID": one.get("traceID"), "spanID": one.get("spanID")} for one in others]
    told = {
        SPAN_KIND: row.get("kind"),
        STATUS_CODE: _code(row.get("statusCode")),
        STATUS_DESCRIPTION: row.get("statusMessage"),
        SCOPE_NAMES[0]: row.get("instrumentationLibraryName"),
        SCOPE_VERSIONS[0]: row.get("instrumentationLibraryVersion"),
        TRACE_STATE: row.get("traceState"),
    }
    tags = [*_tags(row, "tags"), *(_tag(key, value) for key, value in told.items() if isinstance(value, str) and value)]
    return {
        "traceID": row.get("traceID"),
        "spanID": row.get("spanID"),
        "operationName": row.get("operationName"),
        "references": references,
        "startTime": _micros(row, "startTime"),
        "duration": _micros(row, "duration"),
        "tags": tags,
        "logs": [_log(log) for log in _listed(row, "logs") if isinstance(log, dict)],
    }


def _code(code: object) -> str | None:
    return _CODES.get(code.lower() if isinstance(code, str) else code) if isinstance(code, str | int) else None


def _log(log: Mapping[str, Any]) -> dict[str, Any]:
    fields = _tags(log, "fields")
    name = log.get("name")
    if isinstance(name, str) and name and all(field["key"] != "event" for field in fields):
        fields.append(_tag("event", name))
    time = _scaled(log.get("timestamp"))
    return {"timestamp": log.get("timestamp") if time is None else time, "fields": fields}


def _micros(row: Mapping[str, Any], name: str) -> int:
    time = _scaled(row.get(name))
    if time is None:
        raise FormatError(name, "milliseconds", describe(row.get(name)))
    return time


def _scaled(value: object) -> int | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and 0 <= value < _LARGEST:
        return round(value * _MILLI)
    return None


def _resource(row: Mapping[str, Any], faults: list[Fault]) -> Resource:
    tags = read_tags({"tags": _tags(row, "serviceTags")}, "tags", faults)
    service = row.get("serviceName")
    if isinstance(service, str) and service:
        tags = [(SERVICE_NAME, service), *(tag for tag in tags if tag[0] != SERVICE_NAME)]
    return Resource(attributes=as_attributes(tags, "serviceTags", faults))


def _listed(row: Mapping[str, Any], name: str) -> list[Any]:
    """A column of lists, which an inspector may show as JSON text."""
    value = row.get(name)
    value = decoded_json(value)[0] if isinstance(value, str) else value
    return value if isinstance(value, list) else []


def _tags(row: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return [_tag(one["key"], one.get("value")) for one in _listed(row, name) if isinstance(one, dict) and isinstance(one.get("key"), str)]


def _tag(key: str, value: Any) -> dict[str, Any]:
    kinds: dict[type, str] = {bool: "bool", int: "int64", float: "float64"}
    return {"key": key, "type": kinds.get(type(value), "string"), "value": value}
