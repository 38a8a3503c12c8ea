"""LangSmith: runs as its API and SDK give them, as an array, a line each, or in pages (``{"runs": […], "cursors": {…}}``).

A run may have its ``child_runs`` in it. How a run becomes a span: :mod:`spanreplay.replay.inputs.tables.langsmith`.
"""

from collections.abc import Iterator, Mapping
from typing import BinaryIO, Final

from spanreplay.replay.inputs.identifiers import SpanIds
from spanreplay.replay.inputs.input_stream import document_limit
from spanreplay.replay.inputs.json_stream import documents, key_paths
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.replay.inputs.tables.langsmith import order_of, span_of
from spanreplay.replay.model import Json
from spanreplay.spans.record import Record

NAME: Final = "langsmith-json"

_LISTS: Final = ("runs", "data")
_MARKS: Final = frozenset({"trace_id", "dotted_order", "parent_run_id", "session_id", "parent_run_ids", "child_run_ids"})


def handles(head: bytes) -> bool:
    """Whether there is a run: something with a ``run_type`` and a name that only runs have."""
    paths = key_paths(head, depth=2)
    return any(
        f"{place}run_type" in paths and any(f"{place}{name}" in paths for name in _MARKS)
        for place in ("", *(f"{name}." for name in _LISTS))
    )


def read(stream: BinaryIO, where: str, report: ReadReport) -> Iterator[Record]:
    """Reads the spans document by document; see :class:`spanreplay.replay.inputs.format.Source`."""
    ids = SpanIds()
    limit = document_limit(stream)
    for place, document in documents(stream, where, report, limit=limit, starts=("runs", "run_type"), lists=_LISTS):
        for at, run in sorted(_runs(document, place), key=lambda found: order_of(found[1])):
            span = span_of(run, ids, report) if isinstance(run, dict) else None
            if span is None:
                report.reject(where, at, "a LangSmith run with id and start time", _lacks(run))
            else:
                yield span


def _runs(document: Json, place: str) -> Iterator[tuple[str, Json]]:
    """Every run, those inside others too, with its place."""
    left: list[tuple[str, Json]] = [(place, document)]
    while left:
        at, value = left.pop()
        if isinstance(value, list):
            left.extend(
                (f"{at}[{number}]" if at != place else f"{at}: [{number}]", item) for number, item in reversed(list(enumerate(value)))
            )
            continue
        if isinstance(value, dict):
            listed = next((name for name in _LISTS if isinstance(value.get(name), list)), None)
            if listed is not None and "run_type" not in value:
                left.append((f"{at}: {listed}", value[listed]))
                continue
            if isinstance(value.get("child_runs"), list):
                left.append((f"{at}.child_runs", value["child_runs"]))
        yield at, value


def _lacks(run: Json) -> str:
    if not isinstance(run, Mapping):
        return f"a value of another kind ({type(run).__name__})"
    missing = [name for name in ("id", "start_time") if not run.get(name)]
    return f"one without {', '.join(missing)}" if missing else f"one that began at {str(run.get('start_time'))[:40]!r}"
