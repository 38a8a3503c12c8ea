"""What of a run in a store was changed by hand since it was written, or lost before it came there, as gaps of its record."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from spanreplay.replay.model import Run
from spanreplay.replay.reasons import DROPPED_ATTRIBUTES
from spanreplay.replay.rebuilding.completeness import Gap, dropped
from spanreplay.replay.rebuilding.runs import derive_groups

if TYPE_CHECKING:
    from spanreplay.store.integrity import Change
    from spanreplay.store.rows import RunRow, StepRow
    from spanreplay.store.store import Store

CHANGED: Final = "changed-in-store"
"""A row of a store is not what was written."""
LOST: Final = "content-lost"
"""Content that a span refers to did not come into the store: the line of the journal that had it was damaged, or was never written."""
_LOST_ADVICE: Final = (
    "a line of the journal was damaged or could not be written, and the content was in it: "
    "import the run from where else it was exported to, or record it again"
)
_ADVICE: Final = "restore runs.duckdb from a copy, or import the run again into a new store: nobody but spanreplay writes to its tables"


def with_changes(store: "Store", runs: Sequence[Run], found: Mapping[str, Sequence[Gap]]) -> dict[str, list[Gap]]:
    """The gaps of some runs, by run id, those of :func:`changed` first.

    What a span lacks because content is not in the store is told as that, not as dropped by the SDK that recorded it.

    Args:
        store: where they are.
        runs: rebuilt from it.
        found: the gaps of their records.

    Raises:
        StoreError: The store cannot be read.
    """
    changes = _changes(store, [run.run_id for run in runs])
    counts = {(change.trace_id, change.span_id): change.dropped_attributes for change in changes if change.dropped_attributes is not None}
    more = _gaps(changes, runs, [run.run_id for run in runs])
    return {
        run_id: [*(gap for gap in more if gap.run_id == run_id), *(kept for gap in listed if (kept := _recounted(gap, counts)) is not None)]
        for run_id, listed in found.items()
    }


def _recounted(gap: Gap, counts: Mapping[tuple[str | None, str | None], int]) -> Gap | None:
    count = counts.get((gap.trace_id, gap.span_id)) if gap.code == DROPPED_ATTRIBUTES else None
    if count is None:
        return gap
    return replace(gap, detail=dropped(count, "attributes")) if count else None


def changed(store: "Store", runs: Sequence[Run], run_ids: Sequence[str] = ()) -> list[Gap]:
    """What was changed of some runs, and which runs of the store have lost the rows of a whole table.

    Args:
        store: where they are.
        runs: rebuilt from it.
        run_ids: of further runs, which cannot be rebuilt.

    Raises:
        StoreError: The store cannot be read.
    """
    ids = [*(run.run_id for run in runs), *run_ids]
    return _gaps(_changes(store, ids), runs, ids)


def _changes(store: "Store", ids: Sequence[str]) -> "list[Change]":
    with store.reading():
        found = store.changes(ids)
        unsealed = [change.run_id for change in found if change.unsealed and change.run_id is not None]
        named = store.name_changes(unsealed, *_derived(store, unsealed)) if unsealed else []
    told = {change.run_id for change in named}
    return [*(change for change in found if not (change.unsealed and change.run_id in told)), *named]


def _gaps(changes: "Sequence[Change]", runs: Sequence[Run], ids: Sequence[str]) -> list[Gap]:
    steps = {(step.trace_id, step.span_id): (run.run_id, step.seq) for run in runs for step in run.steps}
    traces = {trace_id: run.run_id for run in reversed(runs) for trace_id in run.trace_ids}
    return [_gap(change, steps, traces, ids) for change in changes]


def _derived(store: "Store", run_ids: Sequence[str]) -> "tuple[list[RunRow], list[StepRow]]":
    traces = dict.fromkeys(trace_id for run_id in run_ids for trace_id in store.traces_of(run_id))
    return derive_groups(store, store.connected([*traces]), [])


def _gap(change: "Change", steps: dict[tuple[str, str], tuple[str, int]], traces: dict[str, str], ids: Sequence[str]) -> Gap:
    run_id, seq = steps.get((change.trace_id or "", change.span_id or ""), (None, change.seq))
    owner = run_id or (change.run_id if change.run_id in ids else traces.get(change.trace_id or "")) or next(iter(ids), "")
    other = f" of run {change.run_id}" if change.run_id not in (None, owner) else ""
    where = f" of trace {change.trace_id}" if change.trace_id is not None and change.span_id is None else ""
    return Gap(
        code=LOST if change.lost else CHANGED,
        detail=change.detail if change.lost else f"the table {change.table}{other}{where} is not as it was written: {change.detail}",
        run_id=owner,
        step=seq if change.seq is None else change.seq,
        trace_id=change.trace_id,
        span_id=change.span_id,
        span_name="",
        field=change.column,
        advice=_LOST_ADVICE if change.lost else _ADVICE,
    )
