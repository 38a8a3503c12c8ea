"""Which deadlines a program ran into is kept, and in a replay a call that was never made because of one lets that one expire.

A replay answers calls at once, so the time of a block (``asyncio.timeout``, ``asyncio.wait_for``, ``anyio.move_on_after``) may not be over
where it was when it was recorded. Deadlines of a task or thread are told apart by the function that enters them and the order in which it
does: those of HTTP clients are not entered in a replay. A call is inside of a deadline where the task was started inside, or is waited for
there, as in ``wait_for(task)``.
"""

import asyncio
import functools
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet, ref

from spanreplay.boundary import loops
from spanreplay.boundary import scope as scopes
from spanreplay.boundary.comprehensions import plain
from spanreplay.boundary.orders import Channel, Wait, channel_of
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.session import Session
from spanreplay.instrumentation.shims.jobs import path_of

_NAME: Final = "deadlines"
_BETWEEN: Final = frozenset({"asyncio", "anyio", "contextlib", "spanreplay", "trio"})
"""Packages that enter a deadline for somebody else."""
_PARTS: Final = 3
_SWALLOWED: Final = "swallowed"
_CHAIN: Final = 1000
"""Tasks that are looked at, one waiting for the other."""


class Deadline:
    """One that the program is inside of.

    Args:
        scope: where the program entered it.
        channel: of the deadlines entered there.
        expire: lets it expire now, as it would by itself.
    """

    def __init__(self, scope: Scope, channel: Channel, expire: Callable[[], object]) -> None:
        self._session = scope.session
        self._channel = channel
        self._expire = expire
        self._by = _function()
        self._number = scope.next(f"!deadline {self._by}")
        self._patience: Wait | None = None
        self.over = False
        """It has expired, or the program has left it."""
        self.loop = loops.running()
        task = None if asyncio._get_running_loop() is None else asyncio.current_task()
        self._task = None if task is None else ref(task)
        self.awaits: object = None
        """What else the task waits for inside."""
        self.swallowed = False
        """The program caught what it raised, and nothing came of it at the end of the block, when it was recorded."""
        self.place = self._recorded(scope)
        """Where in the order of the recorded steps it expired; ``None`` where it did not."""
        self.in_vain = self.place is not None and self.place <= scope.session.latest
        """It expired when as much had begun and ended as has here: no call was made inside of it, and nothing that came was taken."""

    def _recorded(self, scope: Scope) -> int | None:
        told = self._session.told_orders if self._session.mode == "replay" else None
        if told is None or told.released:
            return None
        known: Any = scope.memo.get(_NAME)
        if known is None:
            found = [members for _, members in told.left(self._channel) or ()]
            known = scope.memo[_NAME] = {one[:2]: one[2] for one in found if len(one) == _PARTS and isinstance(one[2], int)}
            known.update({(*one, _SWALLOWED): 0 for one in found if len(one) == _PARTS - 1})
        self.swallowed = (self._by, self._number, _SWALLOWED) in known
        place: int | None = known.get((self._by, self._number))
        return place

    @property
    def awaited(self) -> bool:
        """Expired when it was recorded, not yet here, and is one of the loop that runs."""
        told = self._session.told_orders
        if self.over or self.place is None or told is None or told.released:
            return False
        return self.loop is not None and self.loop is loops.running()

    def waits_for(self, path: str) -> bool:
        """Whether the task that has entered it waits, itself or by others, for a task of asyncio that makes the call at ``path``."""
        task = None if self._task is None else self._task()
        left: list[Any] = [getattr(task, "_fut_waiter", None), self.awaits]
        for _ in range(_CHAIN):
            left = [at for at in left if at is not None]
            if not left:
                return False
            at = left.pop()
            at_path = path_of(at)
            if at_path is not None and path.startswith(at_path + "/"):
                return True
            left += [getattr(at, "_fut_waiter", None), *getattr(at, "_children", ())]
        return False

    def expire(self) -> None:
        """Let it expire now."""
        self._expire()

    @property
    def is_to_come_in_time(self) -> bool:
        """It did not expire when it was recorded, and that is told here."""
        told = self._session.told_orders if self._session.mode == "replay" else None
        return told is not None and not told.released and self.place is None

    def is_late(self) -> float | None:
        """How many seconds it is to wait longer, as it did not expire when it was recorded; ``None`` where it is to expire."""
        told = self._session.told_orders
        if told is None or not self.is_to_come_in_time:
            return None
        if self._patience is None:
            self._patience = told.patience(0)
            return self._patience.part
        if self._patience.is_over():
            told.relaxed()
            return None
        return self._patience.part

    def expired(self) -> None:
        """It has."""
        if not self.over:
            self.over = True
            if self.is_to_come_in_time:
                _ran_out.add(self._session)
            if self._session.orders is not None:
                self._session.orders.add(self._channel, 0, (self._by, self._number, self._session.latest))

    def ends(self, kind: type[BaseException] | None) -> None:
        """Its block ends, with an exception of this class."""
        if self.over and self._session.orders is not None and (kind is None or not issubclass(kind, asyncio.CancelledError)):
            self._session.orders.add(self._channel, 0, (self._by, self._number))


