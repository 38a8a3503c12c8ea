"""What of a run in a store was changed by hand since it was written, as gaps of its record."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from spanreplay.replay.model import Run
from spanreplay.replay.rebuilding.completeness import Gap
from spanreplay.replay.rebuilding.runs import derive_groups

if TYPE_CHECKING:
    from spanreplay.store.integrity import Change
    from spanreplay.store.rows import RunRow, StepRow
    from spanreplay.store.store import Store

CHANGED: Final = "changed-in-store"
"""A row of a store is not what was written."""
_ADVICE: Final = "restore runs.duckdb from a copy, or import the run again into a new store: nobody but spanreplay writes to its tables"


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
    with store.reading():
        found = store.changes(ids)
        unsealed = [change.run_id for change in found if change.unsealed and change.run_id is not None]
        named = store.name_changes(unsealed, *_derived(store, unsealed)) if unsealed else []
    told = {change.run_id for change in named}
    found = [change for change in found if not (change.unsealed and change.run_id in told)]
    steps = {(step.trace_id, step.span_id): (run.run_id, step.seq) for run in runs for step in run.steps}
    traces = {trace_id: run.run_id for run in reversed(runs) for trace_id in run.trace_ids}
    return [_gap(change, steps, traces, ids) for change in (*found, *named)]


def _derived(store: "Store", run_ids: Sequence[str]) -> "tuple[list[RunRow], list[StepRow]]":
    traces = dict.fromkeys(trace_id for run_id in run_ids for trace_id in store.traces_of(run_id))
    return derive_groups(store, store.connected([*traces]), [])


def _gap(change: "Change", steps: dict[tuple[str, str], tuple[str, int]], traces: dict[str, str], ids: Sequence[str]) -> Gap:
    run_id, seq = steps.get((change.trace_id or "", change.span_id or ""), (None, change.seq))
    owner = run_id or (change.run_id if change.run_id in ids else traces.get(change.trace_id or "")) or next(iter(ids), "")
    other = f" of run {change.run_id}" if change.run_id not in (None, owner) else ""
    where = f" of trace {change.trace_id}" if change.trace_id is not None and change.span_id is None else ""
    return Gap(
        code=CHANGED,
        detail=f"the table {change.table}{other}{where} is not as it was written: {change.detail}",
        run_id=owner,
        step=seq if change.seq is None else change.seq,
        trace_id=change.trace_id,
        span_id=change.span_id,
        span_name="",
        field=change.column,
        advice=_ADVICE,
    )
