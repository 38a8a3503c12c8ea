"""OTLP JSON: files of the Collector's file exporter, saved request bodies, and what back ends make of it (Jaeger v3, Tempo).

What a document may look like: :mod:`spanreplay.spans.otlp_json`; how documents may lie in the input: :mod:`spanreplay.replay.json_stream`.
"""

from collections.abc import Iterator
from typing import BinaryIO, Final

from spanreplay.replay.input_stream import document_limit
from spanreplay.replay.json_stream import documents, key_paths
from spanreplay.replay.source import ReadReport
from spanreplay.spans.errors import FormatError
from spanreplay.spans.otlp_json import LOG_CONTAINERS, OTHER_SIGNALS, SPAN_CONTAINERS, WRAPPERS, decode
from spanreplay.spans.record import Record

NAME: Final = "otlp-json"

_CONTAINERS: Final = frozenset((*SPAN_CONTAINERS, *LOG_CONTAINERS, *OTHER_SIGNALS))
_GROUPS: Final = frozenset(("scopeSpans", "scope_spans", "scopeLogs", "scope_logs", "instrumentationLibrarySpans"))
_PATHS: Final = _CONTAINERS | _GROUPS | {f"{wrapper}.{name}" for wrapper in WRAPPERS for name in _CONTAINERS}
_LISTS: Final = frozenset(("spans", "logRecords", "log_records"))


def handles(head: bytes) -> bool:
    """Whether the text begins with an object, or objects, that hold one of the OTLP containers."""
    return not _PATHS.isdisjoint(key_paths(head, depth=2))


def read(stream: BinaryIO, where: str, report: ReadReport) -> Iterator[Record]:
    """Reads the records document by document; see :class:`spanreplay.replay.source.Source`."""
    problems = report.problems(where)
    limit = document_limit(stream)
    for place, document in documents(stream, where, report, limit=limit, starts=_CONTAINERS, lists=_LISTS):
        try:
            yield from decode(document, place, problems)
        except FormatError as error:
            report.reject(where, error.where, error.expected, error.found)
