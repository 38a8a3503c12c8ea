"""Opening the database for a moment: one writer under the store's lock, readers read-only, nobody keeps it open.

The configuration keeps DuckDB small and off the network: two threads, 1 GB, no extension is ever fetched.
"""

import contextlib
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from spanreplay.store import groups
from spanreplay.store.engines import Config, Opened, Use
from spanreplay.store.errors import LockedStoreError, MissingStoreError, StoreError
from spanreplay.store.folder import DATABASE, HOLDER, JOURNALS, LOCK, folder_error, is_store, make_folder, make_private, no_store
from spanreplay.store.migrations import SCHEMA_VERSION
from spanreplay.store.naming import named
from spanreplay.store.schema import migrate, schema_version, too_new
from spanreplay.store.turns import let_in, waiting

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

_T = TypeVar("_T")
WAIT_SECONDS: Final = 30.0
_CONFIG: Final[Config] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "memory_limit": "1GB",
    "threads": "2",
    "async_threads": "0",  # eight more, and what is here to read is in files of this machine
    "python_enable_replacements": "false",  # a table is a table, never a variable of whoever calls
}
_MEMORY_FOR_MUCH: Final = 200_000_000
"""Bytes that a transaction of the usual size needs at most."""
_USUAL_BYTES: Final = 16_000_000
_LARGE: Final = 4_000_000
"""Bytes, as DuckDB reckons them, texts at little, from which on a transaction goes straight into the database: through its log, all of it
would be written twice."""
_ANYTHING: Final = 1_000
_PAUSE: Final = 0.01
"""Seconds before a database that somebody else has is looked at again, the first time."""
_TIMES: Final = 6
"""How many times over what is more than usual has to fit into memory: one value is never divided."""

_threads: dict[str, threading.Lock] = {}
_threads_guard = threading.Lock()
_umask: list[int] = []
"""The umask of the process, once for every writer at work."""


def _after_fork_in_child() -> None:
    # Another thread may have held them when the process forked.
    global _threads, _threads_guard
    _threads, _threads_guard = {}, threading.Lock()
    if _umask:
        os.umask(_umask[0])
        _umask.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


