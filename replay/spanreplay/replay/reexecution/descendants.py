"""The processes that a command has started, also those in a session or process group of their own, and how they end.

Found by their parents in ``/proc``. One whose parents are gone belongs to whoever adopts it, so that this process has to offer that before
the command begins (``PR_SET_CHILD_SUBREAPER``, prctl(2)). Elsewhere than on Linux there is nothing to find.
"""

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_PR_SET_CHILD_SUBREAPER: Final = 36
_ROUNDS: Final = 5
"""How often those are looked for that were started while the others were ended."""


class Process(NamedTuple):
    """One process; its number may be another's later, number and start are not."""

    pid: int
    parent: int
    group: int
    started: int


def adopt_orphans() -> None:
    """From now on the descendants of this process whose parents end are its children. Does nothing where that is not offered."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants() -> list[Process]:
    """Every process below this one, parents first; those that have ended are none."""
    children: dict[int, list[Process]] = {}
    with suppress(OSError):
        for folder in Path("/proc").iterdir():
            found = _read(int(folder.name)) if folder.name.isdigit() else None
            if found is not None:
                children.setdefault(found.parent, []).append(found)
    below: list[Process] = []
    todo = [os.getpid()]
    while todo:
        more = children.pop(todo.pop(), [])
        below += more
        todo += [process.pid for process in more]
    return below


def end(processes: list[Process], number: int) -> None:
    """Send them a signal, unless they have ended and others have their numbers."""
    for process in processes:
        with suppress(OSError):
            handle = os.pidfd_open(process.pid)
            try:
                if _read(process.pid) == process:
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)


def end_all(but: set[int]) -> None:
    """Every process below this one ends, and with it what it starts meanwhile.

    Args:
        but: numbers of those that were there before.
    """
    for _ in range(_ROUNDS):
        left = [process for process in descendants() if process.pid not in but]
        if not left:
            return
        end(left, signal.SIGKILL)


def _read(pid: int) -> Process | None:
    """A process that has not ended; proc(5), ``stat``: state, parent, group and start are the 3rd, 4th, 5th and 22nd field."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return None if fields[0] in (b"Z", b"X") else Process(pid, int(fields[1]), int(fields[2]), int(fields[19]))
    except (OSError, ValueError, IndexError):
        return None
