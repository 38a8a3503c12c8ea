"""The pipes of the commands that an agent runs: read from as the agent reads them, and filled with what was recorded."""

import io
import os
import stat
import sys
from _thread import start_new_thread
from collections.abc import Callable
from typing import Any, Final

from spanreplay.instrumentation.commands import Fed, Taken

_BY_ITSELF: Final = 32_768
"""Bytes that a pipe takes at once on every system."""


def drain(fd: int) -> None:
    """Read what the agent writes to a command that is not there."""
    try:
        while os.read(fd, 65_536):
            pass
    except OSError:
        pass
    finally:
        os.close(fd)


def feed(fd: int, data: bytes, *, close: bool = True) -> None:
    """Write what a command wrote that is not there; never waits for a reader.

    Args:
        fd: a pipe, or a file.
        data: what it wrote.
        close: nothing follows.
    """
    if len(data) > _BY_ITSELF and not stat.S_ISREG(os.fstat(fd).st_mode):
        start_new_thread(_write, (fd if close else os.dup(fd), data, True))
    else:
        _write(fd, data, close)


def _write(fd: int, data: bytes, close: bool) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:  # the agent has left it
        pass
    finally:
        if close:
            os.close(fd)


def tapped(stream: Any, taken: Taken, over: Callable[[], None]) -> Any:
    """A stream that keeps what is read from it.

    Args:
        stream: of a ``Popen``.
        taken: gets what is read.
        over: called when nothing more can be read.
    """
    if isinstance(stream, io.TextIOWrapper):
        encoding, errors, lines = stream.encoding, stream.errors, stream.line_buffering
        return io.TextIOWrapper(tapped(stream.detach(), taken, over), encoding=encoding, errors=errors, line_buffering=lines)
    if isinstance(stream, io.BufferedReader):
        return io.BufferedReader(_Tap(stream.detach(), taken, over))
    return _Tap(stream, taken, over) if isinstance(stream, io.FileIO) else stream


def fed(stream: Any, given: Fed, over: Callable[[], None]) -> Any:
    """A stream that keeps what is written to it.

    Args:
        stream: of a ``Popen``.
        given: gets what is written.
        over: called when it has been closed.
    """
    if isinstance(stream, io.TextIOWrapper):
        encoding, errors, lines, through = stream.encoding, stream.errors, stream.line_buffering, stream.write_through
        inner = fed(stream.detach(), given, over)
        return io.TextIOWrapper(inner, encoding=encoding, errors=errors, line_buffering=lines, write_through=through)
    if isinstance(stream, io.BufferedWriter):
        return io.BufferedWriter(_Feed(stream.detach(), given, over))
    return _Feed(stream, given, over) if isinstance(stream, io.FileIO) else stream


class _Feed(io.RawIOBase):
    """The writing end of a pipe, whose content is kept as it is written."""

    def __init__(self, raw: Any, given: Fed, over: Callable[[], None]) -> None:
        self._raw = raw
        self._given = given
        self._over = over
        self._process = os.getpid()
        self.name = raw.name
        self.mode = "wb"

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._raw.fileno())

    def isatty(self) -> bool:
        return False

    def write(self, data: Any, /) -> int | None:
        given = self._given
        try:
            size: int | None = self._raw.write(data)
        except OSError:
            given.broken = given.broken or not given.past
            raise
        if size and not given.past:
            given.add(bytes(memoryview(data).cast("B")[:size]))
        return size

    def close(self, _finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if self.closed:
            return
        self._given.over = True  # before a command that reads to the end can end
        self._raw.close()
        super().close()
        if not _finalizing() and self._process == os.getpid():  # what a forked process inherits is not its own
            self._over()


class _Tap(io.RawIOBase):
    """The reading end of a pipe, whose content is kept as it is read."""

    def __init__(self, raw: Any, taken: Taken, over: Callable[[], None]) -> None:
        self._raw = raw
        self._taken = taken
        self._over = over
        self.name = raw.name
        self.mode = "rb"

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._raw.fileno())

    def isatty(self) -> bool:
        return False

    def readinto(self, buffer: Any, /) -> int | None:
        size: int | None = self._raw.readinto(buffer)
        if size:
            self._taken.add(bytes(memoryview(buffer)[:size]))
        elif size == 0:
            self._taken.seen = True
            self._ended()
        return size

    def close(self, _finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not self.closed:
            self._raw.close()
            super().close()
            if not _finalizing():  # else the names of modules are gone
                self._ended()

    def _ended(self) -> None:
        self._taken.over = True
        self._over()
