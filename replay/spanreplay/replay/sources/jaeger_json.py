"""Jaeger's own JSON: what its UI downloads and its ``/api/traces`` answers, and its documents in Elasticsearch.

Read are answers (``{"data": [trace, …]}``), single traces, arrays of them, and bare spans with their process inside, as Elasticsearch has
them (``_source`` of a hit or of a dump, one a line). Form: ``internal/uimodel`` of Jaeger v2.20. What Jaeger v3 answers is OTLP.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from spanreplay.replay.inputs.formats.jaeger_losses import Losses
from spanreplay.replay.inputs.formats.jaeger_names import NO_SERVICE
from spanreplay.replay.inputs.formats.jaeger_span import read_span
from spanreplay.replay.inputs.formats.jaeger_tags import as_attributes, read_tags
from spanreplay.replay.inputs.formats.plain import at, shown, tell
from spanreplay.replay.inputs.input_stream import document_limit
from spanreplay.replay.inputs.json_stream import documents, key_paths
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.semconv.attributes import SERVICE_NAME
from spanreplay.spans._anyvalue import Fault
from spanreplay.spans.errors import REJECTED, RESOURCE_DROPPED, FormatError, Problem, Problems, describe, join
from spanreplay.spans.record import Record, Resource, SpanRecord

NAME: Final = "jaeger-json"

_TRACE_MARKS: Final = frozenset(
    f"{prefix}{name}"
    for prefix in ("", "data.")
    for name in ("spans.traceID", "spans.spanID", "spans.operationName", "spans.processID", "spans.startTimeMillis")
)
_SPAN_MARKS: Final = tuple(
    frozenset((f"{prefix}traceID", f"{prefix}spanID")) for prefix in ("", "data.", "_source.", "hits.hits._source.", "hits._source.")
)
_PROCESSES: Final = (("traceID", "processes"), ("data.traceID", "data.processes"))
_ANSWER: Final = frozenset(("data", "total", "limit", "offset", "errors"))
_STARTS: Final = frozenset(("data", "traceID", "spans", "_index", "_source"))
_LISTS: Final = frozenset(("spans",))
_DEEPEST: Final = 8


def handles(head: bytes) -> bool:
    """Whether the text begins with a trace, a span or an answer in Jaeger's names."""
    paths = key_paths(head, depth=4)
    if not _TRACE_MARKS.isdisjoint(paths) or any(marks <= paths for marks in _SPAN_MARKS):
        return True
    if any(paths.issuperset(marks) for marks in _PROCESSES) or any(path.endswith("processes.p1.serviceName") for path in paths):
        return True
    return paths >= _ANSWER and not any(path.startswith("data.") for path in paths)


def read(stream: BinaryIO, where: str, report: ReadReport) -> Iterator[Record]:
    """Reads the spans trace by trace; see :class:`spanreplay.replay.inputs.format.Source`."""
    problems = report.problems(where)
    losses = Losses(report)
    limit = document_limit(stream)
    for place, document in documents(stream, where, report, limit=limit, starts=_STARTS, lists=_LISTS):
        try:
            yield from _decode(document, place, report, losses, problems)
        except FormatError as error:
            report.reject(where, at(place, error.where), error.expected, error.found)
    losses.end()


def _decode(document: object, place: str, report: ReadReport, losses: Losses, problems: Problems) -> Iterator[Record]:
    _tell_errors(document, report)
    for owner, path in _owners(document, "", 0):
        if isinstance(owner.get("spans"), list):
            yield from _trace(owner, place, path, report, losses, problems)
        else:
            resource = _resource(owner.get("process"), at(place, join(path, "process")), problems)
            yield from _one(owner, at(place, path), resource, losses, problems, texts=True)


def _tell_errors(document: object, report: ReadReport) -> None:
    errors = document.get("errors") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(errors, list) or not errors:
        return
    message = errors[0].get("msg") if isinstance(errors[0], dict) else errors[0]
    if not document.get("data"):
        raise FormatError("errors", "a trace", f"an answer of Jaeger that says '{shown(message)}'")
    report.note("jaeger-error", f"came in an answer that lacks others: Jaeger said '{shown(message)}'", spans=len(errors))


def _owners(document: object, path: str, depth: int) -> Iterator[tuple[dict[str, Any], str]]:
    """The traces and the bare spans of a document, with their paths in it."""
    if isinstance(document, list) and depth < _DEEPEST:
        for index, item in enumerate(document):
            yield from _owners(item, f"{path}[{index}]", depth + 1)
        return
    if isinstance(document, dict) and depth < _DEEPEST:
        for name in ("data", "_source", "hits"):
            if isinstance(document.get(name), list | dict):
                yield from _owners(document[name], join(path, name), depth + 1)
                return
        if isinstance(document.get("spans"), list) or "spanID" in document:
            yield document, path
            return
        if "data" in document:
            return
    raise FormatError(path, "a trace or span of Jaeger", describe(document))


def _trace(trace: dict[str, Any], place: str, path: str, report: ReadReport, losses: Losses, problems: Problems) -> Iterator[Record]:
    processes = trace.get("processes")
    resources: dict[str, Resource] = {}
    for name, process in (processes if isinstance(processes, dict) else {}).items():
        resources[name] = _resource(process, at(place, join(path, f"processes.{name}")), problems)
    warnings = trace.get("warnings")
    for text in warnings if isinstance(warnings, list) else ():
        report.note("jaeger-warning", f"has a warning of Jaeger ({shown(text)})", spans=len(trace["spans"]))
    for index, raw in enumerate(trace["spans"]):
        here = at(place, join(path, f"spans[{index}]"))
        if not isinstance(raw, dict):
            problems(Problem(code=REJECTED, where=here, expected="a span (an object)", found=describe(raw)))
            continue
        texts = isinstance(raw.get("process"), dict)
        resource = _resource(raw["process"], f"{here}.process", problems) if texts else resources.get(str(raw.get("processID")))
        losses.of("process-missing", resource is None)
        span = raw if raw.get("traceID") is not None else {**raw, "traceID": trace.get("traceID")}
        yield from _one(span, here, resource or Resource(), losses, problems, texts=texts)


def _one(raw: dict[str, Any], place: str, resource: Resource, losses: Losses, problems: Problems, *, texts: bool) -> Iterator[SpanRecord]:
    faults: list[Fault] = []
    try:
        record = read_span(raw, resource, faults, losses, texts=texts)
    except FormatError as error:
        losses.forget()
        problems(Problem(code=REJECTED, where=at(place, error.where), expected=error.expected, found=error.found))
        return
    losses.of("values-text", texts)
    losses.kept()
    tell(faults, place, problems, record)
    yield record


def _resource(process: object, place: str, problems: Problems) -> Resource:
    """A process as the resource it was."""
    if process is None:
        return Resource()
    faults: list[Fault] = []
    if not isinstance(process, dict):
        problems(Problem(code=RESOURCE_DROPPED, where=place, expected="a process (an object)", found=describe(process)))
        return Resource()
    tags = read_tags(process, "tags", faults, texts="tag" in process)
    service = process.get("serviceName")
    if isinstance(service, str) and service and (service != NO_SERVICE or tags) and (SERVICE_NAME, service) not in tags:
        tags.insert(0, (SERVICE_NAME, service))
    resource = Resource(attributes=as_attributes(tags, "tags", faults))
    tell(faults, place, problems)
    return resource
