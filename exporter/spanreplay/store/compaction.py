"""Loads journals into the database, each record exactly once.

The rows and the offset up to which a journal is loaded are written in one transaction, so a kill at any moment leaves both as they were.
The file of a writer that has ended is removed when all of it is loaded.
"""

import contextlib
import os
import socket
import stat
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spanreplay.store.database import transaction, write_much
from spanreplay.store.encoding import Json, to_readable_json
from spanreplay.store.folder import JOURNAL_SUFFIX, JOURNALS
from spanreplay.store.form import Form
from spanreplay.store.groups import SMALL
from spanreplay.store.journal_reader import JOURNAL_VERSION, TYPE, JournalReader
from spanreplay.store.loading import CONTENT_TYPES, Batch, mark_stale
from spanreplay.store.merging import Effect
from spanreplay.store.pieces import Splitter
from spanreplay.store.plain_spans import PlainSpan, parse_plainly
from spanreplay.store.seals import row_seal
from spanreplay.store.spare_line import noted_in

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

BATCH_RECORDS: Final = 8192
BATCH_BYTES: Final = 16_000_000
"""Of an import; each of its records takes several times the memory that one of a journal takes."""
JOURNAL_RECORDS: Final = 32_768
JOURNAL_BYTES: Final = 48_000_000
"""Of a journal. What a run brings in one batch lies together, and is read together: the fewer batches, the less is read for a run."""
_OVERFULL: Final = 1.25
"""So full a batch gets where it takes in the rest of a journal: a transaction of its own would cost more than that is worth."""
_VERSIONS: Final = (1, 2, JOURNAL_VERSION)
_FIRST_LINE_SECONDS: Final = 60.0
_HEAD: Final = 1_000_000
"""Bytes that the first two lines of a journal are looked for in."""


