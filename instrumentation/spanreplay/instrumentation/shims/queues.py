"""Which thread puts what into a :class:`queue.Queue` first, and which takes what, is kept, and in a replay told again.

So a worker takes the items again that it took, and results come in the order in which they came. Kept is what the program's own code puts
and takes, and not what packages do with their threads, which need not be the same in a replay. A thread that runs an event loop does not
wait for its turn.
"""

import functools
import queue
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from spanreplay.boundary import loops
from spanreplay.boundary import scope as scopes
from spanreplay.boundary.orders import Channel, Item, Member, channel_of
from spanreplay.boundary.session import Session
from spanreplay.instrumentation.shims import timed_waits
from spanreplay.instrumentation.shims.own_code import is_own
from spanreplay.instrumentation.shims.patching import Patches

_patches = Patches()
_BETWEEN: Final = frozenset({"queue", __name__, timed_waits.__name__})
"""Modules that put or take for somebody else."""
_IN_VAIN: Final = 3
"""After so many who did not come, the rest of a channel comes as it comes."""


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
        self._told = session.told_orders if session.mode == "replay" else None
        self._left: deque[Item] = (None if self._told is None else self._told.left(channel)) or deque()
        self._early: Counter[Member] = Counter()
        """Who has had its turn and did not wait for it."""
        self._to_come = Counter(members[0] for _, members in self._left if members)
        self._changed = threading.Condition()
        self._in_vain = 0
        self._at = time.monotonic()

    @property
    def awaits(self) -> bool:
        """Somebody's turn is still to come."""
        return self._told is not None and bool(self._left)

    def wait(self, who: str, *, for_the_rest: bool) -> None:
        """Return when it is the turn of ``who``.

        Args:
            who: path of the task or thread.
            for_the_rest: one who has no turn any more comes after all others; else it comes at once.
        """
        told = self._told
        if told is None or not self._left or loops.is_running():
            return
        with self._changed:
            head, patience = None, None
            while self._left and not told.released:
                if self._left[0][1] == (who,) or not (for_the_rest or self._to_come[who]):
                    return
                if head is not self._left[0] or patience is None:
                    head, patience = self._left[0], told.patience(self._left[0][0])
                if not self._changed.wait(patience.part) and patience.is_over():
                    self._in_vain += 1
                    self._next()
                    self._pass()
                    if self._in_vain >= _IN_VAIN:
                        self._left.clear()
                    told.relaxed()

    def had(self, who: str) -> None:
        """It has put or taken something."""
        if self._left:
            with self._changed:
                if self._left:
                    self._early[who] += 1
                    self._pass()
        if self._kept is not None:
            now = time.monotonic()
            self._kept.add(self._channel, int((now - self._at) * 1000), (who,))
            self._at = now

    def _pass(self) -> None:
        while self._left and all(self._early[member] for member in self._left[0][1]):
            self._early.subtract(self._left[0][1])
            self._next()

    def _next(self) -> None:
        _, members = self._left.popleft()
        for member in members:
            self._to_come[member] -= 1
        self._changed.notify_all()


def _frame_of_program(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_globals.get("__name__") in _BETWEEN:
        frame = frame.f_back
    return frame is not None and is_own(frame)


def _who(turns: Turns, depth: int = 2) -> str | None:
    """The task or thread that asks, where it is the program's own code that does."""
    scope = scopes.current_scope() if scopes.process.active else None
    if scope is None or scope.session is not turns.session or not _frame_of_program(sys._getframe(depth)):
        return None
    return scope.path


def _making(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 — it stands in for that
        original(self, *args, **kwargs)
        scope = scopes.current_scope() if scopes.process.active else None
        if scope is None or not _frame_of_program(sys._getframe(1)):
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