class Database:
    """The database file of one store.

    Args:
        folder: the store.
        wait_s: how many seconds to wait for somebody who holds it.
    """

    def __init__(self, folder: Path, wait_s: float = WAIT_SECONDS) -> None:
        self.folder = folder
        self.path = folder / DATABASE
        self._wait_s = wait_s
        self._held: Connection | None = None
        self._held_by = 0

    def exists(self) -> bool:
        """Whether anything was ever stored; else whoever reads or writes first makes the file."""
        return self.path.exists()

    @contextlib.contextmanager
    def writing(
        self, *, much: bool = False, size: int = 0, held_s: float | None = None, locked_s: float | None = None
    ) -> "Iterator[Connection]":
        """A connection that may write, in the newest schema, under the store's lock.

        Args:
            much: each transaction is large, so that it goes straight into the database, not into its log first.
            size: about how many bytes of content the largest of such transactions writes, where one value alone may be larger than usual.
            held_s: how many seconds to wait for who reads the file meanwhile, a shell of DuckDB for one; left out, as long as for anybody.
            locked_s: how many seconds to wait for who writes; left out, as long as for anybody.

        Raises:
            StoreError: which kind says why.
        """
        with self._alone_in_process(locked_s), self._locked(locked_s), _private_files():
            make_private(self.folder)
            let_in(self.folder, "read")
            for rows in (groups.at_first(self.path, much=much), groups.SMALL):
                with self._opened_for_writing(rows, much, held_s) as connection:
                    fit = self._rows_that_fit(connection, rows, much=much)
                    self._set_up(connection, much=much, size=size, together=fit >= rows and not much)
                    if fit >= rows or rows == groups.SMALL:
                        yield connection
                        return

    def _rows_that_fit(self, connection: "Connection", rows: int, *, much: bool) -> int:
        """The rows of a group that the database, brought up to date, is to be written with; ``rows`` are those it is opened with."""
        found = schema_version(connection)
        if found != SCHEMA_VERSION:
            if found and rows > groups.SMALL:
                return groups.SMALL  # tables are made anew, whatever they hold
            migrate(connection)
        return rows if much else groups.fitting(connection, self.path)

    @contextlib.contextmanager
    def _opened_for_writing(self, rows: int, much: bool, held_s: float | None) -> "Iterator[Connection]":
        new = not self.path.exists()
        try:
            opened = self._connect(
                partial(_open_for_writing, use="writing much" if much else "writing", rows=rows), _CONFIG, held_s, reads=False
            )
        except StoreError:
            if new:  # half a header, on a full disk for one; the next attempt would take it for a damaged database
                with contextlib.suppress(OSError):
                    self.path.unlink(missing_ok=True)
            raise
        with self._failures_named(), _used(opened) as connection:
            yield connection

    def _set_up(self, connection: "Connection", *, much: bool, size: int, together: bool) -> None:
        """How checkpoints go: after little was written a few small groups of rows are put together, so that none pile up."""
        # One thread takes less time of processors than two, and what is written in batches waits for Python anyway.
        connection.execute(f"SET threads = 1; SET checkpoint_threshold = '{_ANYTHING if much else _LARGE}B'")
        if much:
            memory = _MEMORY_FOR_MUCH + _TIMES * max(0, size - _USUAL_BYTES)
            connection.execute(f"SET memory_limit = '{memory}B'")
        connection.execute(f"SET max_vacuum_tasks = {2 if together else 0}")

    @contextlib.contextmanager
    def reading(self, *, sealed: bool = False, threads: int = 2, writes: Path | None = None) -> "Iterator[Connection]":
        """A read-only connection; makes or migrates the database first if need be.

        Args:
            sealed: SQL of others will run: no files, no network, configuration locked.
            threads: that read, unless it is one of :meth:`holding`. For little that lies together, one takes less time of processors.
            writes: with ``sealed``, the one other file within its reach.

        Raises:
            StoreError: which kind says why.
        """
        if self._held is not None and not sealed and self._held_by == threading.get_ident():
            with self._failures_named():
                yield self._held
            return
        if not self.path.exists():
            self._bring_up_to_date()
        with self._alone_in_process(), self._reading_alone(sealed=sealed, threads=threads, writes=writes) as connection:
            found = schema_version(connection)
            if found == SCHEMA_VERSION:
                yield connection
                return
        if found > SCHEMA_VERSION:
            raise too_new(str(self.path), found)
        self._bring_up_to_date()
        with self.reading(sealed=sealed, threads=threads, writes=writes) as connection:
            yield connection

    @contextlib.contextmanager
    def _reading_alone(self, *, sealed: bool, threads: int, writes: Path | None) -> "Iterator[Connection]":
        with self._failures_named():
            if sealed:
                connection = self._connect(partial(_open_sealed, writes=writes), _CONFIG)
                try:
                    yield connection
                finally:
                    connection.close()
                return
            with _used(self._connect(_open_for_reading, {**_CONFIG, "threads": str(threads)})) as connection:
                yield connection

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """Reads of this thread inside the block share one connection, and see one state of the store. Opening costs more than reading."""
        if self._held is not None and self._held_by == threading.get_ident():
            yield
            return
        with self.reading() as connection:
            self._held, self._held_by = connection, threading.get_ident()
            try:
                yield
            finally:
                self._held = None

    def _bring_up_to_date(self) -> None:
        if not is_store(self.folder):
            raise MissingStoreError(no_store(self.folder))
        with self.writing():
            pass

    @contextlib.contextmanager
    def _alone_in_process(self, wait_s: float | None = None) -> Iterator[None]:
        """DuckDB gives one process one configuration of one file, so its threads take turns."""
        key = os.path.realpath(self.path)
        with _threads_guard:
            lock = _threads.setdefault(key, threading.Lock())
        if not lock.acquire(blocking=False):
            wait_s = self._wait_s if wait_s is None else wait_s
            with waiting(self.folder, "write"):
                if not lock.acquire(timeout=wait_s):
                    raise LockedStoreError(f"another thread of this process has held {self.path} for more than {wait_s:g} s. Wait for it.")
        try:
            yield
        finally:
            lock.release()

    @contextlib.contextmanager
    def _locked(self, wait_s: float | None = None) -> Iterator[None]:
        import filelock

        wait_s = self._wait_s if wait_s is None else wait_s
        try:
            make_folder(self.folder)
            lock = filelock.FileLock(self.folder / LOCK, timeout=0, mode=0o600)
            try:
                lock.acquire()
            except filelock.Timeout:
                with waiting(self.folder, "write"):
                    lock.acquire(timeout=wait_s)
        except filelock.Timeout as error:
            raise LockedStoreError(
                f"wanted to write to the store at {self.folder}, but {self._holder()} has held its lock for more than {wait_s:g} s."
                " Wait for it, or end it."
            ) from error
        except OSError as error:
            raise folder_error(error, "cannot write to the store", self.folder) from error
        try:
            with contextlib.suppress(OSError):
                self._sign()
            yield
        finally:
            lock.release()

    def _sign(self) -> None:
        text = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since_ns": time.time_ns()})
        descriptor = os.open(self.folder / HOLDER, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)

    def _holder(self) -> str:
        try:
            known = json.loads((self.folder / HOLDER).read_text())
            return f"process {int(known['pid'])} on {known['host']}"
        except (OSError, ValueError, KeyError, TypeError):
            return "another process"

    def _connect(self, opened: "Callable[[Path, Config], _T]", config: Config, wait_s: float | None = None, *, reads: bool = True) -> _T:
        import duckdb

        config = {**config, "temp_directory": str(self.folder / JOURNALS / "spilled")}  # that one is private
        deadline = time.monotonic() + (self._wait_s if wait_s is None else wait_s)
        pause = _PAUSE
        with contextlib.ExitStack() as told:
            while True:
                try:
                    return opened(self.path, config)
                except duckdb.Error as error:
                    problem = named(error, self.path)
                    if not isinstance(problem, LockedStoreError) or time.monotonic() > deadline:
                        raise problem from error
                if reads and pause == _PAUSE:
                    told.enter_context(waiting(self.folder, "read"))
                time.sleep(pause)
                pause = min(pause * 1.5, 0.1)

    @contextlib.contextmanager
    def _failures_named(self) -> Iterator[None]:
        import duckdb

        try:
            yield
        except duckdb.Error as error:
            raise named(error, self.path) from error


