"""Which deadlines a program ran into is kept, and in a replay a call that was never made because of one lets that one expire.

A replay answers calls at once, so the time of a block (``asyncio.timeout``, ``asyncio.wait_for``, ``anyio.move_on_after``) may not be over
where it was when it was recorded. Deadlines of a task or thread are told apart by the function that enters them and the order in which it
does: those of HTTP clients are not entered in a replay.
"""

import asyncio
import functools
import math
import sys
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final

import wrapt

from spanreplay.boundary import scope as scopes
from spanreplay.boundary.orders import Channel, channel_of
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation.shims.patching import Patches

_NAME: Final = "deadlines"
_BETWEEN: Final = frozenset({"asyncio", "anyio", "contextlib", "spanreplay"})
"""Packages that enter a deadline for somebody else."""
_PARTS: Final = 3
_ANYIO: Final = "anyio._backends._asyncio"
_patches = Patches()
_hooked = False


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
        self.over = False
        """It has expired, or the program has left it."""
        self.loop = asyncio._get_running_loop()
        self.place = self._recorded(scope)
        """Where in the order of the recorded steps it expired; ``None`` where it did not."""

    def _recorded(self, scope: Scope) -> int | None:
        told = self._session.told_orders if self._session.mode == "replay" else None
        if told is None or told.released:
            return None
        known: Any = scope.memo.get(_NAME)
        if known is None:
            found = (members for _, members in told.left(self._channel) or ())
            known = scope.memo[_NAME] = {one[:2]: one[2] for one in found if len(one) == _PARTS and isinstance(one[2], int)}
        place: int | None = known.get((self._by, self._number))
        return place

    @property
    def awaited(self) -> bool:
        """Expired when it was recorded, not yet here, and is one of the loop that runs."""
        told = self._session.told_orders
        return not self.over and self.place is not None and told is not None and not told.released and self._is_here()

    def _is_here(self) -> bool:
        return self.loop is not None and self.loop is asyncio._get_running_loop()

    def expire(self) -> None:
        """Let it expire now."""
        self._expire()

    def expired(self) -> None:
        """It has."""
        if not self.over:
            self.over = True
            if self._session.orders is not None:
                self._session.orders.add(self._channel, 0, (self._by, self._number, self._session.latest))


def _function() -> str:
    """Who enters a deadline here."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _BETWEEN:
        frame = frame.f_back
    return frame.f_code.co_qualname


_inside: ContextVar[tuple[Deadline, ...]] = ContextVar("spanreplay.deadlines", default=())
"""Those that expired when they were recorded; tasks started inside of them are so too."""
_entered: Final[dict[int, Deadline]] = {}
"""By the identity of what the program has entered."""


def awaited() -> Deadline | None:
    """Of the deadlines around a call that is made here: the first that had expired when it was recorded and has not yet here."""
    found = [deadline for deadline in _inside.get() if deadline.awaited]
    return min(found, key=lambda one: one.place or 0, default=None)


def _enter(expire: Callable[[], object]) -> Deadline | None:
    scope = scopes.current_scope() if scopes.process.active else None
    if scope is None or (scope.session.orders is None and scope.session.told_orders is None):
        return None
    channel = channel_of(scope, _NAME)
    if channel is None:
        return None
    deadline = Deadline(scope, channel, expire)
    if deadline.place is not None:
        _inside.set((*_inside.get(), deadline))
    return deadline


def _leave(deadline: Deadline | None) -> None:
    if deadline is not None:
        deadline.over = True
        if deadline.place is not None:
            _inside.set(tuple(one for one in _inside.get() if one is not deadline))


# ---- asyncio.timeout --------------------------------------------------------------------------------------------


def _now() -> float:
    return asyncio.get_running_loop().time()


def _entering(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def enter(self: Any) -> Any:
        _entered.pop(id(self), None)
        deadline = None if self.when() is None else _enter(lambda: self.reschedule(_now()))
        if deadline is not None:
            _entered[id(self)] = deadline
        return original(self)

    return enter


def _leaving(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def leave(self: Any, *raised: Any) -> Any:
        _leave(_entered.pop(id(self), None))
        return original(self, *raised)

    return leave


def _expiring(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _on_timeout(self: Any) -> Any:
        deadline = _entered.get(id(self))
        if deadline is not None:
            deadline.expired()
        return original(self)

    return _on_timeout


# ---- asyncio.wait_for of Python 3.11, which has a timer of its own ------------------------------------------------


def _limiting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def wait_for(fut: Awaitable[Any], timeout: float | None) -> Any:  # noqa: ASYNC109 — its own
        limited = timeout is not None and timeout > 0 and scopes.process.active
        given: list[asyncio.Future[Any]] = []
        deadline: Deadline | None = None

        def expire() -> None:
            if deadline is not None and given[0].cancel():
                deadline.expired()

        if limited:
            deadline = _enter(expire)
        if deadline is None:
            return await original(fut, timeout)
        try:
            if deadline.place is not None:
                given.append(asyncio.ensure_future(fut))
            return await original(given[0] if given else fut, timeout)
        except TimeoutError as error:
            if isinstance(error.__cause__, asyncio.CancelledError):
                deadline.expired()
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if not deadline.over or task is None or task.cancelling():
                raise
            raise TimeoutError from error
        finally:
            _leave(deadline)

    return wait_for


# ---- anyio on asyncio -------------------------------------------------------------------------------------------


def _entering_scope(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def enter(self: Any) -> Any:
        _entered.pop(id(self), None)
        if self.deadline == math.inf:  # that of a group of tasks
            return original(self)
        deadline = _enter(lambda: setattr(self, "deadline", _now()))
        if deadline is not None:
            _entered[id(self)] = deadline
        return original(self)

    return enter


def _cancelling(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def cancel(self: Any, *args: Any, **kwargs: Any) -> Any:
        deadline = _entered.get(id(self))
        if deadline is not None and _now() >= self.deadline:
            deadline.expired()
        return original(self, *args, **kwargs)

    return cancel


def _anyio(module: Any) -> None:
    from spanreplay.instrumentation import shims

    if shims._installed and hasattr(module, "CancelScope"):
        _patches.replace(module.CancelScope, "__enter__", _entering_scope)
        _patches.replace(module.CancelScope, "__exit__", _leaving)
        _patches.replace(module.CancelScope, "cancel", _cancelling)


def install() -> None:
    """Patch asyncio, and anyio when it is there or comes."""
    global _hooked  # noqa: PLW0603 — a post-import hook cannot be taken back
    _patches.replace(asyncio.Timeout, "__aenter__", _entering)
    _patches.replace(asyncio.Timeout, "__aexit__", _leaving)
    _patches.replace(asyncio.Timeout, "_on_timeout", _expiring)
    if sys.version_info < (3, 12):
        _patches.rebind(asyncio.tasks, "wait_for", _limiting, everywhere=True)
    if _ANYIO in sys.modules:
        _anyio(sys.modules[_ANYIO])
    elif not _hooked:
        wrapt.register_post_import_hook(_anyio, _ANYIO)
        _hooked = True


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
