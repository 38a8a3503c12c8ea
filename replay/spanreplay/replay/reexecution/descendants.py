"""The processes that a command has started, also those in a session or process group of their own, and how they end.

Found by their parents in ``/proc``. One whose parents are gone belongs to whoever adopts it, so that this process has to offer that before
the command begins (``PR_SET_CHILD_SUBREAPER``, prctl(2)). Elsewhere than on Linux there is nothing to find.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_PR_SET_CHILD_SUBREAPER: Final = 36
_LISTENS: Final = "0A"
_ROUNDS: Final = 5
"""How often those are looked for that were started while the others were ended."""


class Process(NamedTuple):
    """One process; its number may be another's later, number and start are not."""

    pid: int
    parent: int
    group: int
    started: int
    used_s: float
    """Seconds of processor time that it, and the children it has waited for, have used."""


def adopt_orphans() -> None:
    """From now on the descendants of this process whose parents end are its children. Does nothing where that is not offered."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants() -> list[Process]:
    """Every process below this one, parents first; those that have ended are none."""
    return [process for process in below({os.getpid()}) if process.pid != os.getpid()]


def below(tops: set[int]) -> list[Process]:
    """Some processes and every one below them, parents first; those that have ended are none."""
    children: dict[int, list[Process]] = {}
    found: list[Process] = []
    with suppress(OSError):
        for folder in Path("/proc").iterdir():
            process = _read(int(folder.name)) if folder.name.isdigit() else None
            if process is not None and process.pid in tops:
                found.append(process)
            elif process is not None:
                children.setdefault(process.parent, []).append(process)
    todo = list(tops)
    while todo:
        more = children.pop(todo.pop(), [])
        found += more
        todo += [process.pid for process in more]
    return found


def process_of(thread: int) -> int:
    """The process of a thread, by its number; proc(5), ``status``.

    Raises:
        OSError: it has ended.
    """
    for line in Path(f"/proc/{thread}/status").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("Tgid:"):
            return int(line.split()[1])
    return thread


def want_a_processor(pids: Iterable[int], *, but: int = 0) -> bool:
    """Whether a thread of these processes runs, could run and has no processor, or waits for a disk; proc(5), ``stat``, state.

    Args:
        pids: of the processes; one that has ended wants nothing.
        but: a thread that does not count.
    """
    for pid in pids:
        with suppress(OSError, IndexError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                if (thread / "stat").read_bytes().rpartition(b")")[2].split()[0] in (b"R", b"D") and thread.name != str(but):
                    return True
    return False


def listen(pids: Iterable[int]) -> bool:
    """Whether one of these processes waits for connections over the network; proc(5), ``net/tcp``: state and inode are fields 4 and 10."""
    for pid in pids:
        with suppress(OSError, IndexError):
            for table in ("tcp", "tcp6"):
                rows = [row.split() for row in Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]]
                sockets = {f"socket:[{row[9]}]" for row in rows if row[3] == _LISTENS}
                if sockets and any(_target(handle) in sockets for handle in Path(f"/proc/{pid}/fd").iterdir()):
                    return True
    return False


def _target(handle: Path) -> str:
    try:
        return str(handle.readlink())
    except OSError:  # closed meanwhile
        return ""


def end(processes: list[Process], number: int) -> None:
    """Send them a signal, unless they have ended and others have their numbers."""
    for process in processes:
        with suppress(OSError):
            handle = os.pidfd_open(process.pid)
            try:
                now = _read(process.pid)
                if now is not None and now.started == process.started:
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
    """A process that has not ended; proc(5), ``stat``: state, parent, group, times and start are fields 3, 4, 5, 14 to 17, and 22."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        if fields[0] in (b"Z", b"X"):
            return None
        return Process(
            pid=pid,
            parent=int(fields[1]),
            group=int(fields[2]),
            started=int(fields[19]),
            used_s=sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK"),
        )
    except (OSError, ValueError, IndexError):
        return None
