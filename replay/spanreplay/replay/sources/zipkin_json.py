"""Zipkin's JSON, version 2: arrays of spans, arrays of traces, or a span a line.

Form: ``zipkin2-api.yaml`` of openzipkin; how OpenTelemetry is put into it: ``specification/trace/sdk_exporters/zipkin.md``, the exporter of
the Python SDK (1.45) and the Collector's ``pkg/translator/zipkin``.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from spanreplay.replay.inputs.formats.notes import Notes
from spanreplay.replay.inputs.formats.plain import at, tell
from spanreplay.replay.inputs.formats.zipkin_span import ALWAYS, TABLE, read_span
from spanreplay.replay.inputs.identifiers import digest_id
from spanreplay.replay.inputs.input_stream import document_limit
from spanreplay.replay.inputs.json_stream import documents, key_paths
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.spans._anyvalue import Fault
from spanreplay.spans.errors import REJECTED, FormatError, Problem, Problems, describe
from spanreplay.spans.record import Record

NAME: Final = "zipkin-json"

_IDS: Final = frozenset(("traceId", "id"))
_OWN: Final = frozenset(("localEndpoint", "remoteEndpoint", "duration", "annotations", "shared", "debug", "localEndpoint.serviceName"))
"""Fields by which a span of Zipkin is known."""
_OF_OTHERS: Final = frozenset(("spanId", "startTime", "type", "observations", "projectId", "environment", "value", "dataType"))
"""Fields that objects of Langfuse have beside the same ids."""
_STARTS: Final = frozenset(("traceId", "id", "parentId"))
_LISTS: Final = frozenset(("",))


def handles(head: bytes) -> bool:
    """Whether the text begins with objects that have the ids and some fields of Zipkin."""
    paths = key_paths(head, depth=2)
    if not paths >= _IDS or not paths.isdisjoint(_OF_OTHERS):
        return False
    return not paths.isdisjoint(_OWN) or ("timestamp" in paths and any(path.startswith("tags.") for path in paths))


def read(stream: BinaryIO, where: str, report: ReadReport) -> Iterator[Record]:
    """Reads the spans document by document; see :class:`spanreplay.replay.inputs.format.Source`."""
    problems = report.problems(where)
    notes = Notes(report, TABLE, ALWAYS)
    limit = document_limit(stream)
    for place, document in documents(stream, where, report, limit=limit, starts=_STARTS, lists=_LISTS):
        listed = [(raw, at(place, path)) for raw, path in _objects(document, "", 0)]
        servers = _servers([raw for raw, _ in listed])
        for raw, here in listed:
            yield from _read(raw, here, servers, notes, problems)


def _objects(document: object, path: str, depth: int) -> Iterator[tuple[object, str]]:
    """The spans of an array, or of an array of traces."""
    if isinstance(document, list) and depth < 2:
        for index, item in enumerate(document):
            yield from _objects(item, f"{path}[{index}]", depth + 1)
    else:
        yield document, path


_Key = tuple[Any, Any]
_Servers = dict[_Key, Any]


def _servers(spans: list[object]) -> _Servers:
    """The services of the servers that share the id of their client's span, by trace and id, where both are in the document."""
    shared: _Servers = {}
    clients: set[_Key] = set()
    for raw in spans:
        if isinstance(raw, dict) and isinstance(raw.get("id"), str) and isinstance(raw.get("traceId"), str):
            key = raw["traceId"], raw["id"]
            if raw.get("shared") is True:
                shared.setdefault(key, _service(raw))
            else:
                clients.add(key)
    return {key: service for key, service in shared.items() if key in clients}


def _service(raw: dict[str, Any]) -> Any:
    endpoint = raw.get("localEndpoint")
    return endpoint.get("serviceName") if isinstance(endpoint, dict) else None


def _told_apart(raw: dict[str, Any], servers: _Servers, notes: Notes) -> dict[str, Any]:
    """The span with ids of its own: a server has another one than its client, and what happened in the server has that for its parent."""
    trace, own, parent = raw.get("traceId"), raw.get("id"), raw.get("parentId")
    if not isinstance(trace, str) or not isinstance(own, str):
        return raw
    if raw.get("shared") is True and (trace, own) in servers:
        notes.of("id-shared")
        return {**raw, "id": digest_id(f"{own} server"), "parentId": own}
    if isinstance(parent, str) and (trace, parent) in servers and _service(raw) == servers[trace, parent]:
        return {**raw, "parentId": digest_id(f"{parent} server")}
    return raw


def _read(raw: object, place: str, servers: _Servers, notes: Notes, problems: Problems) -> Iterator[Record]:
    faults: list[Fault] = []
    try:
        if not isinstance(raw, dict):
            raise FormatError("", "a span (an object)", describe(raw))  # noqa: TRY301
        span = read_span(_told_apart(raw, servers, notes) if servers else raw, faults, notes)
    except FormatError as error:
        notes.forget()
        problems(Problem(code=REJECTED, where=at(place, error.where), expected=error.expected, found=error.found))
        return
    notes.kept()
    tell(faults, place, problems, span)
    yield span
