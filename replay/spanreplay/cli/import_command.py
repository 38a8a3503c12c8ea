"""``spanreplay import``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spanreplay.cli.failing import EXIT_UNREADABLE
from spanreplay.cli.options import common, complain, many, print_json, print_text, say_some, store_path

if TYPE_CHECKING:
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
        if not added.new and not added.changed:
            text += f"nothing new, {added.same} known already" if added.same else "nothing in it"
        else:
            text += f"{added.new} new, {added.same} known already" + (f", {added.changed} changed" if added.changed else "")
        return text + (f", {self.rejected} left out" if self.rejected else "")

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "source": self.source,
            "format": self.format,
            "new": self.added.new,
            "same": self.added.same,
            "changed": self.added.changed,
            "rejected": self.rejected,
            "unreadable_files": self.unreadable,
            "fidelity": list(self.fidelity),
        }


@click.command("import")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@common
@click.pass_context
def command(context: click.Context, sources: tuple[str, ...], store: Path | None, as_json: bool) -> None:
    """Read traces into the store. A second import of the same spans changes nothing.

    SOURCE is a file, a folder, another store, or - for standard input; a format is recognised by its content. Of several, one that cannot
    be read does not keep the others out; the exit code is 3 then.

    \b
    spanreplay import traces.jsonl
    spanreplay import traces/ more.json
    """  # noqa: D301
    from spanreplay.cli.stored import ready_store
    from spanreplay.cli.target import refuse_url
    from spanreplay.replay.source import UnreadableSource
    from spanreplay.store.errors import StoreError

    for source in sources:
        refuse_url(source)
    path = store_path(store)
    done: list[_Done] = []
    failed: list[tuple[str, str]] = []
    with ready_store(path, create=True) as opened:
        for source in sources:
            try:
                done.append(_import(opened, source))
            except UnreadableSource as error:
                failed.append((source, str(error)))
            except StoreError as error:
                if not _is_other_store(source, path):
                    raise
                failed.append((source, str(error)))
    with ready_store(path):
        pass
    if as_json:
        errors = [{"source": source, "error": why} for source, why in failed]
        print_json({"schema": 1, "imports": [one.to_json() for one in done], "errors": errors})
    for one in done:
        if not as_json:
            print_text(_safe(one.line()))
        say_some(one.warnings, "  ")
    for _, why in failed:
        complain(f"Error: {why}")
    if failed and done:
        complain(f"Error: {many(len(failed), 'source')} of {len(sources)} could not be read; the others were imported")
    if failed:
        context.exit(EXIT_UNREADABLE)


def _safe(text: str) -> str:
    from spanreplay.replay.showing import safe

    return safe(text)


def _is_other_store(source: str, path: Path) -> bool:
    from spanreplay.cli.target import is_store

    return is_store(source) and Path(source).resolve() != path.resolve()


def _import(store: "Store", source: str) -> _Done:
    from spanreplay.cli.progress import counted, working
    from spanreplay.cli.target import is_store
    from spanreplay.replay.source import open_source

    with working(f"importing {source}") as advance:
        if is_store(source):
            added = store.add(counted(_all_of(Path(source)), advance), origin="import")
            return _Done(source=source, format="store", added=added, rejected=added.rejected, unreadable=0)
        opened = open_source(source)
        added = store.add(counted(opened.records, advance), origin="import")
    return _Done(
        source=source,
        format=opened.format,
        added=added,
        rejected=added.rejected + opened.report.rejected,
        unreadable=len(opened.report.unreadable),
        fidelity=list(opened.report.fidelity),
        warnings=opened.report.warnings(),
    )


def _all_of(path: Path) -> "Iterator[Record]":
    """Every record of another store."""
    from spanreplay.cli.stored import ready_store

    with ready_store(path) as other:
        found = other.query("SELECT trace_id FROM spans UNION SELECT trace_id FROM logs ORDER BY trace_id")
        traces = [str(row[0]) for row in found.rows]
        yield from other.traces(traces)
        yield from other.logs(traces)
