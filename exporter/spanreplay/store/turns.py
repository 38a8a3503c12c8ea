"""Who waits for the database says so: who loads much lets writers in between two steps, and every writer lets readers in before he begins.

Nobody's turn comes by chance: who waits holds a shared lock on a file for as long as he does, and who would take the database again asks
for that lock alone. Where a system or a folder has no such locks, who waits still looks again several times a second.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, TypeAlias

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Turn: TypeAlias = Literal["write", "read"]
"""What somebody waits for: the lock of the store, or that nobody writes the file."""
_PAUSE_SECONDS: Final = 0.02
_PATIENCE_SECONDS: Final = 2.0
"""A few times as long as somebody who waits takes to look again, on a busy machine."""


@contextlib.contextmanager
def waiting(folder: Path, turn: Turn) -> Iterator[None]:
    """Inside the block, somebody waits for the store in this folder."""
    descriptor = _opened(folder, turn)
    try:
        if descriptor is not None:
            _lock(descriptor, alone=False)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def let_in(folder: Path, turn: Turn, patience_s: float = _PATIENCE_SECONDS) -> bool:
    """Waits until nobody waits for that turn any more; ``False`` where somebody still does after this many seconds.

    Args:
        folder: the store.
        turn: which. The caller does not hold what it takes.
        patience_s: who does not come in this time may have been stopped.
    """
    descriptor = _opened(folder, turn)
    if descriptor is None:
        return True
    deadline = time.monotonic() + patience_s
    try:
        while not _lock(descriptor, alone=True):
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE_SECONDS)
    finally:
        os.close(descriptor)
    return True


def _opened(folder: Path, turn: Turn) -> int | None:
    try:
        return os.open(folder / f"store.waiting-{turn}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:  # a folder that cannot be written: nobody loads into it either
        return None


def _lock(descriptor: int, *, alone: bool) -> bool:
    """``False`` where somebody waits, and the lock is asked for alone."""
    if fcntl is None:
        return True
    try:
        # Whoever has it alone has it for no longer than it takes to see that nobody waits.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
    except BlockingIOError:
        return False
    except OSError:  # no such locks here
        return True
    return True
