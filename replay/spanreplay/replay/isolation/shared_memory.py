"""Shared memory and semaphores by name (``shm_open``, ``sem_open``: files in ``/dev/shm``) belong to whoever has made them.

Locks of :mod:`multiprocessing` and blocks of :mod:`multiprocessing.shared_memory` are such files. The processes of a replay may make and
use their own; what others have there is outside.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final


class SharedMemory:
    """What the confined processes have made. For one thread."""

    FOLDER: Final = "/dev/shm/"  # noqa: S108

    def __init__(self) -> None:
        self._own: set[str] = set()

    def takes(self, path: str, *, deleted: bool = False) -> bool:
        """Whether the file is, or will now be, the family's own."""
        if path in self._own:
            if deleted:
                self._own.discard(path)
            return True
        if deleted or os.path.lexists(path):
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
