"""What a command works on: ``last``, ``last~2``, a run id or its prefix, a SOURCE, or ``SOURCE#RUN``."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spanreplay.cli.joining import asked_join, traces_to_join
from spanreplay.cli.main import STDIN
from spanreplay.cli.options import WrongUse, detail, many, say_some, store_path, verbose
from spanreplay.cli.rerunning import recorded_here
from spanreplay.cli.stored import ready_store, records_of, runs_of, told_versions
from spanreplay.replay.model import Run
from spanreplay.replay.showing import begins, short_id
from spanreplay.spans.record import Record, SpanRecord

if TYPE_CHECKING:
    from spanreplay.replay.inputs.report import ReadReport, UnreadableSource
    from spanreplay.replay.inputs.source import Opened
    from spanreplay.store.store import Store

_LAST: Final = re.compile(r"last(?:~(\d{1,9}))?")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_NO_RECORDINGS: Final = frozenset({".md", ".rst", ".py", ".toml", ".ini", ".cfg", ".yaml", ".yml", ".html", ".xml", ".sh"})
"""Names of files that may lie beside recordings and are none; any other file that cannot be read is one that cannot be judged."""
_NAMED: Final = 6
"""How many runs an error lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The runs that a TARGET names, and the spans they were rebuilt from."""

    runs: Sequence[Run]
    records: Sequence[Record]
    """Everything they were rebuilt from; other runs of the same traces or command may be among it."""
    siblings: Sequence[Run]
    """All runs of the same recorded command, the named ones included."""
    format: str
    spans: int
    asked: bool = False
    """The TARGET names one run by its id."""
    fidelity: Sequence[dict[str, Any]] = field(default_factory=tuple)
    warnings: Sequence[str] = field(default_factory=tuple)
    store: Path | None = None
    ours: bool = False
    """They were recorded into this store, and not brought to it."""
    unreadable: Sequence["UnreadableSource"] = ()
    """Recordings of a folder that cannot be read, where no run was named: nobody knows what their runs were."""

    def one(self) -> Run:
        """The run, where the command works on one.

        Raises:
            WrongUse: the target names several.
        """
        if len(self.runs) != 1:
            names = f": {_names(self.runs)}. Name one as SOURCE#RUN, or by its id" if self.runs else ""
            raise WrongUse(f"this needs one run; the target has {len(self.runs) or 'none'}{names}")
        return self.runs[0]


def is_source(target: str) -> bool:
    """What exists as a path, or has a ``/``, ``.`` or ``:``, or is ``-``, is a SOURCE; ``last`` never is one."""
    bare, _ = split(target)
    return _LAST.fullmatch(target) is None and (bare == "-" or any(c in bare for c in "/.:") or _exists(bare))


def split(target: str) -> tuple[str, str]:
    """A SOURCE and the run that it is asked for, which is empty where there is none."""
    if _exists(target):
        return target, ""
    where, _, run = target.rpartition("#") if "#" in target else (target, "", "")
    return "-" if where == STDIN else where, run


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def is_store(where: str) -> bool:
    """Whether a SOURCE is a store."""
    from spanreplay.store import folder

    return where != "-" and folder.is_store(Path(where))


def open_any(where: str, run: str = "") -> "Opened":
    """Open a SOURCE that is no store: a file, a folder, an archive, standard input, or what a back end has.

    Args:
        where: the SOURCE.
        run: of an archive, only what belongs to the run whose id begins so.

    Raises:
        WrongUse: it is a URL that does not say which back end is there.
        UnreadableSource: it cannot be read.
    """
    from spanreplay.replay.inputs.archive import is_archive, open_archive
    from spanreplay.replay.inputs.remote import is_remote, open_remote, registry
    from spanreplay.replay.inputs.source import open_source

    if is_remote(where):
        from spanreplay.cli.fetching import access

        return open_remote(where, access())
    if is_archive(where):
        return open_archive(where, run)
    if _URL.match(where):
        known = ", ".join(f"{scheme}+{where}" for scheme in registry())
        raise WrongUse(f"{where}: say which back end is there: {known}")
    return open_source(where)


def load(target: str, store: Path | None, *, damaged: list[str] | None = None, alone: bool = False) -> Loaded:
    """Find the runs that ``target`` names, and say what of it could not be read.

    Args:
        target: names them.
        store: where to look for what is no SOURCE.
        damaged: where given, what is not what was written to a store is left out and named here, instead of an error.
        alone: of a run of a store no sibling is wanted but its command itself; a command may have hundreds.

    Raises:
        WrongUse: nothing, or more than one run, has this name.
        StoreError: the store cannot be read.
        UnreadableSource: the source cannot be read.
    """
    if not target:
        raise WrongUse("the TARGET is empty; leave it out for the last run")
    if not is_source(target):
        loaded = _from_store(store_path(store), target, damaged, alone=alone)
    else:
        where, run = split(target)
        loaded = _from_store(Path(where), run or "last", damaged, alone=alone) if is_store(where) else _from_source(where, run)
    say_some(loaded.warnings)
    where = str(loaded.store) if loaded.store is not None else target
    detail(f"read {many(loaded.spans, 'span')} and {many(len(loaded.records) - loaded.spans, 'log record')} ({loaded.format}) from {where}")
    return loaded


class NoRunInStore(WrongUse):
    """A store has no such run, or nothing of it but that it was there."""

    def __init__(self, message: str, store: Path, run_id: str | None = None) -> None:
        super().__init__(message)
        self.store = store
        self.run_id = run_id


class _NoSuchRun(NoRunInStore):
    pass


def _from_store(path: Path, name: str, damaged: list[str] | None, *, alone: bool) -> Loaded:
    try:
        return _found_in_store(path, name, damaged, alone=alone)
    except _NoSuchRun:
        _tell_pruned(name, path)
        raise


def _found_in_store(path: Path, name: str, damaged: list[str] | None, *, alone: bool) -> Loaded:
    with ready_store(path) as store, store.reading():
        run_id = _run_id(store, name, path)
        traces = store.traces_of(run_id)
        records = records_of(store, traces, damaged)
        runs = runs_of(store, records)
        chosen = [r for r in runs if r.run_id == run_id]
        siblings = chosen
        command = chosen[0].command_id if chosen else None
        if command is not None:
            others = [t for t in store.traces_of_command(command) if t not in traces]
            if others:
                records = [*records, *records_of(store, others, damaged)]
                runs = runs_of(store, records, only=_with_its_command(store, run_id, command) if alone else None)
                chosen = [r for r in runs if r.run_id == run_id]
            siblings = [r for r in runs if r.command_id == command]
        join = asked_join()
        if join is not None and chosen:
            records = records_of(store, list(dict.fromkeys([*traces, *traces_to_join(store, chosen[0], join)])), damaged)
            runs = runs_of(store, records, join)
            chosen = siblings = [r for r in runs if set(traces) <= set(r.trace_ids)]
        ours = recorded_here(store, run_id, command)
    if not chosen:
        raise NoRunInStore(f"run {run_id} is listed in {path} but has no spans there any more", path, run_id)
    return Loaded(
        runs=chosen,
        records=records,
        siblings=siblings,
        format="store",
        spans=_count(records),
        asked=_by_id(name),
        store=path,
        ours=ours,
    )


def _with_its_command(store: "Store", run_id: str, command_id: str) -> set[str] | None:
    """The ids of a run and of its command, if that is a run of its own; ``None`` where not all runs of the store are derived."""
    if store.stale_traces():
        return None
    return {run_id, *(row.run_id for row in store.find_runs(command_id=command_id) if row.is_command)}


def _by_id(name: str) -> bool:
    return bool(name) and _LAST.fullmatch(name) is None


def is_bare_command(run: Run, runs: Sequence[Run]) -> bool:
    """A recorded command whose agents are runs of their own: nothing to show, though a replay compares its exit code."""
    return run.is_command and not run.steps and any(r.command_id == run.command_id for r in runs if r is not run)


def _count(records: Iterable[Record]) -> int:
    return sum(isinstance(r, SpanRecord) for r in records)


def _names(runs: Sequence[Run]) -> str:
    return _listed([r.run_id for r in runs])


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(short_id(i) for i in ids[:_NAMED]) + (f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else "")


def _run_id(store: "Store", name: str, path: Path) -> str:
    last = _LAST.fullmatch(name)
    if last is not None:
        back = int(last[1] or 0)
        rows = store.find_runs(limit=1, offset=back)
        if not rows:
            kept = len(store.find_runs(limit=back)) if back else 0
            if kept:
                raise WrongUse(
                    f"{name}: the store {path} has {many(kept, 'run')}; the oldest is {f'last~{kept - 1}' if kept > 1 else 'last'}"
                )
            raise NoRunInStore(
                f"{name}: the store {path} has no run yet. Record one with: spanreplay record -- python agent.py, "
                "or import one with: spanreplay import FILE",
                path,
            )
        return rows[0].run_id
    ids = store.run_ids(name) if name else []
    if name in ids:
        return name
    if not ids:
        message = f"no run of {path} has an id that begins with {name!r}, and no file has that name; spanreplay runs lists the runs"
        raise _NoSuchRun(message, path)
    if len(ids) > 1:
        raise WrongUse(f"{len(ids)} runs of {path} have ids that begin with {name!r}: {_listed(ids)}; write more of it")
    return ids[0]


def _tell_pruned(name: str, path: Path) -> None:
    """A run that is not there because it was deleted is told from one that never was."""
    from spanreplay.store.retention import Retention

    gone = Retention(path).pruned(name) if name else []
    if gone:
        run_id, pruned_ns, by = gone[0]
        when = datetime.fromtimestamp(pruned_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")
        raise WrongUse(
            f"run {run_id} was pruned from {path} on {when} by {by}. If it was archived before, name it as ARCHIVE#{short_id(run_id)}"
        )


def _from_source(where: str, name: str) -> Loaded:
    from spanreplay.cli.progress import counted, working
    from spanreplay.replay.rebuilding.runs import build_runs

    name = in_archive(where, name)
    opened = open_any(where, name)
    with working(f"reading {where}") as advance:
        records = list(counted(opened.records, advance))
        runs = told_versions(build_runs(records, source_losses=opened.report.losses, join=asked_join()), records)
    listed = [r for r in runs if not is_bare_command(r, runs)]
    chosen = _chosen(where, name, runs, listed) if name else listed
    ids = {r.run_id for r in chosen}
    commands = {r.command_id for r in chosen} - {None}
    return Loaded(
        runs=chosen,
        records=records,
        siblings=[r for r in runs if r.run_id in ids or r.command_id in commands],
        format=opened.format,
        spans=_count(records),
        asked=_by_id(name),
        fidelity=[*opened.report.fidelity],
        warnings=opened.report.warnings(full=verbose()),
        unreadable=() if name else unreadable_recordings(opened.report),
    )


def unreadable_recordings(report: "ReadReport") -> list["UnreadableSource"]:
    """The recordings of a folder that cannot be read."""
    return [error for error in report.unreadable if Path(error.file).suffix.lower() not in _NO_RECORDINGS]


def why_unreadable(error: "UnreadableSource") -> str:
    """What is wrong with a recording, which is named beside it."""
    place = f"{error.place}: " if error.place else ""
    return f"the recording cannot be read: {place}expected {error.expected}, found {error.found}"


def in_archive(where: str, name: str) -> str:
    """The id of the run that began last, where that is asked of an archive: it knows without being read."""
    from spanreplay.replay.inputs.archive import is_archive, latest_run

    last = _LAST.fullmatch(name)
    if last is None or not is_archive(where):
        return name
    found = latest_run(where, int(last[1] or 0))
    if found is None:
        raise WrongUse(f"{name}: the archive {where} has no such run; spanreplay show {where} shows those that it has")
    return found


def _chosen(where: str, name: str, runs: Sequence[Run], listed: Sequence[Run]) -> list[Run]:
    last = _LAST.fullmatch(name)
    if last is not None:
        back = int(last[1] or 0)
        newest = sorted(listed, key=lambda r: r.started_ns, reverse=True)
        if back >= len(newest):
            oldest = "" if not newest else f"; the oldest is {f'last~{len(newest) - 1}' if len(newest) > 1 else 'last'}"
            raise WrongUse(f"{name}: {where} has {many(len(newest), 'run') if newest else 'no run'}{oldest}")
        return [newest[back]]
    found = [r for r in runs if begins(r.run_id, name)]
    exact = [r for r in found if r.run_id == name]
    if not found:
        there = f"it has {_names(listed)}" if listed else f"spanreplay show {where} shows those that it has"
        raise WrongUse(f"{where} has no run whose id begins with {name!r}; {there}")
    if len(found) > 1 and not exact:
        raise WrongUse(f"{many(len(found), 'run')} of {where} have ids that begin with {name!r}: {_names(found)}; write more of it")
    return exact or found
