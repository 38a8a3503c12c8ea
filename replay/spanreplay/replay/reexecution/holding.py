"""Waits in vain: for a step whose end only the task or thread that would wait can bring about.

A stream that it has opened, and that nobody else reads, ends when it reads on. A call that it makes later, or that a task makes which it
starts later, begins when it goes on. The record knows of both: who opens several streams before it reads them has the second begin before
the first has ended.
"""

import threading
from collections.abc import Hashable, Mapping
from concurrent.futures import thread as pools
from typing import Any, Final
from weakref import ref

from spanreplay.boundary import loops
from spanreplay.boundary.scope import Scope
from spanreplay.replay.isolation.frames import current_frames
from spanreplay.replay.model import Step
from spanreplay.replay.reexecution.forks import FORK

_IDLE: Final = pools._worker.__code__
_JSON: Final = "application/json"
_NO_STEPS: Final[Mapping[int, Step]] = {}


class Holding:
    """Which task or thread has which answer in hand, until it has come to its end.

    Args:
        steps: of the recorded run, by ``seq``; without them only streams are seen.
    """

    def __init__(self, steps: Mapping[int, Step] = _NO_STEPS) -> None:
        self._steps = steps
        self._held: dict[int, tuple[Hashable, Hashable]] = {}
        """Who has opened it, and who has read in it last."""

    def taken(self, seq: int) -> None:
        """Whoever runs now has opened it, or has read on in it."""
        who = loops.who()
        known = self._held.get(seq)
        if known is None:
            self._held[seq] = who, who
        elif known[1] != who:
            self._held[seq] = known[0], who

    def given(self, seq: int) -> None:
        """It has come to its end."""
        self._held.pop(seq, None)

    def in_vain(self, seq: int, scope: Scope | None, awaited: int) -> bool:
        """Whether a step, asked for in ``scope`` by whoever runs now, would wait in vain for another one that has not ended."""
        held = self._held.get(awaited)
        if held is None:
            return scope is not None and self._comes_later(seq, scope, awaited)
        opened, read = held
        holder = opened if _is_over(read) else read
        return holder == loops.who() or _is_over(holder)

    def _comes_later(self, seq: int, scope: Scope, awaited: int) -> bool:
        step, other = self._steps.get(seq), self._steps.get(awaited)
        if step is None or other is None or other.path is None or not _is_of(scope, other.path):
            return False
        return is_read_on(step) or (other.seq_start or 0) < (step.seq_start or 0)


def _is_of(scope: Scope, path: str) -> bool:
    """Whether a call has not begun, and nobody but the task or thread of ``scope`` can begin it or start who does."""
    around: Scope | None = scope
    while around is not None and around.run is scope.run:
        above = f"{around.path}/" if around.path else ""
        if path.startswith(above):
            label, _, number = path[len(above) :].partition("/")[0].rpartition("#")
            return not label.startswith("@") and number.isdigit() and not around.has_forked(label, int(number))
        if around.label.startswith(FORK):
            return False
        around = around.parent
    return False


def is_read_on(step: Step) -> bool:
    """Whether its caller may have gone on before it had ended: elsewhere the record shows that somebody else made what ended meanwhile."""
    wire = step.wire
    if wire is None:
        return step.typed_items is not None
    kind = next((value for name, value in wire.response_headers if name.lower() == "content-type"), "")
    return not kind.lower().startswith(_JSON) or len(wire.chunks) != 1


def _is_over(who: Hashable) -> bool:
    """Whether a task has ended; whether a thread has, or is one of a pool that has nothing to do."""
    if isinstance(who, ref):
        task: Any = who()
        return task is None or (task.done() if hasattr(task, "done") else task.coro.cr_frame is None)
    if all(thread.ident != who for thread in threading.enumerate()):
        return True
    frame = current_frames().get(who) if isinstance(who, int) else None
    return frame is not None and frame.f_code is _IDLE
