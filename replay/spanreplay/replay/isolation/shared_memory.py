"""Shared memory and semaphores by name (``shm_open``, ``sem_open``: files in ``/dev/shm``) can be seen by everybody.

Locks of :mod:`multiprocessing` and joblib are semaphores of names of their own, and there is no other way to make one: the processes of a
replay may make those and use them. Everything else there is outside, new or not.

A C library makes a semaphore as a file of a temporary name that it then links to the right one: ``sem_open`` of glibc and of musl.
"""

import os
import platform
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

_GLIBC: Final = platform.libc_ver()[0] == "glibc"
_LOCK: Final = re.compile(rf"{'sem[.]' if _GLIBC else ''}(mp|loky)-[^/]+")
"""What multiprocessing and its cousins (billiard), and joblib's loky, call their locks."""
_MAKING: Final = re.compile(r"sem[.][A-Za-z0-9]{6}" if _GLIBC else r"tmp-[0-9]+")


class SharedMemory:
    """The locks that the confined processes have made. For one thread."""

    FOLDER: Final = "/dev/shm/"  # noqa: S108

    def __init__(self) -> None:
        self._own: set[str] = set()

    def takes(self, path: str, *, deleted: bool = False) -> bool:
        """Whether the file is, or will now be, a lock of the family's own."""
        if path in self._own:
            if deleted:
                self._own.discard(path)
            return True
        name = path.removeprefix(self.FOLDER)
        if deleted or os.path.lexists(path) or not (_LOCK.fullmatch(name) or _MAKING.fullmatch(name)):
            return False
        self._own.add(path)
        return True

    def moved(self, source: str, target: str, *, kept: bool) -> None:
        """One of its files has another name, beside the first (``kept``) or instead of it."""
        if source in self._own:
            self._own.add(target)
            if not kept:
                self._own.discard(source)

    def clear(self) -> None:
        """Delete what has been left."""
        for path in self._own:
            with suppress(OSError):
                Path(path).unlink()
        self._own.clear()