def _open_sealed(path: Path, config: Config, *, writes: Path | None) -> "Connection":
    """Where SQL of others runs, the file is all that there is, and agents that write to the same disk keep half of what is free."""
    import duckdb

    connection = duckdb.connect(str(path), read_only=True, config=config)
    room = shutil.disk_usage(path.parent).free // 2
    if writes is not None:
        quoted = str(writes).replace("'", "''")
        connection.execute(f"SET allowed_paths = ['{quoted}']")  # a setting takes no parameter, and only now
    connection.execute(f"SET max_temp_directory_size = '{room}B'; SET enable_progress_bar = false")
    connection.execute("SET enable_external_access = false; SET lock_configuration = true")
    return connection


def _open_for_reading(path: Path, config: Config) -> Opened:
    return Opened.open(path, config, "reading", "READ_ONLY")


def _open_for_writing(path: Path, config: Config, *, use: Use, rows: int) -> Opened:
    """Only an attached database can be told how large its row groups are to be."""
    blocks = "" if path.exists() else f", BLOCK_SIZE {groups.BLOCK}"
    return Opened.open(path, config, use, f"ROW_GROUP_SIZE {rows}{blocks}")


@contextlib.contextmanager
def _used(opened: Opened) -> "Iterator[Connection]":
    try:
        yield opened.connection
    except BaseException:
        opened.drop()
        raise
    opened.close()


def write_much(connection: "Connection") -> None:
    """From now on transactions go straight into the database, and no groups of rows are put together.

    For those that bring large groups: to write these twice, or others anew, takes longer than anything else about them.
    """
    connection.execute(f"SET checkpoint_threshold = '{_ANYTHING}B'; SET max_vacuum_tasks = 0")


@contextlib.contextmanager
def transaction(connection: "Connection") -> Iterator[None]:
    """What is done inside the block happens whole or not at all."""
    connection.begin()
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):  # what went wrong first is what counts
            connection.rollback()
        raise
    connection.commit()


@contextlib.contextmanager
def _private_files() -> Iterator[None]:
    """DuckDB makes the database, its log and what it spills as the umask says, and takes no mode: nobody else may read them."""
    with _threads_guard:
        before = os.umask(0o077)
        _umask.append(_umask[0] if _umask else before)
    try:
        yield
    finally:
        with _threads_guard:
            if _umask:
                before = _umask.pop()
                if not _umask:
                    os.umask(before)
