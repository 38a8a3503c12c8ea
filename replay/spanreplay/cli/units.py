"""Every run of a store or a SOURCE, one recorded command after the other: memory holds one of them at a time."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spanreplay.cli.filtering import Filters
from spanreplay.cli.options import WrongUse, say_some, store_path, verbose
from spanreplay.cli.rerunning import recorded_here
from spanreplay.cli.stored import ready_store, records_of, runs_of
from spanreplay.cli.target import is_bare_command, is_source, is_store, open_any, split, unreadable_recordings

if TYPE_CHECKING:
    from spanreplay.replay.inputs.report import UnreadableSource
    from spanreplay.replay.model import Run
    from spanreplay.spans.record import Record
    from spanreplay.store.rows import RunRow
    from spanreplay.store.store import Store

_PAGE: Final = 500
_STEPS_AT_ONCE: Final = 500
"""Runs of so many steps are read together."""
_ONE_AND_ITS_COMMAND: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One recorded command with all its runs, or one run that belongs to none."""

    runs: Sequence["Run"]
    """Those that were chosen, in the order they began."""
    siblings: Sequence["Run"]
    """All of the command's."""
    records: Sequence["Record"]
    ours: bool
    """The command was run by this user, and recorded into this store."""

    @property
    def focus(self) -> tuple[str, ...]:
        """Ids of the chosen runs; empty where they are all that there are."""
        chosen = {run.run_id for run in self.runs}
        every = all(run.run_id in chosen or is_bare_command(run, self.siblings) for run in self.siblings)
        return () if every else tuple(run.run_id for run in self.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A run that was chosen."""

    run_id: str
    traces: Sequence[str]
    steps: int

    @classmethod
    def of(cls, row: "RunRow") -> "Row":
        """What is needed of a row of the store to read the run."""
        return cls(run_id=row.run_id, traces=row.trace_ids, steps=row.n_steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """What was found: how many, and each when it is asked for."""

    store: "Store"
    path: Path
    found: Sequence[tuple[str | None, Sequence[str]]]
    """Command and chosen runs."""
    rows: Sequence["Row"]
    """Every chosen run, in the order they began."""
    apart: bool
    """Each run by itself."""
    unreadable: Sequence["UnreadableSource"] = ()
    """Recordings of a folder that cannot be read: nobody knows what their runs were."""

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Unit]:
        return filter(None, (self._read(*one) for one in self.found))

    def every(self) -> Iterator["Run"]:
        """Each chosen run alone, in the order they began: a few are read at once."""
        return read_runs(self.store, self.rows)

    def _read(self, command_id: str | None, run_ids: Sequence[str]) -> Unit | None:
        """``None``: it was pruned meanwhile."""
        with self.store.reading():
            together = command_id is not None and not self.apart
            traces = self.store.traces_of_command(command_id) if command_id is not None and together else self.store.traces_of(run_ids[0])
            records = records_of(self.store, traces)
            runs = runs_of(self.store, records)
            ours = recorded_here(self.store, run_ids[0], command_id if together else None)
            # The command has the seeds of a run, and an exit code that is this run's own only where it had no other.
            only = together or (
                command_id is not None and len(self.store.find_runs(command_id=command_id, limit=3)) <= _ONE_AND_ITS_COMMAND
            )
        chosen = [r for r in runs if r.run_id in run_ids]
        siblings = [r for r in runs if r.command_id == command_id] if only else chosen
        return Unit(runs=chosen, siblings=siblings, records=records, ours=ours) if chosen else None


@contextmanager
def every_run(target: str | None, store: Path | None, filters: Filters, *, apart: bool) -> Iterator[Units]:
    """The runs that meet the filters, oldest first.

    Args:
        target: a store or a SOURCE; left out, the store of this command.
        store: ``--store``.
        filters: which of them.
        apart: each by itself; else all of a command together, which is what executing it again makes.

    Raises:
        WrongUse: ``target`` names one run.
        StoreError: the store cannot be read.
        UnreadableSource: the source cannot be read.
    """
    if target is None:
        with ready_store(store_path(store)) as opened:
            yield _chosen(opened, store_path(store), filters, apart=apart)
        return
    where, run = split(target)
    if run or not is_source(target):
        raise WrongUse(f"--all takes a store, a file or a folder; {target} names one run")
    if is_store(where):
        with ready_store(Path(where)) as opened:
            yield _chosen(opened, Path(where), filters, apart=apart)
        return
    with tempfile.TemporaryDirectory(prefix="spanreplay-") as folder, ready_store(Path(folder) / "store", create=True) as into:
        unreadable = _read(where, into)
        yield replace(_chosen(into, Path(where), filters, apart=apart), unreadable=unreadable)


def _read(where: str, into: "Store") -> "Sequence[UnreadableSource]":
    """A SOURCE into a store of its own: whatever its size, its runs are then read one by one. Gives what of it cannot be read."""
    from spanreplay.cli.progress import counted, working
    from spanreplay.replay.importing import import_records

    opened = open_any(where)
    with working(f"reading {where}") as advance:
        import_records(into, counted(opened.records, advance), opened.report.losses, advance)
    say_some(opened.report.warnings(full=verbose()))
    return unreadable_recordings(opened.report)


def _chosen(store: "Store", path: Path, filters: Filters, *, apart: bool) -> Units:
    found: dict[str, tuple[str | None, list[str]]] = {}
    rows: list[Row] = []
    with store.reading():
        while page := store.find_runs(**filters.asked(), limit=_PAGE, offset=len(rows)):
            for row in page:
                rows.append(Row.of(row))
                key = row.run_id if apart or row.command_id is None else row.command_id
                found.setdefault(key, (row.command_id, []))[1].append(row.run_id)
    return Units(store=store, path=path, found=[*found.values()][::-1], rows=rows[::-1], apart=apart)


def read_runs(store: "Store", rows: Sequence[Row], damaged: list[str] | None = None) -> Iterator["Run"]:
    """The runs that rows name, in their order, a few read at once; those that are there no more are left out.

    Args:
        store: where they are.
        rows: the runs.
        damaged: where given, what is not what was written counts as lost and is named here, instead of an error.
    """
    for few in _few(rows):
        wanted = {row.run_id for row in few}
        with store.reading():
            records = records_of(store, [*dict.fromkeys(trace for row in few for trace in row.traces)], damaged)
            runs = {run.run_id: run for run in runs_of(store, records) if run.run_id in wanted}
        yield from (runs[row.run_id] for row in few if row.run_id in runs)


def _few(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    few: list[Row] = []
    for row in rows:
        if few and sum(one.steps for one in few) + row.steps > _STEPS_AT_ONCE:
            yield few
            few = []
        few.append(row)
    if few:
        yield few
