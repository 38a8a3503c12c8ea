"""What a command works on: ``last``, ``last~2``, a run id or its prefix, a SOURCE, or ``SOURCE#RUN``."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from spanreplay.cli.options import store_path
from spanreplay.replay.model import Run
from spanreplay.semconv.attributes import PROCESS_ID
from spanreplay.spans.record import Record, SpanRecord

_LAST: Final = re.compile(r"last(?:~(\d+))?")


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
    fidelity: Sequence[dict[str, Any]] = field(default_factory=tuple)
    warnings: Sequence[str] = field(default_factory=tuple)
    store: Path | None = None

    def one(self) -> Run:
        """The run, where the command works on one.

        Raises:
            click.UsageError: the target names several.
        """
        if len(self.runs) != 1:
            names = ", ".join(r.run_id[:12] for r in self.runs[:8])
            raise click.UsageError(f"this needs one run; the target has {len(self.runs)}: {names}. Name one as SOURCE#RUN, or by its id")
        return self.runs[0]


def is_source(target: str) -> bool:
    """What exists as a path, or has a ``/``, ``.`` or ``:``, or is ``-``, is a SOURCE."""
    bare = target.partition("#")[0]
    return bare == "-" or any(c in bare for c in "/.:") or Path(bare).exists()


def load(target: str, store: Path | None) -> Loaded:
    """Find the runs that ``target`` names.

    Raises:
        click.UsageError: nothing, or more than one run, has this name.
        StoreError: the store cannot be read.
        UnreadableSource: the source cannot be read.
    """
    if not is_source(target):
        return _from_store(store_path(store), target)
    where, _, run = target.partition("#")
    if Path(where).is_dir() and ((Path(where) / "runs.duckdb").exists() or (Path(where) / "journal").is_dir()):
        return _from_store(Path(where), run or "last")
    return _from_source(where, run)


def _from_store(path: Path, name: str) -> Loaded:
    with ready_store(path) as store:
        run_id = _run_id(store, name, path)
        traces = store.traces_of(run_id)
        records = _records(store, traces)
        runs = _runs(store, records)
        chosen = [r for r in runs if r.run_id == run_id]
        siblings = chosen
        command = chosen[0].command_id if chosen else None
        if command is not None:
            others = [t for t in store.traces_of_command(command) if t not in traces]
            if others:
                records = [*records, *_records(store, others)]
                runs = _runs(store, records)
                chosen = [r for r in runs if r.run_id == run_id]
            siblings = [r for r in runs if r.command_id == command]
    if not chosen:
        raise click.UsageError(f"run {run_id} is listed in {path} but has no spans there any more")
    return Loaded(runs=chosen, records=records, siblings=siblings, format="store", spans=_count(records), store=path)


def _is_bare_command(run: Run, runs: Sequence[Run]) -> bool:
    """A recorded command whose agents are runs of their own: nothing to show, though a replay compares its exit code."""
    return run.is_command and not run.steps and any(r.command_id == run.command_id for r in runs if r is not run)


def _records(store: Any, traces: Sequence[str]) -> list[Record]:
    return [*store.traces(traces), *store.logs(traces)]


def _runs(store: Any, records: Sequence[Record]) -> list[Run]:
    from spanreplay.replay.runs import build_runs

    processes = {str(r.attributes[PROCESS_ID]) for r in records if isinstance(r, SpanRecord) and PROCESS_ID in r.attributes}
    return build_runs(records, losses=store.losses(sorted(processes)))


def _count(records: Iterable[Record]) -> int:
    return sum(isinstance(r, SpanRecord) for r in records)


@contextmanager
def ready_store(path: Path, *, create: bool = False) -> Iterator[Any]:
    """An open store with every journal loaded and every run derived."""
    from spanreplay.replay.runs import index
    from spanreplay.store.store import Store

    with Store.open(path, create=create) as store:
        store.compact()
        index(store)
        yield store


def _run_id(store: Any, name: str, path: Path) -> str:
    last = _LAST.fullmatch(name)
    if last is not None:
        back = int(last[1] or 0)
        rows = store.find_runs(limit=back + 1)
        if len(rows) <= back:
            raise click.UsageError(f"{name}: the store {path} has {len(rows)} runs. Record one with: spanreplay record -- python agent.py")
        found: str = rows[back].run_id
        return found
    ids: list[str] = store.run_ids(name)
    if name in ids:
        return name
    if not ids:
        raise click.UsageError(f"no run of {path} has an id that begins with {name!r}; spanreplay runs lists them")
    if len(ids) > 1:
        raise click.UsageError(
            f"{len(ids)} runs of {path} have ids that begin with {name!r}: {', '.join(i[:12] for i in ids[:6])}; write more of it"
        )
    return ids[0]


def _from_source(where: str, name: str) -> Loaded:
    from spanreplay.replay.runs import build_runs
    from spanreplay.replay.source import open_source

    opened = open_source(where)
    records = list(opened.records)
    runs = build_runs(records)
    chosen = [r for r in runs if r.run_id.startswith(name)] if name else [r for r in runs if not _is_bare_command(r, runs)]
    if name and not chosen:
        raise click.UsageError(
            f"{where} has no run whose id begins with {name!r}; it has {', '.join(r.run_id[:12] for r in runs[:8]) or 'none'}"
        )
    command = chosen[0].command_id if len(chosen) == 1 else None
    return Loaded(
        runs=chosen,
        records=records,
        siblings=[r for r in runs if r.command_id == command] if command is not None else chosen,
        format=opened.format,
        spans=_count(records),
        fidelity=[*opened.report.fidelity],
        warnings=opened.report.warnings(),
    )
