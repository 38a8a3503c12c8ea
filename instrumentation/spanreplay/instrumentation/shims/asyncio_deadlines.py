"""The deadlines of asyncio (``asyncio.timeout``, ``asyncio.wait_for``), entered and left as :mod:`.deadlines` tells."""

import asyncio
import functools
import sys
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any, Final

from spanreplay.boundary import cancelled
from spanreplay.boundary import scope as scopes
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims import deadlines
from spanreplay.instrumentation.shims.tasks import is_of_program, name_of

_AT_ONCE_S: Final = 1.0
"""Within which a deadline expires that is now."""
_IN_VAIN_S: Final = 0.01
"""How long something is waited for that did not come in time when it was recorded: what is here already, of a queue, is not to be lost."""
_AWAITABLE: Final = "_wrap_awaitable"
"""What Python 3.11 makes a task of where no coroutine is waited for."""
_patches = Patches()


# ---- asyncio.timeout --------------------------------------------------------------------------------------------


def _entering(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def enter(self: Any) -> Any:
        deadlines.begin(self, lambda one: one.reschedule(deadlines.loop_time()), limited=self.when() is not None)
        made = await original(self)
        deadline = deadlines.entered.get(self)
        if deadline is not None and deadline.in_vain:
            self.reschedule(min(self.when(), deadlines.loop_time() + _IN_VAIN_S))
        return made

    return enter


def _leaving_in_time(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def leave(self: Any, *raised: Any) -> Any:
        deadline = deadlines.entered.get(self)
        try:
            in_time = deadline is None or raised[0] is not None or deadline.swallowed or deadline.in_vain
            if deadline is not None and not in_time and deadline.awaited:
                raised = await _expiry(deadline)
            if deadline is not None:
                deadline.ends(raised[0])
        finally:
            deadlines.leave(deadlines.entered.pop(self, None))
        return await original(self, *raised)

    return leave


async def _expiry(deadline: deadlines.Deadline) -> tuple[Any, Any, Any]:
    """The block has ended, and when it was recorded it had no time left: what that raises, as if it were raised at the end of the block."""
    deadline.expire()
    try:
        await asyncio.sleep(_AT_ONCE_S)
    except asyncio.CancelledError as error:
        return type(error), error, error.__traceback__
    return None, None, None


def _expiring(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _on_timeout(self: Any) -> Any:
        deadline = deadlines.entered.get(self)
        later = None if deadline is None else deadline.is_late()
        if later is not None:
            return self.reschedule(deadlines.loop_time() + later)
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
        deadline: deadlines.Deadline | None = None

        def expire() -> None:
            if deadline is not None and given[0].cancel():
                deadline.expired()

        if limited:
            deadline = deadlines.enter(expire)
        if deadline is None or timeout is None:
            return await original(fut, timeout)
        if deadline.is_to_come_in_time:
            return await _in_time(original, asyncio.ensure_future(fut), timeout, deadline)
        if deadline.place is not None:
            given.append(asyncio.ensure_future(fut))
            deadline.awaits = given[0]
        seconds = min(timeout, _IN_VAIN_S) if deadline.in_vain else timeout
        return await _expiring_here(original, given[0] if given else fut, seconds, deadline)

    return wait_for


def _is_expiry(deadline: deadlines.Deadline) -> bool:
    """Whether a cancellation that reaches the task here is what the deadline did, and nobody else's."""
    task = asyncio.current_task()
    return deadline.over and task is not None and not task.cancelling()


async def _expiring_here(original: Callable[..., Any], fut: Awaitable[Any], seconds: float, deadline: deadlines.Deadline) -> Any:
    """Wait for what did not come in time when it was recorded, or is not recorded yet."""
    try:
        value = await original(fut, seconds)
    except TimeoutError as error:
        if isinstance(error.__cause__, asyncio.CancelledError):
            deadline.expired()
        raise
    except asyncio.CancelledError as error:
        if not _is_expiry(deadline):
            raise
        raise TimeoutError from error
    else:
        if deadline.in_vain or not deadline.awaited:
            return value
        deadline.expired()
        raise TimeoutError
    finally:
        deadlines.leave(deadline)


async def _in_time(original: Callable[..., Any], given: "asyncio.Future[Any]", seconds: float, deadline: deadlines.Deadline) -> Any:
    """Wait for what came in time when it was recorded, also a little longer than the program does."""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle

    def ring() -> None:
        nonlocal timer
        later = deadline.is_late()
        if later is not None:
            timer = loop.call_later(later, ring)
        elif given.cancel():
            deadline.expired()

    timer = loop.call_later(seconds, ring)
    try:
        return await original(given, None)
    except asyncio.CancelledError as error:
        if not _is_expiry(deadline):
            raise
        raise TimeoutError from error
    finally:
        timer.cancel()
        deadlines.leave(deadline)


# ---- asyncio.wait_for of later ones, which awaits in the task itself what that made a task of ----------------------


def _placing(original: Callable[..., Any]) -> Callable[..., Any]:
    """The calls of what is waited for have the places that they have in Python 3.11."""

    @functools.wraps(original)
    async def wait_for(fut: Awaitable[Any], timeout: float | None) -> Any:  # noqa: ASYNC109 — its own
        scope = scopes.current_scope() if scopes.process.active else None
        if scope is None or timeout is None or timeout <= 0 or asyncio.isfuture(fut):
            return await original(fut, timeout)
        return await original(_inside(fut, scope.fork(name_of(fut) if asyncio.iscoroutine(fut) else _AWAITABLE)), timeout)

    return wait_for


async def _inside(awaited: Awaitable[Any], scope: Scope) -> Any:
    token = scopes.enter(scope)
    try:
        with cancelled.awaited(scope) if is_of_program(awaited) else nullcontext():
            return await awaited
    finally:
        scopes.leave(token)


def install() -> None:
    """Patch asyncio."""
    _patches.replace(asyncio.Timeout, "__aenter__", _entering)
    _patches.replace(asyncio.Timeout, "__aexit__", _leaving_in_time)
    _patches.replace(asyncio.Timeout, "_on_timeout", _expiring)
    _patches.rebind(asyncio.tasks, "wait_for", _limiting if sys.version_info < (3, 12) else _placing, everywhere=True)


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
