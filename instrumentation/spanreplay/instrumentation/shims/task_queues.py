"""In which order tasks put their items into a queue of asyncio that the program's own code has made is kept, and in a replay told again.

So who takes the items, and starts a task for each, has them in the order in which it had them. ``put_nowait`` cannot wait for its turn;
those who can do wait for it.
"""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, Final

from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims import completions
from spanreplay.instrumentation.shims.locks import making, order_at
from spanreplay.instrumentation.shims.own_code import caller

_patches = Patches()
_PUT: Final = asyncio.Queue.put.__code__


def _putting(original: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    @completions.marked
    @functools.wraps(original)
    def put(self: Any, item: Any) -> Any:
        order, who = order_at(self)
        if order is None or who is None:
            return original(self, item)
        made: Any = order.in_turn(who, functools.partial(original, self, item))
        made.__name__, made.__qualname__ = original.__name__, original.__qualname__
        return made

    return put


def _putting_now(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    @functools.wraps(original)
    def put_nowait(self: Any, item: Any) -> None:
        original(self, item)
        order, who = (None, None) if caller().f_code is _PUT else order_at(self)
        if order is not None and who is not None:
            order.had(who)

    return put_nowait


def install() -> None:
    """Patch asyncio."""
    _patches.replace(asyncio.Queue, "__init__", functools.partial(making, name="put of tasks"))
    _patches.replace(asyncio.Queue, "put", _putting)
    _patches.replace(asyncio.Queue, "put_nowait", _putting_now)


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