def _function() -> str:
    """Who enters a deadline here."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _BETWEEN:
        frame = frame.f_back
    return plain(frame.f_code.co_qualname)


_inside: ContextVar[tuple[Deadline, ...]] = ContextVar("spanreplay.deadlines", default=())
"""Those that expired when they were recorded; tasks started inside of them are so too."""
entered: Final["WeakKeyDictionary[Any, Deadline]"] = WeakKeyDictionary()
"""By what the program has entered."""
_entered: Final[Mapping[Any, Any]] = vars(entered)["data"]
"""What it is kept in: most programs enter no deadline, and looking one up in a weak dictionary costs more than all the rest."""
_to_expire: Final["WeakSet[Deadline]"] = WeakSet()
"""Those that the program is inside of and that expired when they were recorded."""

_ran_out: Final["WeakSet[Session]"] = WeakSet()
"""Replays in which a deadline expired that had not when it was recorded."""


def one_ran_out(session: Session) -> bool:
    """Whether a deadline has expired in a replay that had not when it was recorded: what it cancelled is missing here."""
    return session in _ran_out


def awaited(path: str) -> Deadline | None:
    """Of the deadlines around a call that is made here: the first that had expired when it was recorded and has not yet here.

    Args:
        path: of the call.
    """
    inside = _inside.get()
    found = [one for one in tuple(_to_expire) if one.awaited and (one in inside or one.waits_for(path))]
    return min(found, key=lambda one: one.place or 0, default=None)


def due(before: int) -> list[Deadline]:
    """Those of the loop that runs which had expired before this place in the order of the recorded steps, and have not here."""
    return sorted((one for one in tuple(_to_expire) if one.awaited and (one.place or 0) < before), key=lambda one: one.place or 0)


def enter(expire: Callable[[], object]) -> Deadline | None:
    """A deadline that the program enters here; ``None`` where nothing is recorded or told.

    Args:
        expire: lets it expire now.
    """
    place = _place()
    return None if place is None else _enter(*place, expire)


def _place() -> tuple[Scope, Channel] | None:
    """Where a deadline is entered, and the channel of those that are entered there; ``None`` where nothing is recorded or told."""
    scope = scopes.current_scope() if scopes.process.active else None
    if scope is None or (scope.session.orders is None and scope.session.told_orders is None):
        return None
    channel = channel_of(scope, _NAME)
    return None if channel is None else (scope, channel)


def _enter(scope: Scope, channel: Channel, expire: Callable[[], object]) -> Deadline:
    deadline = Deadline(scope, channel, expire)
    if deadline.place is not None:
        _inside.set((*_inside.get(), deadline))
        _to_expire.add(deadline)
    return deadline


def leave(deadline: Deadline | None) -> None:
    """The program has left it."""
    if deadline is not None:
        deadline.over = True
        if deadline.place is not None:
            _to_expire.discard(deadline)
            _inside.set(tuple(one for one in _inside.get() if one is not deadline))


def begin(block: Any, act: Callable[[Any], object], *, limited: bool) -> None:
    """A block of a program begins.

    Args:
        block: what the program enters, which is not kept.
        act: given it, lets its deadline expire now.
        limited: it has a deadline.
    """
    if _entered:
        entered.pop(block, None)
    place = _place() if limited else None
    if place is None:
        return
    known = ref(block)

    def expire() -> object:
        there = known()
        return None if there is None else act(there)

    entered[block] = _enter(*place, expire)


def leaving(original: Callable[..., Any]) -> Callable[..., Any]:
    """Patches the end of a block that :func:`begin` has been told of."""

    @functools.wraps(original)
    def left(self: Any, *raised: Any) -> Any:
        if _entered:
            leave(entered.pop(self, None))
        return original(self, *raised)

    return left


def loop_time() -> float:
    """The time of the loop that runs here, in seconds."""
    return asyncio.get_running_loop().time()
