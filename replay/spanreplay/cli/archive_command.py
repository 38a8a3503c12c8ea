"""``spanreplay archive``."""

from pathlib import Path

import click

from spanreplay.cli.options import common, many, print_json, say, store_path
from spanreplay.cli.progress import working
from spanreplay.cli.prune_command import in_words
from spanreplay.cli.when import moment


@click.command("archive")
@click.argument("destination", metavar="FOLDER")
@click.option("--older-than", metavar="AGE", help="Only runs in which nothing has happened since: 30d, 12h, 4w, or a date.")
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Not the latest N runs.")
@click.option("--session", "sessions", multiple=True, metavar="ID", help="Only runs of this session. May be repeated.")
@click.option("--prune", "prune", is_flag=True, help="Delete from the store what was archived, unless it is on hold or has changed since.")
@common
def command(
    destination: str, older_than: str | None, keep: int | None, sessions: tuple[str, ...], prune: bool, store: Path | None, as_json: bool
) -> None:
    """Copy runs into Parquet files, by day, that any tool reads and that one run is found in by reading little.

    FOLDER is a path, or a URL such as s3://bucket/runs (pip install 'spanreplay[archive]' and its package, here s3fs). Archiving the same
    runs again changes nothing. FOLDER#RUN is a SOURCE of show, replay, import …

    \b
    spanreplay archive runs-2026 --older-than 90d --prune
    spanreplay replay runs-2026#3f2a -- python agent.py
    """  # noqa: D301
    from spanreplay.cli.stored import ready_store
    from spanreplay.replay.archiving import write_archive
    from spanreplay.store.archive_folder import ArchiveFolder
    from spanreplay.store.retention import Limits, Retention

    before_ns = None if older_than is None else moment(older_than, "--older-than")
    limits = Limits(before_ns=before_ns, keep=keep, sessions=frozenset(sessions))
    path = store_path(store)
    folder = ArchiveFolder(destination)
    with ready_store(path, whole=prune) as opened:
        retention = Retention(path)
        bundles, in_use = retention.archivable(limits)
        marks = retention.fingerprints([trace for bundle in bundles for trace in bundle.traces])
        with working(f"archiving to {destination}", total=sum(len(bundle.runs) for bundle in bundles)) as advance:
            done = write_archive(opened, bundles, folder, marks, advance)
    pruned = None
    if prune and marks:
        with working("pruning"):
            pruned = retention.prune(limits if limits != Limits() else Limits(keep=0), only=marks)
    if as_json:
        print_json(
            {
                "schema": 1,
                "archive": destination,
                "runs": done.runs,
                "spans": done.spans,
                "logs": done.logs,
                "files": done.files,
                "bytes": done.bytes,
                "in_use": in_use,
                "pruned": None if pruned is None else {"runs": pruned.runs, "spans": pruned.spans, "bytes": pruned.bytes},
            }
        )
        return
    say(f"{destination}: {many(done.runs, 'run')}, {many(done.spans, 'span')}, {in_words(done.bytes)} in {many(done.files, 'file')}")
    if in_use:
        say(f"{many(in_use, 'run')} left out, being in use: a process that records may still add to {'it' if in_use == 1 else 'them'}")
    if pruned is not None:
        kept = sum(len(bundle.listed) for bundle in bundles) - pruned.runs
        still = f"; {many(kept, 'run')} stayed, being on hold, in use, needed by another, or changed since" if kept else ""
        say(f"pruned {many(pruned.runs, 'run')} from {path}, {in_words(pruned.bytes)} less{still}")
