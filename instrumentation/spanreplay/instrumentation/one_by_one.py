"""Completions that an event loop hands on one after the other, so that the order in which they are recorded is the one that is seen.

An engine that waits for several tasks gets those that are done in a set (``asyncio.wait``). Where two are done at once, their order is that
of their addresses: another in the replay, and in the request that the model is sent next.
"""

import asyncio
from weakref import WeakKeyDictionary

_PASSES = 200
_BLIND_PASSES = 20
"""Where the loop does not show what is ready, as uvloop does not."""

_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


async def in_turn() -> None:
    """Return at once, or when the loop has done everything that the completion before has caused. To be called last before completing."""
    loop = asyncio.get_running_loop()
    gate = _gates.setdefault(loop, asyncio.Lock())
    await gate.acquire()
    loop.call_soon(_release, loop, gate, 0)


def _release(loop: asyncio.AbstractEventLoop, gate: asyncio.Lock, passes: int) -> None:
    ready = getattr(loop, "_ready", None)
    busy = passes < _BLIND_PASSES if ready is None else bool(ready) and passes < _PASSES
    if busy:
        loop.call_soon(_release, loop, gate, passes + 1)
    else:
        gate.release()
