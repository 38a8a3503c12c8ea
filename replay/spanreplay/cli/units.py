"""Every run of a store or a SOURCE, one recorded command after the other: memory holds one of them at a time."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spanreplay.cli.filtering import Filters
from spanreplay.cli.options import WrongUse, say_some, store_path, verbose
from spanreplay.cli.rerunning import recorded_here
from spanreplay.cli.stored import ready_store, records_of, runs_of
from spanreplay.cli.target import is_bare_command, is_source, is_store, open_any, split

if TYPE_CHECKING:
    from spanreplay.replay.model import Run
    from spanreplay.spans.record import Record
    from spanreplay.store.store import Store

_PAGE: Final = 500


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


@dataclass(frozen=True, slots=True)
class Units:
    """What was found: how many, and each when it is asked for."""

    store: "Store"
    path: Path
    found: Sequence[tuple[str | None, Sequence[str]]]
    """Command and chosen runs."""

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Unit]:
        for command_id, run_ids in self.found:
            with self.store.reading():
                traces = self.store.traces_of(run_ids[0]) if command_id is None else self.store.traces_of_command(command_id)
                records = records_of(self.store, traces)
                runs = runs_of(self.store, records)
                ours = recorded_here(self.store, run_ids[0], command_id)
            siblings = [r for r in runs if (r.run_id in run_ids if command_id is None else r.command_id == command_id)]
            chosen = [r for r in siblings if r.run_id in run_ids]
            if chosen:  # else it was pruned meanwhile
                yield Unit(runs=chosen, siblings=siblings, records=records, ours=ours)


@contextmanager
def every_run(target: str | None, store: Path | None, filters: Filters) -> Iterator[Units]:
    """The runs that meet the filters, oldest first.

    Args:
        target: a store or a SOURCE; left out, the store of this command.
        store: ``--store``.
        filters: which of them.

    Raises:
        WrongUse: ``target`` names one run.
        StoreError: the store cannot be read.
        UnreadableSource: the source cannot be read.
    """
    if target is None:
        with ready_store(store_path(store)) as opened:
            yield _chosen(opened, store_path(store), filters)
        return
    where, run = split(target)
    if run or not is_source(target):
        raise WrongUse(f"--all takes a store, a file or a folder; {target} names one run")
    if is_store(where):
        with ready_store(Path(where)) as opened:
            yield _chosen(opened, Path(where), filters)
        return
    with tempfile.TemporaryDirectory(prefix="spanreplay-") as folder, ready_store(Path(folder) / "store", create=True) as into:
        _read(where, into)
        yield _chosen(into, Path(where), filters)


def _read(where: str, into: "Store") -> None:
    """A SOURCE into a store of its own: whatever its size, its runs are then read one by one."""
    from spanreplay.cli.progress import counted, working
    from spanreplay.replay.importing import import_records

    opened = open_any(where)
    with working(f"reading {where}") as advance:
        import_records(into, counted(opened.records, advance), opened.report.losses)
    say_some(opened.report.warnings(full=verbose()))


def _chosen(store: "Store", path: Path, filters: Filters) -> Units:
    found: dict[str, tuple[str | None, list[str]]] = {}
    offset = 0
    with store.reading():
        while rows := store.find_runs(**filters.asked(), limit=_PAGE, offset=offset):
            offset += len(rows)
            for row in rows:
                found.setdefault(row.command_id or row.run_id, (row.command_id, []))[1].append(row.run_id)
    return Units(store, path, [*found.values()][::-1])
