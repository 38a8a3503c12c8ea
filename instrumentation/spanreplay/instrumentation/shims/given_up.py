"""What a task of asyncio waited for when it was cancelled is kept: in a replay it does not get it either, though it may be there already.

``wait_for(queue.get(), 1)`` gives up after a second. A replay answers at once, so the item is there in time; it stays for the next ``get``.
Kept is what the program's own code waits for at a queue, an event, a lock or a semaphore; and, for the report, which tasks take items again
and again.
"""

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

from spanreplay.boundary import scope as scopes
from spanreplay.boundary.orders import Channel, channel_of
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims import completions
from spanreplay.instrumentation.shims.own_code import caller, is_own

_patches = Patches()
_GET: Final = "Queue.get"
_NAME: Final = "given up"
TAKES: Final = "takes"
"""Name of the channel of a task that has taken more than one item."""
_GRACE_S: Final = 5.0
"""How much longer than recorded one waits to be cancelled."""


def _waiting(original: Callable[..., Coroutine[Any, Any, Any]], what: str) -> Callable[..., Any]:
    @completions.marked
    @functools.wraps(original)
    def wait(self: Any) -> Any:
        scope = scopes.current_scope() if scopes.process.active else None
        session = None if scope is None else scope.session
        if scope is None or session is None or (session.orders is None and session.told_orders is None) or not is_own(caller()):
            return original(self)
        channel = channel_of(scope, _NAME)
        if channel is None:
            return original(self)
        if what == _GET:
            _take(scope)
        made: Any = _watched(scope, channel, f"{what}#{scope.next('!' + what)}", functools.partial(original, self))
        made.__name__, made.__qualname__ = original.__name__, original.__qualname__
        return made

    return wait


def _taking(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(original)
    def get_nowait(self: Any) -> Any:
        scope = scopes.current_scope() if scopes.process.active else None
        if scope is not None and is_own(caller()):
            _take(scope)
        return original(self)

    return get_nowait


def _take(scope: Scope) -> None:
    channel = channel_of(scope, TAKES) if scope.session.orders is not None and scope.next(f"!{TAKES}") == 1 else None
    if channel is not None and scope.session.orders is not None:
        scope.session.orders.add(channel, 0, (1,))


async def _watched(scope: Scope, channel: Channel, member: str, waiting: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    began = time.monotonic()
    try:
        pending_s = _recorded(scope, channel, member)
        if pending_s is not None:
            await asyncio.sleep(pending_s + _GRACE_S)  # the program is about to give up
        return await waiting()
    except asyncio.CancelledError:
        if scope.session.orders is not None:
            scope.session.orders.add(channel, int((time.monotonic() - began) * 1000), (member,))
        raise


def _recorded(scope: Scope, channel: Channel, member: str) -> float | None:
    """After how many seconds it was given up; ``None`` where it was not."""
    told = scope.session.told_orders if scope.session.mode == "replay" else None
    if told is None or told.released:
        return None
    known: Any = scope.memo.get(_NAME)
    if known is None:
        known = scope.memo[_NAME] = {members[0]: ms / 1000 for ms, members in told.left(channel) or () if members}
    found: float | None = known.get(member)
    return found


def install() -> None:
    """Patch asyncio."""
    _patches.replace(asyncio.Queue, "get_nowait", _taking)
    for kind, name in ((asyncio.Queue, "get"), (asyncio.Event, "wait"), (asyncio.Lock, "acquire"), (asyncio.Semaphore, "acquire")):
        _patches.replace(kind, name, functools.partial(_waiting, what=f"{kind.__name__}.{name}"))


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
