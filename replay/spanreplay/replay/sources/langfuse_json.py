"""Langfuse: traces with their observations, and lists of observations, as JSON or a line each.

Read are the download of the trace page (``{"trace", "observations"}``), the answers of the public API (a trace with its observations;
``{"data", "meta"}`` of both versions), the observations of the blob storage export, and arrays of any of these. How an observation becomes
a span: :mod:`spanreplay.replay.inputs.tables.langfuse`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import BinaryIO, Final, NamedTuple

from spanreplay.replay.inputs.identifiers import SpanIds
from spanreplay.replay.inputs.input_stream import document_limit
from spanreplay.replay.inputs.json_stream import documents, key_paths
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.replay.inputs.tables.langfuse import Row, row_of, span_of, trace_attributes
from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import whole
from spanreplay.spans.record import Record

NAME: Final = "langfuse-json"

_PLACES: Final = ("", "data.", "observations.", "trace.observations.", "data.observations.")
_OBSERVATION: Final = (("traceId", "parentObservationId"), ("trace_id", "parent_observation_id"), ("traceId", "completionStartTime"))
_TRACE: Final = frozenset({"projectId", "bookmarked", "sessionId", "userId", "htmlPath", "public", "release", "environment"})
_STARTS: Final = frozenset(("trace", "observations", "traceId", "trace_id"))
_LISTS: Final = frozenset(("observations", "data"))


def handles(head: bytes) -> bool:
    """Whether there is an observation in the beginning, or a trace with several of the fields that only Langfuse's have."""
    paths = key_paths(head, depth=3)
    if any(place + name in paths and place + other in paths for place in _PLACES for name, other in _OBSERVATION):
        return True
    return any(
        f"{place}id" in paths and f"{place}timestamp" in paths and sum(f"{place}{name}" in paths for name in _TRACE) > 2
        for place in ("trace.", "", "data.")
    )


def read(stream: BinaryIO, where: str, report: ReadReport) -> Iterator[Record]:
    """Reads the spans document by document; see :class:`spanreplay.replay.inputs.format.Source`."""
    ids = SpanIds()
    pages = _Pages()
    limit = document_limit(stream)
    for place, document in documents(stream, where, report, limit=limit, starts=_STARTS, lists=_LISTS):
        for found in _parts(document, place, pages):
            yield from _spans(found, where, ids, report)
    pages.tell(report)


class _Part(NamedTuple):
    """Observations of one trace, or one without its trace."""

    place: str
    trace: dict[str, Json]
    observations: list[Json]


class _Pages:
    """The pages of an answer that are here, against how many there are: ``meta`` tells it, with a total or with a cursor to the next."""

    def __init__(self) -> None:
        self._items = 0
        self._total = 0
        self._goes_on = False

    def see(self, page: Mapping[str, Json], listed: list[Json]) -> None:
        """One page that is here."""
        meta = page.get("meta")
        if isinstance(meta, dict):
            self._items += len(listed)
            total, limit, pages = (whole(meta.get(name)) or 0 for name in ("totalItems", "limit", "totalPages"))
            self._total = max(self._total, total, (pages - 1) * limit + 1 if pages > 1 and not total else 0)
            self._goes_on = bool(meta.get("cursor"))

    def tell(self, report: ReadReport) -> None:
        """All is read: notes what is not here."""
        missing = max(self._total - self._items, int(self._goes_on))
        if missing:
            detail = f"on pages that are not here: Langfuse has {self._total} and {self._items} came" if self._total else "on later pages"
            advice = "get every page of the answer, and read them as one file or array"
            report.note("pages-missing", detail, advice=advice, spans=missing, lost=f"what is {detail}")


def _parts(document: Json, place: str, pages: _Pages) -> Iterator[_Part]:
    for at, page in _items(document, place, "["):
        listed = page.get("data") if isinstance(page, dict) else None
        if isinstance(page, dict) and isinstance(listed, list):
            pages.see(page, listed)
        for where, item in _items(listed, at, "data[") if isinstance(listed, list) else ((at, page),):
            yield _part(item, where)


def _items(value: Json, place: str, opening: str) -> Iterator[tuple[str, Json]]:
    if not isinstance(value, list):
        yield place, value
        return
    for number, item in enumerate(value):
        yield f"{place}: {opening}{number}]", item


def _part(item: Json, place: str) -> _Part:
    if not isinstance(item, dict):
        return _Part(place, {}, [item])
    inner = item.get("trace")
    trace: dict[str, Json] = inner if isinstance(inner, dict) else item
    lists = [given for held in (item, trace) if isinstance(given := held.get("observations"), list) and _some(given)]
    if not lists:
        return _Part(place, {}, [item])
    seen = {str(observation.get("id")) for observation in lists[0] if isinstance(observation, dict)}
    more = [one for one in lists[-1] if isinstance(one, dict) and str(one.get("id")) not in seen]
    return _Part(place, {key: value for key, value in trace.items() if key != "observations"}, [*lists[0], *more])


def _some(observations: list[Json]) -> bool:
    return any(isinstance(observation, dict) for observation in observations)


def _spans(found: _Part, where: str, ids: SpanIds, report: ReadReport) -> Iterator[Record]:
    trace = row_of(found.trace)
    rows = [row_of(item) if isinstance(item, dict) else {} for item in found.observations]
    first = _first(rows) if trace else None
    for number, row in enumerate(rows):
        metadata = row.get("metadata")
        span = span_of(row, trace, ids, report)
        if span is None:
            place = f"{found.place}: observations[{number}]" if trace else found.place
            expected = "a Langfuse observation with id, trace and start time"
            report.reject(where, place, expected, _lacks(found.observations[number], trace))
            continue
        if number == first:
            told = trace_attributes(trace, metadata)
            span = replace(span, attributes={**span.attributes, **{k: v for k, v in told.items() if k not in span.attributes}})
        yield span


def _first(rows: list[Row]) -> int | None:
    """The observation that stands for the trace: the earliest of those whose parent is not among them."""
    known = {row.get("id") for row in rows if isinstance(row.get("id"), str)}
    tops = [
        number for number, row in enumerate(rows) if not isinstance(parent := row.get("parent_observation_id"), str) or parent not in known
    ]
    return min(tops or range(len(rows)), key=lambda number: (str(rows[number].get("start_time")), number), default=None)


def _lacks(item: Json, trace: Row) -> str:
    if not isinstance(item, Mapping):
        return f"a value of another kind ({type(item).__name__})"
    if "observations" in item or ("timestamp" in item and "traceId" not in item):
        return "a trace without its observations"
    row = {"trace_id": trace.get("id"), **row_of(item)}
    missing = [name for name in ("id", "trace_id", "start_time") if not row.get(name)]
    return (
        f"one without {', '.join(missing)}"
        if missing
        else f"one with start time {str(row['start_time'])[:40]!r} and id {str(row['id'])[:40]!r}"
    )
