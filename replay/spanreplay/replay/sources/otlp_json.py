"""OTLP JSON: files of the Collector's file exporter, saved request bodies, and what back ends make of it (Jaeger v3, Tempo).

What a document may look like: :mod:`spanreplay.spans.otlp_json`; how documents may lie in the input:
:mod:`spanreplay.replay.inputs.json_stream`.
"""

from collections.abc import Iterator
from typing import BinaryIO, Final

from spanreplay.replay.inputs.formats.jaeger_answers import is_of_jaeger, restored
from spanreplay.replay.inputs.formats.otlp_answers import (
    is_of_grafana,
    is_of_tempo,
    is_partial,
    note_grafana,
    note_part,
    note_tempo,
    refuse_error,
)
from spanreplay.replay.inputs.input_stream import document_limit
from spanreplay.replay.inputs.json_stream import documents, key_paths
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.spans.errors import FormatError
from spanreplay.spans.json_parsing import whole_document
from spanreplay.spans.otlp_json import LOG_CONTAINERS, OTHER_SIGNALS, SPAN_CONTAINERS, WRAPPERS, decode
from spanreplay.spans.otlp_lines import PlainDocument, PlainDocuments
from spanreplay.spans.record import Record

NAME: Final = "otlp-json"

_CONTAINERS: Final = frozenset((*SPAN_CONTAINERS, *LOG_CONTAINERS, *OTHER_SIGNALS))
_GROUPS: Final = frozenset(("scopeSpans", "scope_spans", "scopeLogs", "scope_logs", "instrumentationLibrarySpans"))
_PATHS: Final = _CONTAINERS | _GROUPS | {f"{wrapper}.{name}" for wrapper in WRAPPERS for name in _CONTAINERS}
_ERROR: Final = frozenset(("error.httpCode", "error.message"))
_LISTS: Final = frozenset(("spans", "logRecords", "log_records"))


def handles(head: bytes) -> bool:
    """Whether the text begins with an object, or objects, that hold one of the OTLP containers, or with Jaeger's answer that has none."""
    paths = key_paths(head, depth=2)
    return not _PATHS.isdisjoint(paths) or paths >= _ERROR


def read(stream: BinaryIO, where: str, report: ReadReport) -> Iterator[Record]:
    """Reads the records document by document; see :class:`spanreplay.replay.inputs.format.Source`."""
    problems = report.problems(where)
    limit = document_limit(stream)
    plain = PlainDocuments(problems)
    readers = (PlainDocument, whole_document)
    for place, document in documents(stream, where, report, limit=limit, starts=_CONTAINERS, lists=_LISTS, readers=readers):
        if isinstance(document, PlainDocument):
            yield from plain.decode(document, place)
            continue
        before = report.spans
        try:
            refuse_error(document, place)
            if is_of_grafana(document):
                for record in decode(document, place, problems):
                    note_grafana(report, record)
                    yield record
            elif is_of_jaeger(document):
                for record in decode(document, place, problems):
                    yield restored(record, report)
            elif is_of_tempo(document):
                for record in decode(document, place, problems):
                    note_tempo(report, record)
                    yield record
            else:
                yield from decode(document, place, problems)
        except FormatError as error:
            report.reject(where, error.where, error.expected, error.found)
        if is_partial(document):
            note_part(report, report.spans - before, document.get("message"))
