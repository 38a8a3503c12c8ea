"""Which thread puts what into a :class:`queue.Queue` first, and which takes what, is kept, and in a replay told again.

So a worker takes the items again that it took, and results come in the order in which they came. Kept is what the program's own code puts
and takes, and not what packages do with their threads, which need not be the same in a replay. A thread that runs an event loop does not
wait for its turn.
"""

import functools
import queue
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from spanreplay.boundary import loops
from spanreplay.boundary import scope as scopes
from spanreplay.boundary.orders import Channel, channel_of
from spanreplay.boundary.session import Session
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims import timed_waits
from spanreplay.instrumentation.shims.own_code import caller, is_own
from spanreplay.instrumentation.shims.recorded_turns import Lap, RecordedTurns

_patches = Patches()
_BETWEEN: Final = frozenset({"queue", __name__, timed_waits.__name__})
"""Modules that put or take for somebody else."""


class Turns:
    """Whose turn it is to put into, or to take from, a queue.

    Args:
        session: of the program.
        channel: it is.
    """

    def __init__(self, session: Session, channel: Channel) -> None:
        self.session: Final = session
        self._channel = channel
        self._kept = session.orders
        self._turns = RecordedTurns(session, channel)
        self._changed = threading.Condition()
        self._lap = Lap()

    @property
    def awaits(self) -> bool:
        """Somebody's turn is still to come."""
        return bool(self._turns.left)

    def wait(self, who: str, *, for_the_rest: bool) -> None:
        """Return when it is the turn of ``who``.

        Args:
            who: path of the task or thread.
            for_the_rest: one who has no turn any more comes after all others; else it comes at once.
        """
        turns = self._turns
        if turns.told is None or not turns.left or loops.is_running():
            return
        with self._changed:
            head, patience = None, None
            while turns.left and not turns.told.released:
                if turns.is_of(who) or not (for_the_rest or turns.comes(who)):
                    return
                if head is not turns.left[0] or patience is None:
                    head, patience = turns.left[0], turns.told.patience(turns.left[0][0])
                if not self._changed.wait(patience.part) and patience.is_over():
                    turns.give_up()
                    self._changed.notify_all()
                    turns.told.relaxed()

    def had(self, who: str) -> None:
        """It has put or taken something."""
        if self._turns.left:
            with self._changed:
                if self._turns.left:
                    self._turns.had(who)
                    self._changed.notify_all()
        if self._kept is not None:
            self._kept.add(self._channel, self._lap.ms(), (who,))


def _frame_of_program(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_globals.get("__name__") in _BETWEEN:
        frame = frame.f_back
    return frame is not None and is_own(frame)


def _who(turns: Turns, depth: int = 2) -> str | None:
    """The task or thread that asks, where it is the program's own code that does."""
    scope = scopes.current_scope() if scopes.process.active else None
    if scope is None or scope.session is not turns.session or not _frame_of_program(caller(depth)):
        return None
    return scope.path


def _making(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 — it stands in for that
        original(self, *args, **kwargs)
        scope = scopes.current_scope() if scopes.process.active else None
        if scope is None or not _frame_of_program(caller()):
            return
        if scope.session.orders is None and scope.session.told_orders is None:
            return
        number = scope.next("!queue")
        for way in ("put", "get"):
            channel = channel_of(scope, f"{way}#{number}")
            if channel is not None:
                turns = Turns(scope.session, channel)
                setattr(self, f"_spanreplay_{way}", turns)
                setattr(self, f"_{way}", functools.partial(_noting, turns, getattr(self, f"_{way}")))

    return __init__


def _noting(turns: Turns, original: Callable[..., Any], *args: Any) -> Any:
    """Under the lock of the queue."""
    made = original(*args)
    who = _who(turns)
    if who is not None:
        turns.had(who)
    return made


def _waiting(original: Callable[..., Any], way: str) -> Callable[..., Any]:
    name, for_the_rest = f"_spanreplay_{way}", way == "get"

    @functools.wraps(original)
    def operate(self: Any, *args: Any, **kwargs: Any) -> Any:
        turns: Turns | None = self.__dict__.get(name)
        if turns is not None and turns.awaits:
            who = _who(turns)
            if who is not None:
                turns.wait(who, for_the_rest=for_the_rest)
        return original(self, *args, **kwargs)

    return operate


def install() -> None:
    """Patch the queues of threads."""
    _patches.replace(queue.Queue, "__init__", _making)
    for way in ("put", "get"):
        _patches.replace(queue.Queue, way, functools.partial(_waiting, way=way))


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