@dataclass(slots=True, kw_only=True)
class CompactionReport:
    """What one compaction did."""

    journals: int = 0
    """Journal files looked at."""
    records: int = 0
    """Journal records loaded."""
    new: int = 0
    """Records of spans and logs that were unknown."""
    same: int = 0
    changed: int = 0
    rejected: int = 0
    """Records that no row can be made of."""
    crc_errors: int = 0
    """Lines skipped because they are not what was written."""
    dropped: int = 0
    """Records that their processes could not write."""
    removed: int = 0
    """Journal files removed, all loaded and their writers ended."""
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Journal files left alone, and why."""
    left: list[Path] = field(default_factory=list)
    """Journal files still to be looked at, oldest first: the time was up."""

    def count(self, effects: "Counter[Effect]") -> None:
        """Adds the effects of one batch."""
        self.new += effects["new"]
        self.same += effects["same"]
        self.changed += effects["changed"] + effects["beside"]


@dataclass(slots=True)
class _Progress:
    """A row of the table ``journals``."""

    name: str
    bytes_done: int = 0
    host: str | None = None
    pid: int | None = None
    process: str | None = None
    forked_from: str | None = None
    started_ns: int | None = None
    argv: str | None = None
    python: str | None = None
    versions: str | None = None
    records: int = 0
    crc_errors: int = 0
    dropped: int = 0
    closed: bool = False
    removed: bool = False
    locks: bool = False
    """Its writer holds a lock on the file for as long as it lives, which a reused pid cannot fake."""

    def row(self) -> tuple[Any, ...]:
        return tuple(getattr(self, column) for column in JOURNAL_COLUMNS)

    def note(self, record: Form) -> None:
        """Takes a record about the journal itself."""
        kind = record[TYPE]
        if kind == "process":
            self.host, self.pid, self.process = _text(record.get("host")), _number(record.get("pid")), _text(record.get("process"))
            self.forked_from, self.python = _text(record.get("forked_from")), _text(record.get("python"))
            self.locks = record.get("locks") is True
            self.started_ns = _number(record.get("started"))
            self.argv, self.versions = to_readable_json(record.get("argv")), to_readable_json(record.get("versions"))
        elif kind == "drop":
            self.dropped += _number(record.get("n")) or 0
        elif kind == "end":
            self.closed = True


JOURNAL_COLUMNS: Final = tuple(_Progress.__dataclass_fields__)
"""Of the table ``journals``, in the order in which a row is summed up."""


def pending(folder: Path) -> list[Path]:
    """Journal files of a store, oldest first."""
    files: list[tuple[int, str]] = []
    try:
        for entry in os.scandir(folder / JOURNALS):
            if entry.name.endswith(JOURNAL_SUFFIX):
                with contextlib.suppress(OSError):  # loaded and removed meanwhile
                    found = entry.stat()
                    if stat.S_ISREG(found.st_mode):  # a pipe would be waited for
                        files.append((found.st_mtime_ns, entry.name))
    except FileNotFoundError:
        return []
    return [folder / JOURNALS / name for _, name in sorted(files)]


def size_of(journals: Iterable[Path]) -> int:
    """Bytes of journal files, those of a writer that lives as much as those that are to go."""
    size = 0
    for path in journals:
        with contextlib.suppress(OSError):  # loaded and removed meanwhile
            size += path.stat().st_size
    return size


def unloaded(connection: "Connection", folder: Path) -> dict[str, int]:
    """Bytes of each journal file, by name, that are not loaded yet; the connection need not be one that writes."""
    files = pending(folder)
    done = dict(
        connection.execute(
            "SELECT name, bytes_done FROM journals WHERE name IN (SELECT unnest($1))", [[path.name for path in files]]
        ).fetchall()
    )
    left = {path.name: size_of([path]) - (done.get(path.name) or 0) for path in files}
    return {name: size for name, size in left.items() if size > 0}


def discard(connection: "Connection", folder: Path, names: Collection[str]) -> bool:
    """Removes journals as if they had never been written; ``False``, and nothing is removed, where anything of them is loaded already.

    Args:
        connection: holds the store's lock.
        folder: the store.
        names: of the files.
    """
    if connection.execute("SELECT 1 FROM journals WHERE name IN (SELECT unnest($1)) LIMIT 1", [list(names)]).fetchall():
        return False
    for path in pending(folder):
        if path.name in names:
            path.unlink()
    return True


def compact(
    connection: "Connection", folder: Path, *, until: float | None = None, report: CompactionReport | None = None
) -> CompactionReport:
    """Loads what the journals have that the database has not.

    Args:
        connection: may write, and holds the store's lock; no transaction is open.
        folder: the store.
        until: begin no batch after this time of the monotonic clock, but the first.
        report: of an earlier step, which this one goes on with.
    """
    import duckdb

    report = CompactionReport(left=pending(folder)) if report is None else report
    splitter = Splitter()
    while report.left:
        path = report.left[0]
        try:
            progress = _progress(connection, path.name)
            if not _load(connection, path, progress, report, splitter, until):
                break
            _retire(connection, path, progress, report)
        except FileNotFoundError:
            pass  # somebody else has loaded all of it between two steps
        except _NewerJournalError as error:
            report.refused.append((path.name, str(error)))
        except duckdb.OutOfMemoryException as error:  # what others have recorded is none the worse
            report.refused.append((path.name, f"it holds more in one value than there is memory for: {str(error).splitlines()[0]}"))
        except OSError as error:
            report.refused.append((path.name, error.strerror or str(error)))
        report.journals += 1
        report.left.pop(0)
        if until is not None and time.monotonic() > until:
            break
    return report


class _NewerJournalError(Exception):
    pass


def _progress(connection: "Connection", name: str) -> _Progress:
    result = connection.execute("SELECT * FROM journals WHERE name = $1", [name])
    columns = [column[0] for column in result.description or ()]
    row = result.fetchone()
    result.fetchall()
    if row is None:
        return _Progress(name)
    known = dict(zip(columns, row, strict=True))
    return _Progress(**{column: known[column] for column in JOURNAL_COLUMNS})


def _load(
    connection: "Connection", path: Path, progress: _Progress, report: CompactionReport, splitter: Splitter, until: float | None
) -> bool:
    """``False`` where the time was up before all of it was loaded."""
    ended = True
    before = (progress.dropped, progress.crc_errors)
    with JournalReader(path, progress.bytes_done) as reader:
        bad_before = progress.crc_errors
        for batch in _batches(reader, progress, splitter):
            records = batch.size
            progress.crc_errors = bad_before + reader.bad_lines
            effects = _commit(connection, batch, progress)
            report.records += records
            report.rejected += batch.rejected
            report.count(effects)
            if until is not None and time.monotonic() > until:
                ended = reader.left <= 0
                break
    report.dropped += progress.dropped - before[0]
    report.crc_errors += progress.crc_errors - before[1]
    return ended


def _batches(reader: JournalReader, progress: _Progress, splitter: Splitter) -> Iterator[Batch]:
    """Batches; with each, ``progress`` is where the journal stands after it."""
    batch = Batch(splitter)
    start = reader.offset
    for offset, record in reader.records(parse_plainly):
        if isinstance(record, PlainSpan):
            batch.add_plain(record, progress.process)
        elif (kind := record[TYPE]) in CONTENT_TYPES:
            batch.add(record, progress.process)
        elif kind == "process" and record.get("v") not in _VERSIONS:
            raise _NewerJournalError(f"a journal of version {record.get('v')!r}; this spanreplay knows versions up to {JOURNAL_VERSION}")
        elif kind in ("process", "drop", "end"):
            progress.note(record)
        else:
            raise _NewerJournalError(f"a record of type {kind!r}, which this spanreplay does not know; install a newer one")
        progress.records += 1
        progress.bytes_done = offset
        if (batch.size >= JOURNAL_RECORDS or offset - start >= JOURNAL_BYTES) and _is_full(batch.size, offset - start, reader.left):
            yield batch
            batch, start = Batch(splitter), offset
    if progress.bytes_done != reader.offset or start != reader.offset:
        progress.bytes_done = reader.offset
        yield batch


def _is_full(records: int, size: int, left: int) -> bool:
    return left > JOURNAL_BYTES * (_OVERFULL - 1) or records >= JOURNAL_RECORDS * _OVERFULL or size >= JOURNAL_BYTES * _OVERFULL


def _commit(connection: "Connection", batch: Batch, progress: _Progress) -> "Counter[Effect]":
    """Writes a batch, and with it how far its journal is loaded, in one transaction."""
    with transaction(connection):
        effects = batch.load(connection, next_generation(connection))
        _save(connection, progress)
        if batch.rows >= SMALL // 2:
            write_much(connection)
    return effects


def _save(connection: "Connection", progress: _Progress) -> None:
    connection.execute("DELETE FROM journals WHERE name = $1", [progress.name]).fetchall()
    appender = connection.appender("journals", columns=[*JOURNAL_COLUMNS, "digest"])
    row = progress.row()
    appender.append_row(*row, row_seal("journals", row))
    appender.flush()


def next_generation(connection: "Connection") -> int:
    """The number of the transaction that is open, one more than that of the last: each that changes spans or logs takes one."""
    found = connection.execute(_NEXT_GENERATION).fetchall()
    if not found:
        connection.execute("INSERT INTO meta VALUES ('generation', '1')").fetchall()
    return max((int(value) for (value,) in found), default=1)


_NEXT_GENERATION: Final = """
    UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS VARCHAR) WHERE key = 'generation' RETURNING value
