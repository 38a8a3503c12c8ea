"""Lists of spans as evaluation tools and test suites keep them: plain JSON objects in an array, in ``{"spans": […]}``, or one a line.

What a span may look like: :mod:`spanreplay.replay.inputs.formats.plain_span`. Lists may be grouped by trace: ``[{"trace_id": …, "spans":
[…]}]``, ``{"TRACE": […]}``, arrays of arrays.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from spanreplay.replay.inputs.formats.notes import Notes
from spanreplay.replay.inputs.formats.plain import at, first, tell
from spanreplay.replay.inputs.formats.plain_heads import form
from spanreplay.replay.inputs.formats.plain_ids import Ids
from spanreplay.replay.inputs.formats.plain_span import CONTEXTS, SPAN_IDS, STARTS, TABLE, TRACE_IDS, Reading, read_record
from spanreplay.replay.inputs.input_stream import document_limit
from spanreplay.replay.inputs.json_stream import documents
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.spans.errors import REJECTED, FormatError, Problem, Problems, describe, join
from spanreplay.spans.record import Record

NAME: Final = "span-list"

_STARTS: Final = frozenset((*TRACE_IDS, *CONTEXTS, *STARTS, "name", "spans"))
_LISTS: Final = frozenset(("", "spans"))
_DEEPEST: Final = 8


def handles(head: bytes) -> bool:
    """Whether the text begins with objects, in some list, that have the ids of a span."""
    return form(head) == "list"


def read(stream: BinaryIO, where: str, report: ReadReport) -> Iterator[Record]:
    """Reads the spans document by document; see :class:`spanreplay.replay.inputs.format.Source`."""
    problems = report.problems(where)
    reading = Reading(Ids(), Notes(report, TABLE), [])
    limit = document_limit(stream)
    for place, document in documents(stream, where, report, limit=limit, starts=_STARTS, lists=_LISTS):
        for raw, path, trace in _spans(document, "", None, 0):
            yield from _read(raw, at(place, path), reading._replace(trace=trace), problems)


def _read(raw: object, place: str, reading: Reading, problems: Problems) -> Iterator[Record]:
    try:
        if not isinstance(raw, dict):
            raise FormatError("", "a span (an object)", describe(raw))  # noqa: TRY301
        records = read_record(raw, reading)
    except FormatError as error:
        reading.notes.forget()
        reading.faults.clear()
        problems(Problem(code=REJECTED, where=at(place, error.where), expected=error.expected, found=error.found))
        return
    reading.notes.kept()
    tell(reading.faults, place, problems, records[0])
    yield from records


def _spans(document: object, path: str, trace: Any, depth: int) -> Iterator[tuple[object, str, Any]]:
    """The objects that are to be spans, with their paths and the id of the trace that they are listed in."""
    if isinstance(document, list) and depth < _DEEPEST:
        for index, item in enumerate(document):
            yield from _spans(item, f"{path}[{index}]", trace, depth + 1)
    elif isinstance(document, dict) and not _is_span(document) and depth < _DEEPEST:
        lists = {name: value for name, value in document.items() if isinstance(value, list)}
        if "spans" in lists:
            inside = first(document, TRACE_IDS)
            yield from _spans(lists["spans"], join(path, "spans"), trace if inside is None else inside, depth + 1)
            return
        for name, value in lists.items():
            yield from _spans(value, join(path, name), name, depth + 1)
        if not lists:
            yield document, path, trace
    else:
        yield document, path, trace


def _is_span(raw: dict[str, Any]) -> bool:
    return first(raw, SPAN_IDS) is not None or any(isinstance(raw.get(name), dict) for name in CONTEXTS)
