"""MLflow: traces as ``Trace.to_json`` and ``to_dict`` give them, arrays of them, search results, and the artifact with a trace's spans.

Ids are base64, of 3.5.0 and of 2.x hex; every attribute is JSON text by itself, and stays as it is, since that is how MLflow sends spans
by OTLP too. What a trace says of itself goes to its root span, by the names that the OTLP export has for it.
Source: ``mlflow/entities/span.py``, ``trace.py``, ``trace_info.py`` and ``trace_info_v2.py`` (3.17.2).
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final, NamedTuple

from spanreplay.replay.inputs.identifiers import SpanIds, trace_id
from spanreplay.replay.inputs.input_stream import document_limit
from spanreplay.replay.inputs.json_stream import documents, key_paths
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.replay.inputs.tables.values import plain
from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import jsonable, too_deep, whole
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, STATUS_OK, STATUS_UNSET, EventRecord, LinkRecord, Record, SpanRecord, Value

NAME: Final = "mlflow-json"

REQUEST_ID: Final = "mlflow.traceRequestId"
TAG: Final = "mlflow.traceTag."
METADATA: Final = "mlflow.traceMetadata."
INFO: Final = "mlflow.traceInfo."
_NAMED: Final[Mapping[str, str]] = {"mlflow.trace.session": a.SESSION_ID, "mlflow.trace.user": a.USER_ID}
"""Metadata of a trace by the attribute of its root span."""
_METADATA_FIELDS: Final = ("trace_metadata", "request_metadata")
_PREFIX: Final = "tr-"
_STATUSES: Final[Mapping[str, int]] = {"OK": STATUS_OK, "ERROR": STATUS_ERROR}
_EMPTY: Final[tuple[Json, ...]] = (None, "", {}, [])
_MARKS: Final = ("mlflow.traceRequestId", "mlflow.spanType", "mlflow.spanInputs")
_STARTS: Final = frozenset(("info", "traces", "spans"))
_LISTS: Final = frozenset(("spans", "traces"))


def handles(head: bytes) -> bool:
    """Whether there is a trace with ``info`` and ``data`` with spans, or a list of spans with attributes of MLflow."""
    paths = key_paths(head, depth=5)
    whole_trace = any(f"{place}data.spans" in paths and f"{place}info" in paths for place in ("", "traces."))
    return whole_trace or any(f"spans.attributes.{mark}" in paths for mark in _MARKS)


def read(stream: BinaryIO, where: str, report: ReadReport) -> Iterator[Record]:
    """Reads the spans document by document; see :class:`spanreplay.replay.inputs.format.Source`."""
    limit = document_limit(stream)
    for place, document in documents(stream, where, report, limit=limit, starts=_STARTS, lists=_LISTS):
        for trace in _traces(document, place):
            if not trace.spans:
                report.reject(where, trace.place, "an MLflow trace with spans", "one without; search with include_spans")
            yield from _spans(trace, where, report)


class _Trace(NamedTuple):
    """One trace of a document."""

    place: str
    info: Mapping[str, Json]
    spans: list[Json]


def _traces(document: Json, place: str) -> Iterator[_Trace]:
    listed = document.get("traces") if isinstance(document, dict) else document
    items = listed if isinstance(listed, list) else [document]
    for number, item in enumerate(items):
        at = f"{place}: [{number}]" if isinstance(listed, list) else place
        found = item if isinstance(item, dict) else {}
        data = found.get("data")
        spans = (data if isinstance(data, dict) else found).get("spans")
        info = found.get("info")
        yield _Trace(at, info if isinstance(info, dict) else {}, spans if isinstance(spans, list) else [])


def _spans(trace: _Trace, where: str, report: ReadReport) -> Iterator[Record]:
    ids = SpanIds()
    told = _told(trace.info)
    for number, item in enumerate(trace.spans):
        span = _span(item, trace.info, told, ids) if isinstance(item, dict) else None
        if span is None:
            place = f"{trace.place}: spans[{number}]"
            report.reject(where, place, "an MLflow span with its ids and its start time", f"{json.dumps(item, default=str)[:60]} …")
            continue
        report.note(
            "mlflow-kept",
            "comes without resource, scope and the kind that OpenTelemetry gives a span: MLflow keeps none",
            advice="set MLFLOW_TRACE_ENABLE_OTLP_DUAL_EXPORT, send OTLP to a Collector with a file exporter too, and import that file",
        )
        yield span


def _span(item: Mapping[str, Any], info: Mapping[str, Json], told: Mapping[str, Value], ids: SpanIds) -> SpanRecord | None:
    context = item.get("context")
    own = {**item, **context} if isinstance(context, dict) else item
    named = trace_id(_bare(own.get("trace_id")) or _bare(info.get("trace_id", info.get("request_id"))))
    made = ids.of(named, own.get("span_id")) if named else None
    start, end = (_time(own, names) for names in (("start_time_unix_nano", "start_time"), ("end_time_unix_nano", "end_time")))
    if named is None or made is None or start is None:
        return None
    parent = ids.of(named, own.get("parent_span_id", own.get("parent_id")))
    given = own.get("attributes")
    attributes = {str(name): plain(value) for name, value in given.items() if value is not None} if isinstance(given, dict) else {}
    if parent is None:
        attributes = {**told, **attributes}
    status = own.get("status")
    code, message = (
        (status.get("code"), status.get("message")) if isinstance(status, dict) else (own.get("status_code"), own.get("status_message"))
    )
    return SpanRecord(
        trace_id=named,
        span_id=made,
        parent_span_id=parent,
        name=str(own.get("name") or ""),
        start_ns=start,
        end_ns=end,
        status=_STATUSES.get(str(code).removeprefix("STATUS_CODE_"), STATUS_UNSET),
        status_message=message if isinstance(message, str) else "",
        attributes=attributes,
        events=tuple(_events(own.get("events"), start)),
        links=tuple(_links(own.get("links"))),
    )


def _told(info: Mapping[str, Json]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, value in info.items():
        if name in _METADATA_FIELDS and isinstance(value, dict):
            found |= {_NAMED.get(key, f"{METADATA}{key}"): _plain(inner) for key, inner in value.items() if inner not in _EMPTY}
        elif name == "tags" and isinstance(value, dict):
            found |= {f"{TAG}{key}": _plain(inner) for key, inner in value.items() if inner not in _EMPTY}
        elif value not in _EMPTY:
            found[f"{INFO}{name}"] = _plain(value)
    return found


def _events(given: Json, start: int) -> Iterator[EventRecord]:
    for event in given if isinstance(given, list) else ():
        if isinstance(event, dict):
            at = _time(event, ("time_unix_nano", "timestamp"))
            told = event.get("attributes")
            attributes = {str(name): plain(value) for name, value in told.items()} if isinstance(told, dict) else {}
            yield EventRecord(name=str(event.get("name") or ""), time_ns=start if at is None else at, attributes=attributes)


def _links(given: Json) -> Iterator[LinkRecord]:
    for link in given if isinstance(given, list) else ():
        if isinstance(link, dict):
            named, made = trace_id(_bare(link.get("trace_id"))), SpanIds().of("", link.get("span_id"))
            told = link.get("attributes")
            if named and made:
                attributes = {str(name): plain(value) for name, value in told.items()} if isinstance(told, dict) else {}
                yield LinkRecord(trace_id=named, span_id=made, attributes=attributes)


def _bare(given: Json) -> Json:
    """An id without what MLflow puts before it: ``tr-``, or ``trace:/<location>/``."""
    return given.rpartition("/")[2].removeprefix(_PREFIX) if isinstance(given, str) and (given.startswith((_PREFIX, "trace:/"))) else given


def _time(item: Mapping[str, Any], names: tuple[str, str]) -> int | None:
    at = next((number for name in names if (number := whole(item.get(name))) is not None), None)
    return at if at is None or at >= 0 else None


def _plain(value: Json) -> Value:
    if isinstance(value, str | bool | int | float):
        return value
    return json.dumps(value if not too_deep(value) else jsonable(value), ensure_ascii=False, separators=(",", ":"))
