"""Lines of a pipe, which another thread or a signal handler can end."""

import io
import os
import select
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Final

_CHUNK: Final = 2**16


class Lines:
    """Lines of bytes, until the pipe's end, or until :meth:`leave`.

    Args:
        source: nothing may have been read from it by its own methods.
        longest: bytes after which a line is given in pieces.
    """

    def __init__(self, source: IO[bytes], longest: int) -> None:
        self._source = source
        self._longest = longest
        self._left = False
        self._woken, self._wake = os.pipe()

    def leave(self) -> None:
        """No further line is waited for."""
        self._left = True
        with suppress(OSError):
            os.write(self._wake, b"\0")

    def close(self) -> None:
        """Give up what the waiting took; the pipe itself stays open."""
        os.close(self._woken)
        os.close(self._wake)

    def __iter__(self) -> Iterator[bytes]:
        """The lines, each with its line feed, if it has one."""
        try:
            descriptor = self._source.fileno()
        except (OSError, io.UnsupportedOperation):
            descriptor = -1
        if descriptor < 0 or os.name == "nt":  # where a pipe cannot be waited for
            while not self._left and (line := self._source.readline(self._longest)):
                yield line
            return
        begun = bytearray()
        while not self._left and (data := self._chunk(descriptor)):
            seen = len(begun)
            begun += data
            while (end := begun.find(b"\n", seen, self._longest) + 1) or len(begun) >= self._longest:
                line = bytes(begun[: end or self._longest])
                del begun[: len(line)]
                seen = 0
                yield line
                if self._left:
                    return
        if begun and not self._left:
            yield bytes(begun)

    def _chunk(self, descriptor: int) -> bytes:
        ready, _, _ = select.select([descriptor, self._woken], [], [])
        return b"" if self._woken in ready else os.read(descriptor, _CHUNK)
