"""A replayed command ends as a whole: a process that the replay has stopped gives nothing any more to those that wait for it.

In life they would have got it: the parent of a worker waits on a queue for ever where a difference, or the guard, has ended the worker.
A process that is stopped leaves a mark, an empty file named by its number and by what becomes of the others. The program that replays
looks for marks while the command runs.

``PID.whole``: nothing that the command does from here on counts. It is ended as soon as all of its processes only wait, at last after
:data:`GRACE_S`.
``PID.alone``: the others go on; the command is ended when that process has ended and all of them only wait. It is ended, too, when that
process and the others have done nothing for :data:`GRACE_S` and nobody can ask them for anything: what was refused in a task or a thread is
waited for by the rest for ever, where a library takes no ``BaseException`` for the end of it.

Waiting is told by the processor time of the processes, and by none of them wanting a processor, so that a command which says its last words
on a busy machine is left to it; nor may this process want one, which answers the kernel's questions about them. The processes are found in
``/proc``; elsewhere than on Linux all of them seem to wait, and the first one is ended.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, Literal, Self, TypeAlias

from spanreplay.replay.reexecution import descendants

Ends: TypeAlias = Literal["whole", "alone"]

QUIET_S: Final = 0.5
"""A command that has done nothing for so long only waits."""
GRACE_S: Final = 20.0
"""How long an agent may go on after a difference has stopped it; the time for which it has no processor is not counted."""

_LOOK_S: Final = 0.1
_ASKED_S: Final = 0.5
"""How long processes that are asked to end may take."""
_IDLE: Final = 0.03
"""Share of one processor that also who waits may use: some look again and again."""


def leave_mark(folder: Path, ends: Ends, pid: int | None = None) -> None:
    """Tell the program that replays that a process is stopped. Never fails.

    Args:
        folder: of the marks.
        ends: what becomes of the other processes of the command.
        pid: of the process, or of a thread of it; this one by default.
    """
    with suppress(OSError):
        os.close(
            os.open(
                folder / f"{os.getpid() if pid is None else descendants.process_of(pid)}.{ends}",
                os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC,
                0o600,
            )
        )


class EndsTogether:
    """Ends a command of which a process was stopped. A context: around waiting for the command.

    Args:
        child: its first process, just started.
        folder: of the marks.
        errors: its standard error, which is told that it is ended; ours where there is none.
        quiet_s: seconds without work after which it only waits.
    """

    def __init__(
        self, child: "subprocess.Popen[bytes]", folder: Path, errors: IO[Any] | int | None = None, *, quiet_s: float = QUIET_S
    ) -> None:
        self._child = child
        self._folder = folder
        self._errors = errors
        self._course = Course(quiet_s)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="spanreplay-ends-together", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(_LOOK_S):
            marks = _marks(self._folder)
            if marks:
                tree = descendants.below({self._child.pid})
                everybody = [os.getpid(), *(process.pid for process in tree)]
                busy = descendants.want_a_processor(everybody, but=threading.get_native_id())
                serves = partial(descendants.listen, [process.pid for process in tree])
                why = self._course.is_over(time.monotonic(), marks, tree, busy=busy, serves=serves)
                if why is not None:
                    self._say(why)
                    self._end(tree)
                    return

    def _say(self, why: str) -> None:
        to = 2 if self._errors is None else self._errors if isinstance(self._errors, int) else self._errors.fileno()
        with suppress(OSError):
            os.write(to, f"spanreplay: a process of the command was stopped, and all of it is ended: {why}\n".encode())

    def _end(self, tree: list[descendants.Process]) -> None:
        descendants.adopt_orphans()  # those whose parent ends first are found below this process
        all_of_it = {process.pid for process in tree}
        unseen = self._child.pid not in all_of_it
        for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            descendants.end(tree, number)
            if unseen:
                with suppress(OSError):
                    self._child.send_signal(number)
            until = time.monotonic() + _ASKED_S
            while (tree or (unseen and not self._over.is_set())) and time.monotonic() < until:
                time.sleep(_LOOK_S / 10)
                tree = descendants.below({process.pid for process in tree})
                all_of_it.update(process.pid for process in tree)
        for pid in all_of_it - {self._child.pid}:
            with suppress(OSError):  # most are not ours to wait for
                os.waitpid(pid, os.WNOHANG)


class Course:
    """What a command of which a process was stopped has done since.

    Args:
        quiet_s: seconds without work after which it only waits.
    """

    def __init__(self, quiet_s: float) -> None:
        self._quiet_s = quiet_s
        self._looked_at: float | None = None
        self._looked_used_s = 0.0
        self._went_on_s = 0.0
        self._since = 0.0
        self._pids: set[int] = set()
        self._used_s = 0.0
        self._seen_at = 0.0
        self._rested_s = 0.0
        self._rested_pids: set[int] = set()
        self._rested_used_s = 0.0

    def is_over(
        self,
        now: float,
        marks: Mapping[int, str],
        processes: Sequence[descendants.Process],
        *,
        busy: bool = False,
        serves: Callable[[], bool] = lambda: True,
    ) -> str | None:
        """Why it is to be ended; ``None`` while it may go on.

        Args:
            now: seconds, of any clock that only goes forward.
            marks: number of each process that was stopped, and what becomes of the others.
            processes: those of the command that are there.
            busy: one of them wants a processor just now.
            serves: tells whether one of them may be asked for something by others.
        """
        pids, used_s = {process.pid for process in processes}, sum(process.used_s for process in processes)
        if busy or pids != self._pids or used_s - self._used_s > _IDLE * max(1.0, now - self._since):
            self._since, self._pids, self._used_s = now, pids, used_s
        whole = "whole" in marks.values()
        if whole:
            self._go_on(now, used_s, busy=busy)
        if (whole or marks.keys() - pids) and now - self._since >= self._quiet_s:
            return "the rest waited for it"
        if self._rested(now, pids, used_s, busy=busy) >= GRACE_S and not serves():
            return f"it has only waited for {GRACE_S:g} s"
        return f"the rest went on for {GRACE_S:g} s" if self._went_on_s >= GRACE_S else None

    def _rested(self, now: float, pids: set[int], used_s: float, *, busy: bool) -> float:
        """For how long they have waited, less the time in which one wanted a processor: over so long one does, now and then."""
        if pids != self._rested_pids or used_s - self._rested_used_s > _IDLE * max(1.0, self._rested_s):
            self._rested_s, self._rested_pids, self._rested_used_s = 0.0, pids, used_s
        elif not busy:
            self._rested_s += (now - self._seen_at) / (1 if self._quiet_s < GRACE_S else 2)
        self._seen_at = now
        return self._rested_s

    def _go_on(self, now: float, used_s: float, *, busy: bool) -> None:
        """Count the time since the last look: of who wants a processor, what it got of one."""
        if self._looked_at is not None:
            self._went_on_s += max(0.0, used_s - self._looked_used_s) if busy else now - self._looked_at
        self._looked_at, self._looked_used_s = now, used_s


def _marks(folder: Path) -> dict[int, str]:
    found: dict[int, str] = {}
    with suppress(OSError):
        for file in folder.iterdir():
            pid, _, ends = file.name.partition(".")
            if pid.isdigit() and found.get(int(pid)) != "whole":
                found[int(pid)] = ends
    return found
