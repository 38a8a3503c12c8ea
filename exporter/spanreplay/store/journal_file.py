"""The file behind a journal writer: lines that are whole or counted as dropped."""

import contextlib
import errno
import logging
import os
import secrets
import time
from pathlib import Path
from typing import Final, Literal, TypeAlias
from zlib import crc32

from spanreplay.store.encoding import to_json
from spanreplay.store.folder import JOURNAL_SUFFIX, JOURNALS, make_folder
from spanreplay.store.form import Form
from spanreplay.store.journal_reader import JOURNAL_VERSION, TYPE
from spanreplay.store.process import ProcessInfo
from spanreplay.store.spare_line import SpareLine, spare_line

Durability: TypeAlias = Literal["process", "disk", "batch"]
"""When a record is safe. ``process``: it is with the operating system when the call returns, so the death of the process loses nothing.
``disk``: it is on the disk. ``batch``: within a second, or when 256 kB are gathered; a process that is killed loses what it gathered."""

GATHERED_BYTES: Final = 262_144
FULL_BYTES: Final = 64_000_000
"""A journal of so many bytes is ended, and a new one begun: what is loaded of the old one can be removed while the process lives on."""
_log: Final = logging.getLogger("spanreplay.journal")
_REOPEN_SECONDS: Final = 1.0
_COMPLAIN_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 1.0
_ENDED: Final = 64
_sync_file: Final = getattr(os, "fdatasync", os.fsync)


