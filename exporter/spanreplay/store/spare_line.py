"""A line near the start of a journal whose place is kept free: on a full disk it still takes the number of records that were dropped."""

import contextlib
import os
from pathlib import Path
from typing import Final
from zlib import crc32

from spanreplay.store.journal_reader import SPARE, TYPE, parse_line


def spare_line(dropped: int = 0) -> bytes:
    """That line with a number, always as long."""
    data = f'{{"{TYPE}":"drop","{SPARE}":{dropped:<15d}}}'.encode("ascii")
    return b"%08x %s\n" % (crc32(data), data)


LENGTH: Final = len(spare_line(0))
"""Bytes of the line."""


class SpareLine:
    """That line of one journal file.

    Args:
        path: the file.
        offset: where the line begins.
    """

    def __init__(self, path: Path, offset: int) -> None:
        self.noted = 0
        """What it says."""
        self._path = path
        self._offset = offset

    def note(self, dropped: int) -> None:
        """Writes the number over the one before, which takes no room; where that fails, :attr:`noted` stays."""
        with contextlib.suppress(OSError):
            # One of its own: what is written to a descriptor that appends goes to the end, wherever it was put.
            descriptor = os.open(self._path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
            try:
                os.lseek(descriptor, self._offset, os.SEEK_SET)
                if os.read(descriptor, LENGTH) == spare_line(self.noted):  # else it did not get there in the first place
                    os.lseek(descriptor, self._offset, os.SEEK_SET)
                    if os.write(descriptor, spare_line(dropped)) == LENGTH:
                        self.noted = dropped
            finally:
                os.close(descriptor)


def noted_in(head: bytes) -> int:
    """What the spare line of a journal says.

    Args:
        head: the first bytes of the journal, its first two lines at least; what follows does not matter.
    """
    _, _, rest = head.partition(b"\n")
    form = parse_line(rest[:LENGTH])
    dropped = form.get(SPARE) if form is not None else None
    return dropped if type(dropped) is int and 0 <= dropped < 1 << 53 else 0
