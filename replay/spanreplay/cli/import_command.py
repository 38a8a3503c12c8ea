"""``spanreplay import``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spanreplay.cli.failing import EXIT_UNREADABLE
from spanreplay.cli.fetching import fetching
from spanreplay.cli.options import WrongUse, common, complain, many, print_json, print_text, say_some, store_path, verbose
from spanreplay.cli.progress import counted, measured, working

if TYPE_CHECKING:
    from spanreplay.replay.inputs.source import Opened
    from spanreplay.replay.inputs.source_losses import Losses
    from spanreplay.spans.record import Record
    from spanreplay.store.store import AddReport, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    """What became of one source."""

    source: str
    format: str
    added: "AddReport"
    rejected: int
    unreadable: int
    fidelity: Sequence[dict[str, Any]] = field(default_factory=list)
    warnings: Sequence[str] = field(default_factory=list)

    def line(self) -> str:
        """For people."""
        added = self.added
        text = f"{self.source} ({self.format}): "
        if not added.new and not added.changed and not added.beside:
            text += f"nothing new, {added.same} known already" if added.same else "nothing in it"
        else:
            text += f"{added.new} new, {added.same} known already" + (f", {added.changed} changed" if added.changed else "")
        text += f", {self.rejected} left out" if self.rejected else ""
        if added.beside == 1:
            text += "; 1 differs from what was recorded here; the recorded one stays, the other is kept beside it"
        elif added.beside:
            text += f"; {added.beside} differ from what was recorded here; the recorded ones stay, the others are kept beside them"
        return text

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "source": self.source,
            "format": self.format,
            "new": self.added.new,
            "same": self.added.same,
            "changed": self.added.changed,
            "beside": self.added.beside,
            "rejected": self.rejected,
            "unreadable_files": self.unreadable,
            "fidelity": list(self.fidelity),
        }


@click.command("import")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@fetching
@common
@click.pass_context
def command(context: click.Context, sources: tuple[str, ...], store: Path | None, as_json: bool) -> None:
    """Read traces into the store. A second import of the same spans changes nothing.

    SOURCE is a file, a folder, another store, an archive or ARCHIVE#RUN, - for standard input, or a URL of a back end: jaeger+, tempo+,
    langfuse+ or phoenix+http(s)://HOST with /TRACEID, or with a search such as /?service=NAME&since=2h. A format is recognised by its
    content. Of several, one that cannot be read does not keep the others out; the exit code is 3 then. In a folder, files that are no
    traces are passed over and listed.

    \b
    spanreplay import traces.jsonl
    spanreplay import traces/ more.json
    """  # noqa: D301
    done, failed = _import_all(sources, store_path(store))
    if as_json:
        errors = [{"source": source, "error": why} for source, why, _ in failed]
        print_json({"schema": 1, "imports": [one.to_json() for one in done], "errors": errors})
    for one in done:
        if not as_json:
            print_text(_safe(one.line()))
        say_some(one.warnings, "  ")
    for _, why, _ in failed:
        complain(f"Error: {why}")
    if failed and done:
        complain(f"Error: {many(len(failed), 'source')} of {len(sources)} could not be read; the others were imported")
    if failed:
        context.exit(max(code for _, _, code in failed))


def _safe(text: str) -> str:
    from spanreplay.replay.showing import safe

    return safe(text)


def _import_all(sources: Sequence[str], path: Path) -> tuple[list[_Done], list[tuple[str, str, int]]]:
    """What was imported, and what could not be, with the reason why and the exit code that it has."""
    from spanreplay.cli.stored import ready_store
    from spanreplay.cli.target import is_store, open_any
    from spanreplay.replay.inputs.report import UnreadableSource
    from spanreplay.store.errors import StoreError

    sources_opened: list[tuple[str, Opened | None]] = []
    done: list[_Done] = []
    failed: list[tuple[str, str, int]] = []
    for source in sources:
        try:
            sources_opened.append((source, None if is_store(source) else open_any(*_of_archive(source))))
        except WrongUse as error:
            failed.append((source, error.message, error.exit_code))
        except UnreadableSource as error:
            failed.append((source, str(error), EXIT_UNREADABLE))
    if sources_opened:  # else no store is made
        with ready_store(path, create=True) as into:
            for source, opened in sources_opened:
                try:
                    done.append(_import_store(into, source) if opened is None else _import(into, source, opened))
                except WrongUse as error:
                    failed.append((source, error.message, error.exit_code))
                except UnreadableSource as error:
                    failed.append((source, str(error), EXIT_UNREADABLE))
                except StoreError as error:
                    if opened is not None or Path(source).resolve() == path.resolve():
                        raise
                    failed.append((source, str(error), EXIT_UNREADABLE))
    return done, failed


def _of_archive(source: str) -> tuple[str, str]:
    """An archive and the run in it that is wanted; any other SOURCE as it is.

    Raises:
        WrongUse: the archive has no such run, or the run is one of a SOURCE that is imported as a whole only.
    """
    from spanreplay.cli.target import in_archive, is_store, split
    from spanreplay.replay.inputs.archive import is_archive

    where, run = split(source)
    if run and is_archive(where):
        return where, in_archive(where, run)
    if run and (is_store(where) or Path(where).exists()):
        raise WrongUse(f"{source}: one run can be imported of an archive, anything else as a whole; import {where}")
    return source, ""


def _import_store(into: "Store", source: str) -> _Done:
    from spanreplay.replay.importing import import_records

    with working(f"importing {source}") as advance:
        damaged: list[str] = []
        added = import_records(into, counted(_all_of(Path(source), damaged), advance), _losses_of(Path(source)), advance)
    warnings = [f"{line} It is left out, and its run incomplete." for line in damaged]
    return _Done(source=source, format="store", added=added, rejected=added.rejected, unreadable=0, warnings=warnings)


def _import(into: "Store", source: str, opened: "Opened") -> _Done:
    from spanreplay.replay.importing import import_records

    report = opened.report
    with working(f"importing {source}", total=opened.size) as advance:
        read = counted(opened.records, advance) if opened.size is None else measured(opened.records, lambda: report.position, advance)
        added = import_records(into, read, report.losses, advance)
    where, run = _of_archive(source)
    if run and not (added.new or added.same or added.changed or added.beside or added.rejected):
        raise WrongUse(f"{where} has no run whose id begins with {run!r}; spanreplay show {where} shows those that it has")
    return _Done(
        source=source,
        format=opened.format,
        added=added,
        rejected=added.rejected + report.rejected,
        unreadable=len(report.unreadable),
        fidelity=list(report.fidelity),
        warnings=report.warnings(full=verbose()),
    )


def _losses_of(path: Path) -> "Losses":
    """What another store knows that its inputs had lost."""
    from spanreplay.cli.stored import ready_store

    with ready_store(path) as other:
        return other.source_losses()


def _all_of(path: Path, damaged: list[str]) -> "Iterator[Record]":
    """Every record of another store; what is not what was written is named."""
    from spanreplay.cli.stored import ready_store

    with ready_store(path) as other:
        found = other.query("SELECT trace_id FROM spans UNION SELECT trace_id FROM logs ORDER BY trace_id")
        traces = [str(row[0]) for row in found.rows]
        yield from other.traces(traces, damaged=damaged)
        yield from other.logs(traces, damaged=damaged)
