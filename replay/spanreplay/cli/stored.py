"""The store as commands use it: opened with every journal loaded and every run derived."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spanreplay.cli.options import detail, many, say, say_some
from spanreplay.cli.progress import working
from spanreplay.replay.model import Reason, Run
from spanreplay.replay.reasons import OTHER_VERSION
from spanreplay.semconv.attributes import PROCESS_ID
from spanreplay.spans.record import Record, SpanRecord

if TYPE_CHECKING:
    from spanreplay.replay.rebuilding.joins import Join
    from spanreplay.store.compaction import CompactionReport
    from spanreplay.store.store import Store


@contextmanager
def ready_store(path: Path, *, create: bool = False, whole: bool = False) -> "Iterator[Store]":
    """An open store with every journal loaded and every run derived; says what of it could not be.

    Where it cannot be written (a medium that is read-only or full, a shell of DuckDB that has it open, somebody who writes for long), it is
    as it was loaded last.

    Args:
        path: its folder.
        create: make it if it is not there, and write to it.
        whole: nothing less than all of it will do.

    Raises:
        StoreError: it is not there, or cannot be read; or written, where it has to be.
    """
    from spanreplay.store.errors import FullStoreError, LockedStoreError, ReadOnlyStoreError
    from spanreplay.store.store import Store

    with Store.open(path, create=create) as store:
        must_write = create or whole
        try:
            with working("loading what was recorded"):
                report = store.compact() if must_write else store.compact(held_s=_HELD_SECONDS, locked_s=_LOCKED_SECONDS)
            _derive(path, store)
            _tell(path, report)
        except (ReadOnlyStoreError, FullStoreError, LockedStoreError) as error:
            if must_write:
                raise
            _tell_unloaded(store, error)
        yield store


_HELD_SECONDS: Final = 3.0
"""How long to wait for who has the database open, before what is loaded already has to do."""
_LOCKED_SECONDS: Final = 10.0
"""The same of who writes it, who goes step by step: longer than a step takes."""


def _derive(path: Path, store: "Store") -> None:
    stale = store.stale_traces()
    if not stale:
        return
    from spanreplay.replay.rebuilding.runs import index

    damaged: list[str] = []
    with working("deriving runs", total=len(stale)) as advance:
        index(store, damaged=damaged, advance=advance)
    say_some([f"{path}: {line} Its run is incomplete." for line in damaged])


def _tell_unloaded(store: "Store", error: Exception) -> None:
    from spanreplay.replay.showing import size

    left = store.unloaded()
    lacking = [f"{size(left.bytes)} that {many(left.journals, 'process', 'processes')} wrote"] if left.bytes else []
    lacking += [f"the runs of {many(left.traces, 'trace')}"] if left.traces else []
    if lacking:
        say(f"not loaded: {' and '.join(lacking)}. {error}")


def _tell(path: Path, report: "CompactionReport") -> None:
    lost = []
    if report.crc_errors:
        lost.append(f"{path}: {many(report.crc_errors, 'damaged line')} of what was recorded left out")
    if report.rejected:
        lost.append(f"{path}: {many(report.rejected, 'record')} left out, of a form that the store cannot hold")
    lost += [f"{path}: {name} not loaded: {why}" for name, why in report.refused]
    say_some(lost)
    if report.records:
        detail(f"{path}: loaded {many(report.records, 'record')} of {many(report.journals, 'process', 'processes')}")


def records_of(store: "Store", traces: Sequence[str], damaged: list[str] | None = None) -> list[Record]:
    """Every span and log record of these traces; where ``damaged`` is given, what is not what was written is named there and left out."""
    return [*store.traces(traces, damaged=damaged), *store.logs(traces, damaged=damaged)]


def processes_of(records: Sequence[Record]) -> list[str]:
    """The processes that spanreplay recorded them in."""
    return sorted({str(r.attributes[PROCESS_ID]) for r in records if isinstance(r, SpanRecord) and PROCESS_ID in r.attributes})


def runs_of(store: "Store", records: Sequence[Record], join: "Join | None" = None, *, only: Collection[str] | None = None) -> list[Run]:
    """The runs in these records, or only those of them that are wanted by their ids, with what their processes are known to have lost."""
    from spanreplay.replay.rebuilding.runs import build_runs

    traces = sorted({record.trace_id for record in records if isinstance(record, SpanRecord)})
    losses, source_losses = store.losses(processes_of(records)), store.source_losses(traces)
    runs = build_runs(records, losses=losses, source_losses=source_losses, join=join, only=only)
    others = store.imported_versions(traces)
    return [_with_others(run, others) for run in runs] if others else runs


def told_versions(runs: Sequence[Run], records: Sequence[Record]) -> list[Run]:
    """The runs, with a remark where the records have a span twice and say different things of it."""
    from spanreplay.replay.rebuilding.tree import disagree

    first: dict[tuple[str, str], SpanRecord] = {}
    found: dict[tuple[str, str], None] = {}
    for record in records:
        if isinstance(record, SpanRecord):
            one = first.setdefault((record.trace_id, record.span_id), record)
            if one is not record and disagree(one, record):
                found[record.trace_id, record.span_id] = None
    others = [(trace, span, None) for trace, span in found]
    return [_with_others(run, others, "the fuller one is shown, with what only the other has") for run in runs] if others else list(runs)


def _with_others(
    run: Run, others: Sequence[tuple[str, str, str | None]], kept: str = "that is kept beside it, in the table span_versions"
) -> Run:
    steps = {(step.trace_id, step.span_id): step.seq for step in run.steps}
    found = {(trace, span): steps.get((trace, span)) for trace, span, run_id in others if run_id == run.run_id or (trace, span) in steps}
    if not found:
        return run
    numbers = sorted(seq for seq in found.values() if seq is not None)
    detail = (
        f"{many(len(found), 'span')} of this run {'was' if len(found) == 1 else 'were'} imported with other content as well"
        f"{f' (step {_listed(numbers)})' if numbers else ''}; {kept}"
    )
    return replace(run, grade_reasons=(Reason(code=OTHER_VERSION, detail=detail), *run.grade_reasons))


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")