class JournalFile:
    """One journal file, opened at the first line. The caller serialises its calls.

    Args:
        store: the store's folder.
        process: who writes.
        durability: when a line is safe; see :data:`Durability`.
    """

    def __init__(self, store: Path, process: ProcessInfo, *, durability: Durability) -> None:
        self.dropped = 0
        self.last_error: BaseException | None = None
        """Why a record was dropped last."""
        self.lost_gathered = False
        """What was gathered did not get there: content that is thought to be in the file may not be. Cleared by whoever reads it."""
        self._store = store
        self._process = process
        self._durable = durability == "disk"
        self._gathers = durability == "batch"
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._bytes = 0
        self._descriptor: int | None = None
        self._path: Path | None = None
        self._ended: list[Path] = []
        """Files ended since the last :meth:`sync`, the latest of them: it is asked for what is in them, too."""
        self._entry_synced = False
        self._unsynced = True
        """Something was written since the file was last put on the disk."""
        self._torn = False
        self._untold: dict[str, int] = {}
        self._spare: SpareLine | None = None
        self._retry_at = 0.0
        self._open_error: OSError | None = None
        self._lines = 0
        self._look_at = 0.0
        self._complained_at = -_COMPLAIN_SECONDS
        self._complained_of = 0

    @property
    def name(self) -> str | None:
        """Of the file, or of the last one; ``None`` where no line was written."""
        return None if self._path is None else self._path.name

    def put(self, text: str) -> bool:
        """Writes one line, given as JSON; ``False``, and a count, if it did not get there whole."""
        try:
            self.write(text.encode())
        except OSError as error:
            self.drop(error)
            return False
        return True

    def write(self, data: bytes) -> None:
        """Writes one line.

        Args:
            data: its JSON, and what follows that, in UTF-8; no line feed.

        Raises:
            OSError: it did not get there whole.
        """
        descriptor = self._descriptor
        if descriptor is None:
            descriptor = self._open()
        self._write(descriptor, data)
        if self._untold:
            self._tell(descriptor)

    def write_together(self, records: list[bytes]) -> None:
        """Writes several lines at once: a record after what it refers to. Where it raises, none of them counts as written.

        Args:
            records: each as for :meth:`write`.

        Raises:
            OSError: they did not get there whole.
        """
        descriptor = self._descriptor
        if descriptor is None:
            descriptor = self._open()
        if self._gathers:
            for data in records:
                self._write(descriptor, data)
        else:
            self._write_line(descriptor, b"".join([b"%08x %s\n" % (crc32(data), data) for data in records]))
            self._lines += len(records) - 1
        if self._untold:
            self._tell(descriptor)

    @property
    def waits(self) -> bool:
        """Whether lines were gathered that are not written yet."""
        return bool(self._gathered)

    @property
    def needs_a_look(self) -> bool:
        """Whether it may be gone or full."""
        return self._bytes >= FULL_BYTES or time.monotonic() >= self._look_at

    @property
    def is_full(self) -> bool:
        """Whether it is time for another file."""
        return self._bytes >= FULL_BYTES

    def gather_no_more(self) -> None:
        """From now on each line is written at once, as there is nobody to write what is gathered."""
        self.flush()
        self._gathers = False

    def flush(self) -> None:
        """Writes what was gathered; what does not get there is counted."""
        lines, self._gathered, self._gathered_bytes = self._gathered, [], 0
        if not lines or self._descriptor is None:
            return
        try:
            left = self._write_bytes(self._descriptor, b"".join(lines))
            problem = OSError(errno.ENOSPC, "the records did not fit")
        except OSError as error:
            left, problem = 0, error
        for line in lines:
            left -= len(line)
            if left < 0:
                self.lost_gathered = True
                self.drop(problem)

    def sync(self) -> None:
        """Everything written is on the disk when this returns.

        Raises:
            OSError: the disk says no.
        """
        self.flush()
        self._sync_ended()
        if self._descriptor is not None:
            if self._unsynced:  # calls of other threads may have waited for the same
                _sync_file(self._descriptor)
                self._unsynced = False
            self._sync_entry()

    def _sync_ended(self) -> None:
        for path in self._ended:
            try:
                descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            except FileNotFoundError:
                continue  # loaded into the database, which is on the disk
            try:
                _sync_file(descriptor)
            finally:
                os.close(descriptor)
            self._entry_synced = False
            self._sync_entry()
        self._ended.clear()

    def _sync_entry(self) -> None:
        """A file is on the disk only when its name is, too."""
        if not self._entry_synced and os.name == "posix":
            folder = os.open(self._store / JOURNALS, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        self._entry_synced = True

    def end(self) -> None:
        """Says that this was all, and closes the file. Where it takes no more, its spare line tells what was dropped, else another file."""
        self._complain()
        if self._descriptor is not None:
            with contextlib.suppress(OSError):  # it is no record that anybody misses
                self.write(to_json({TYPE: "end"}).encode("ascii"))
            self.flush()
            if self._path is not None:
                self._ended = [*self._ended[1 - _ENDED :], self._path]
            if self._spare is not None and self._spare.noted == sum(self._untold.values()):
                self._untold = {}
            self.close()
        self._spare = None
        if self._untold:
            with contextlib.suppress(OSError):
                descriptor = self._open()
                self._tell(descriptor)
                self._write(descriptor, to_json({TYPE: "end"}).encode("ascii"))
                self.flush()
            self.close()

    def is_gone(self, *, at_once: bool = False) -> bool:
        """Whether the file has been removed while it was written: its lines then count as dropped, and the next one starts another file.

        Args:
            at_once: ask the file system now; else it is asked once a second.
        """
        descriptor = self._descriptor
        if descriptor is None:
            return False
        now = time.monotonic()
        if not at_once and now < self._look_at:
            return False
        self._look_at = now + _LOOK_SECONDS
        if os.fstat(descriptor).st_nlink:
            return False
        lost, self._lines = self._lines, 0
        self.close()
        self.drop(FileNotFoundError(errno.ENOENT, "the journal was removed while it was written"), lost)
        return True

    def close(self) -> None:
        """Closes the file and says nothing. A later line opens a new one."""
        descriptor, self._descriptor, self._unsynced = self._descriptor, None, True
        self._gathered, self._gathered_bytes, self._bytes = [], 0, 0
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def drop(self, error: BaseException, records: int = 1) -> None:
        """Counts records that could not be written, and says so once a minute and at the end."""
        self.dropped += records
        self.last_error = error
        reason = errno.errorcode.get(error.errno or 0, "OSError") if isinstance(error, OSError) else type(error).__name__
        self._untold[reason] = self._untold.get(reason, 0) + records
        if self._spare is not None:
            self._spare.note(sum(self._untold.values()))
        now = time.monotonic()
        if now - self._complained_at >= _COMPLAIN_SECONDS:
            self._complained_at = now
            self._complain()

    def _complain(self) -> None:
        if self._complained_of != self.dropped:
            self._complained_of = self.dropped
            with contextlib.suppress(Exception):
                _log.warning("%d record(s) could not be kept in %s, the last because of: %s", self.dropped, self._store, self.last_error)

    def _write(self, descriptor: int, data: bytes) -> None:
        self._write_line(descriptor, b"%08x %s\n" % (crc32(data), data))

    def _write_line(self, descriptor: int, line: bytes) -> None:
        if self._gathers:
            self._gathered.append(line)
            self._gathered_bytes += len(line)
            if self._gathered_bytes >= GATHERED_BYTES:
                self.flush()
        elif self._write_bytes(descriptor, line) != len(line):
            raise OSError(errno.ENOSPC, "the record did not fit")
        self._lines += 1
        if self._durable:
            _sync_file(descriptor)

    def _write_bytes(self, descriptor: int, data: bytes) -> int:
        """Gives how many of the bytes got there."""
        lead = b"\n" if self._torn else b""  # a record starts on a line of its own, else a stump before it would spoil it too
        self._unsynced = True
        written = os.write(descriptor, lead + data)
        self._bytes += written
        got = max(0, written - len(lead))
        self._torn = got != len(data) and (self._torn or written > 0)
        return got

    def _tell(self, descriptor: int) -> None:
        try:
            self._write(descriptor, to_json({TYPE: "drop", "n": sum(self._untold.values()), "why": self._untold}).encode("ascii"))
        except OSError:
            return  # told after a later record
        self._untold = {}
        if self._spare is not None and self._spare.noted:
            self._spare.note(0)

    def _open(self) -> int:
        if self._open_error is not None and time.monotonic() < self._retry_at:
            raise self._open_error
        try:
            make_folder(self._store)
            self._descriptor = self._create()
        except OSError as error:
            self._open_error = error
            self._retry_at = time.monotonic() + _REOPEN_SECONDS
            raise
        self._open_error = None
        return self._descriptor

    def _create(self) -> int:
        process = self._process
        host = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in process.host)[:64]
        path = self._store / JOURNALS / f"{host}-{process.pid}-{secrets.token_hex(8)}{JOURNAL_SUFFIX}"
        self._path = path
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            form = process_form(process)
            if _hold(descriptor):
                form["locks"] = True
            self._torn = self._entry_synced = False
            self._lines = -1  # the first one is no record
            self._look_at = time.monotonic() + _LOOK_SECONDS if os.fstat(descriptor).st_nlink else float("inf")
            first = to_json(form).encode("ascii")
            head = b"%08x %s\n" % (crc32(first), first)
            self._write_line(descriptor, head + spare_line())
            self._spare = SpareLine(path, len(head))
            if self._durable:
                self._sync_entry()
        except BaseException:
            os.close(descriptor)
            with contextlib.suppress(OSError):
                path.unlink()
            raise
        return descriptor


def process_form(process: ProcessInfo) -> Form:
    """The first line of a journal."""
    form: Form = {
        TYPE: "process",
        "v": JOURNAL_VERSION,
        "host": process.host,
        "pid": process.pid,
        "process": process.process_id,
        "started": process.started_ns,
        "argv": [_clean(part) for part in process.argv],
        "python": process.python,
        "versions": dict(process.versions),
    }
    if process.forked_from is not None:
        form["forked_from"] = process.forked_from
    return form


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _hold(descriptor: int) -> bool:
    """Locks the file for as long as it is open, which tells a compactor anywhere on this machine that its writer lives."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
