"""The wait of an asynchronous call for its intent to be on the disk: one for all calls that the event loop begins before it."""

import asyncio
from collections.abc import Callable
from weakref import WeakKeyDictionary


class Settling:
    """Calls that begin side by side, as the tools that one answer of a model asks for, wait for the disk together.

    Args:
        settle: puts all that was told so far on the disk; raises nothing.
    """

    def __init__(self, settle: Callable[[], None]) -> None:
        self._settle = settle
        self._waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = WeakKeyDictionary()

    async def wait(self) -> None:
        """Return when all that was told before is on the disk."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # another kind of loop, trio's
            self._settle()
            return
        waiting = self._waiting.get(loop)
        if waiting is None:
            waiting = self._waiting[loop] = []
            loop.call_soon(self._run, loop)
        mine: asyncio.Future[None] = loop.create_future()  # one that is cancelled does not cancel the others
        waiting.append(mine)
        await mine

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting = self._waiting.pop(loop)
        self._settle()
        for each in waiting:
            if not each.done():
                each.set_result(None)
