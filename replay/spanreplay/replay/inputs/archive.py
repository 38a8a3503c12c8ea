"""Archives: runs in Parquet files, written by :mod:`spanreplay.replay.archiving`.

::

    spanreplay-archive.json                       says that it is one
    runs/day=2026-11-29/<digest>.parquet          a row a run: what it was, its traces, and the file of its records
    records/day=2026-11-29/<digest>.parquet       a row a span or log record, as ``export --format parquet`` writes them

Records are sorted by trace and start, and a group of rows holds few runs, so that one run is found by looking at little. A file is named
after what is in it: archiving the same again writes the same file. Any tool that reads Parquet can ask both.
"""

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar

from spanreplay.replay.inputs.identifiers import SpanIds
from spanreplay.replay.inputs.report import ReadReport, UnreadableSource
from spanreplay.replay.inputs.source import Opened
from spanreplay.replay.inputs.tables import own
from spanreplay.spans.record import Record
from spanreplay.store.archive_folder import ArchiveError, ArchiveFolder, is_url

_T = TypeVar("_T", list[Any], dict[str, Any])

MARKER: Final = "spanreplay-archive.json"
VERSION: Final = 1
_IDS: Final = 500
_LOST: Final = "trace-partial"

_FIND: Final = """
    SELECT trace_ids, records, command_id, lost FROM read_parquet($1)
    WHERE $2 = '' OR starts_with(coalesce(run_id, ''), $2) OR starts_with(coalesce(run_id, ''), $3)
"""
_LATEST: Final = """
    SELECT run_id FROM read_parquet($1)
    WHERE run_id IS NOT NULL AND (NOT is_command OR n_steps > 0) ORDER BY started_ns DESC, run_id DESC LIMIT 1 OFFSET $2
"""
_OF_COMMAND: Final = "SELECT trace_ids, records, command_id, lost FROM read_parquet($1) WHERE command_id = $2"
ROWS: Final = "SELECT otlp FROM read_parquet($1) ORDER BY trace_id, start_ns"
_ROWS_OF: Final = "SELECT otlp FROM read_parquet($1) WHERE trace_id IN (SELECT unnest($2)) ORDER BY trace_id, start_ns"


def is_archive(where: str) -> bool:
    """Whether an archive is there; a URL of fsspec always counts as one, so that what is wrong with it is said."""
    if is_url(where):
        return True
    try:
        return where != "-" and Path(where, MARKER).is_file()
    except (OSError, ValueError):
        return False


def open_archive(where: str, run: str = "") -> Opened:
    """The records of an archive, or of one run in it and of those recorded with it.

    Args:
        where: path or URL.
        run: the beginning of its id; empty for all runs.

    Raises:
        UnreadableSource: there is no archive.
        ArchiveError: it cannot be read.
    """
    folder, index = _open(where)
    report = ReadReport()
    if not index:
        return Opened(format="archive", records=iter(()), report=report)
    found = [*folder.ask(_FIND, index, [run, "0" * 16 + run])]
    for command in {row[2] for row in found if row[2] is not None} if run else ():
        found += folder.ask(_OF_COMMAND, index, [command])
    traces: set[str] = set()
    places: dict[str, set[str]] = {}
    for trace_ids, records, _, lost in found:
        for trace in as_json(folder, trace_ids, list):
            traces.add(str(trace))
            places.setdefault(str(trace), set()).add(str(records))
        for trace, told in as_json(folder, lost, dict).items() if lost is not None else ():
            for detail in told:
                report.note(_LOST, "was known to be incomplete when it was archived", spans=0, trace_id=trace, lost=str(detail))
    files = sorted({str(row[1]) for row in found})
    again = frozenset(trace for trace, names in places.items() if len(names) > 1)
    return Opened(format="archive", records=_read(folder, files, sorted(traces) if run else None, again, report), report=report)


def latest_run(where: str, back: int) -> str | None:
    """Id of the run that began last, or of the one so many before it; ``None`` where there are not so many.

    Raises:
        UnreadableSource: there is no archive.
        ArchiveError: it cannot be read.
    """
    folder, index = _open(where)
    found = list(folder.ask(_LATEST, index, [back])) if index else []
    return str(found[0][0]) if found else None


def _open(where: str) -> tuple[ArchiveFolder, list[str]]:
    folder = ArchiveFolder(where)
    marker = folder.read(MARKER)
    if marker is None:
        raise UnreadableSource(where, "", "an archive that spanreplay wrote", f"no {MARKER} there")
    check_marker(folder, marker)
    return folder, folder.names("runs")


def as_json(folder: ArchiveFolder, text: str, kind: type[_T]) -> _T:
    """A JSON text of the list of runs.

    Raises:
        ArchiveError: it is none, or another kind of value.
    """
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        found = None
    if not isinstance(found, kind):
        raise ArchiveError(f"{folder.location}: the list of runs does not have the form that spanreplay writes. Restore it from a copy.")
    return found


def check_marker(folder: ArchiveFolder, marker: bytes) -> None:
    """Refuses an archive of another version.

    Raises:
        ArchiveError: it is one.
    """
    try:
        version = json.loads(marker)["schema"]
    except (ValueError, KeyError, TypeError):
        version = None
    if version != VERSION:
        raise ArchiveError(
            f"{folder.location} is an archive of version {version!r}; this spanreplay knows version {VERSION}. Use the one that wrote it."
        )


def _read(
    folder: ArchiveFolder, files: Sequence[str], traces: Sequence[str] | None, again: frozenset[str], report: ReadReport
) -> Iterator[Record]:
    """The records, each once: traces in ``again`` were archived, had something added, and were archived again."""
    given: set[bytes] = set()
    for name in files:
        if name.startswith("/") or ".." in name.split("/"):
            report.reject(folder.location, "runs", "the name of a file of this archive", repr(name))
            continue
        for record, text in _of_file(folder, name, traces, report):
            if record.trace_id in again:
                digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
                if digest in given:
                    continue
                given.add(digest)
            report.keep(record)
            yield record
        report.end_of_file()


def _of_file(folder: ArchiveFolder, name: str, traces: Sequence[str] | None, report: ReadReport) -> Iterator[tuple[Record, str]]:
    ids = SpanIds()
    number = 0
    parts = [None] if traces is None else [traces[at : at + _IDS] for at in range(0, len(traces), _IDS)]
    for part in parts:
        for (text,) in folder.ask(ROWS, [name]) if part is None else folder.ask(_ROWS_OF, [name], [part]):
            record = own.record_of({own.COLUMN: text}, ids, report)
            if record is None:
                report.reject(f"{folder.location}/{name}", f"row {number}", "a record as OTLP JSON", "something else")
            else:
                yield record, text
            number += 1
