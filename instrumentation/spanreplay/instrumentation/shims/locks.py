"""In which order tasks get a lock or a semaphore of asyncio that the program's own code has made is kept, and in a replay told again.

Who comes first depends on sleeps, answers and timers. Without it a replay holds back the call of a task that has the lock until that of
another one was answered, which waits for the lock. A condition has a lock. Of what one task alone has used nothing is kept.
"""

import asyncio
import functools
from collections import deque
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, Final

from spanreplay.boundary import scope as scopes
from spanreplay.boundary.orders import MOST_OF_ONE, Channel, ToldOrders, channel_of
from spanreplay.boundary.session import Session
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims import completions
from spanreplay.instrumentation.shims.own_code import caller, is_own
from spanreplay.instrumentation.shims.recorded_turns import Lap, RecordedTurns

_patches = Patches()
_BETWEEN: Final = asyncio.Lock.__module__
_ORDER: Final = "_spanreplay_order"


class TaskOrder:
    """Whose turn it is at one lock, or one end of a queue. It belongs to one event loop.

    Args:
        session: of the program.
        channel: it is.
    """

    def __init__(self, session: Session, channel: Channel) -> None:
        self.session: Final = session
        self._channel = channel
        self._kept = session.orders
        self._turns = RecordedTurns(session, channel)
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._lap = Lap()
        self._only: str | None = None
        self._alone: list[int] | None = []
        """Milliseconds of the items of the only task that has had it; ``None`` when there are several."""

    async def in_turn(self, who: str, acquire: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Do it when it is the turn of ``who``, the path of a task."""
        turns = self._turns
        while turns.told is not None and turns.left and not turns.told.released and turns.comes(who) and not turns.is_of(who):
            await self._wait(who, turns.told)
        made = await acquire()
        self.had(who)
        return made

    async def _wait(self, who: str, told: ToldOrders) -> None:
        """Until the turn of ``who`` may have come, or the one that is awaited did not come in time."""
        loop, left = asyncio.get_running_loop(), self._turns.left
        head = left[0]
        patience = told.patience(head[0])
        mine: deque[asyncio.Future[None]] = self._waiting.setdefault(who, deque())
        while left and left[0] is head and not told.released:
            woken: asyncio.Future[None] = loop.create_future()
            mine.append(woken)
            timer = loop.call_later(patience.part, _wake, woken)
            try:
                await woken
            finally:
                timer.cancel()
                mine.remove(woken)
            if left and left[0] is head and patience.is_over():
                self._turns.give_up()
                told.relaxed()
                self._wake_next()

    def had(self, who: str) -> None:
        """It has got the lock, or put its item."""
        if self._turns.left:
            self._turns.had(who)
            self._wake_next()
        if self._kept is not None:
            ms = self._lap.ms()
            if self._alone is None:
                self._kept.add(self._channel, ms, (who,))
            else:
                self._keep_first(self._kept, who, ms)

    def _keep_first(self, kept: Any, who: str, ms: int) -> None:
        alone = self._alone or []
        if self._only is None or self._only == who:
            self._only = who
            if len(alone) < MOST_OF_ONE:
                alone.append(ms)
                self._alone = alone
            return
        for each in alone:
            kept.add(self._channel, each, (self._only,))
        kept.add(self._channel, ms, (who,))
        self._alone = None

    def _wake_next(self) -> None:
        """Whose turn it is now; all where there is no order any more."""
        left = self._turns.left
        for who in left[0][1] if left else tuple(self._waiting):
            for woken in self._waiting.get(str(who), ()):
                _wake(woken)
        if not left:
            self._waiting.clear()


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def made_by_program(frame: FrameType | None) -> bool:
    """Whether the program's own code asks, by itself or through another class of :mod:`asyncio.locks`."""
    while frame is not None and frame.f_globals.get("__name__") == _BETWEEN:
        frame = frame.f_back
    return frame is not None and is_own(frame)


def making(original: Callable[..., None], name: str) -> Callable[..., None]:
    """An ``__init__`` that gives what the program's own code makes an order, in a channel of this name."""

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 — it stands in for that
        original(self, *args, **kwargs)
        scope = scopes.current_scope() if scopes.process.active else None
        if scope is None or (scope.session.orders is None and scope.session.told_orders is None) or not made_by_program(caller()):
            return
        channel = channel_of(scope, f"{name}#{scope.next('!' + name)}")
        if channel is not None:
            setattr(self, _ORDER, TaskOrder(scope.session, channel))

    return __init__


def order_at(place: object) -> tuple[TaskOrder | None, str | None]:
    """The order there, and the path of who asks; ``None`` where nothing is kept or told."""
    order: TaskOrder | None = getattr(place, _ORDER, None)
    scope = scopes.current_scope() if order is not None and scopes.process.active else None
    if order is None or scope is None or scope.session is not order.session or channel_of(scope, _ORDER) is None:
        return None, None
    return order, scope.path


def _acquiring(original: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    @completions.marked
    @functools.wraps(original)
    def acquire(self: Any) -> Any:
        order, who = order_at(self)
        if order is None or who is None:
            return original(self)
        made: Any = order.in_turn(who, functools.partial(original, self))
        made.__name__, made.__qualname__ = original.__name__, original.__qualname__
        return made

    return acquire


def install() -> None:
    """Patch asyncio."""
    for kind in (asyncio.Lock, asyncio.Semaphore):
        _patches.replace(kind, "__init__", functools.partial(making, name="lock"))
        _patches.replace(kind, "acquire", _acquiring)


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