"""


def _retire(connection: "Connection", path: Path, progress: _Progress, report: CompactionReport) -> None:
    """Removes the file if its writer has ended and all of it is loaded."""
    with path.open("rb") as file:
        if not _writer_ended(file.fileno(), progress):
            return
        head = file.read(_HEAD)
        file.seek(progress.bytes_done)
        rest = file.read()
    if b"\n" in rest:
        return  # written just before the end; loaded next time
    if not progress.removed:  # else it is counted already, and whoever did it was killed before the next line
        progress.removed = True
        dropped = noted_in(head)
        progress.dropped += dropped
        report.dropped += dropped
        progress.crc_errors += bool(rest)
        report.crc_errors += bool(rest)
        with transaction(connection):
            _save(connection, progress)
            if dropped:
                mark_stale(connection, _traces_of(connection, progress.process), next_generation(connection))
    path.unlink()
    report.removed += 1


def _traces_of(connection: "Connection", process: str | None) -> set[str]:
    """Traces that a process recorded: they lack more than was known."""
    return {trace for (trace,) in connection.execute("SELECT DISTINCT trace_id FROM spans WHERE process = $1", [process]).fetchall()}


def _writer_ended(descriptor: int, progress: _Progress) -> bool:
    if progress.closed:
        return True
    if progress.host is None:  # killed while it wrote its first line, or just about to write it
        return _lock_is_free(descriptor) and time.time() - os.fstat(descriptor).st_mtime > _FIRST_LINE_SECONDS
    if progress.host != socket.gethostname() or progress.pid is None:
        return False  # another machine's process cannot be asked
    if progress.locks:
        return _lock_is_free(descriptor)
    return not _is_running(progress.pid)


def _lock_is_free(descriptor: int) -> bool:
    """Whether no process, in whatever container of this machine, has the journal open for writing."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Json) -> int | None:
    return value if type(value) is int and abs(value) < 2**63 else None
