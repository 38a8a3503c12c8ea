"""Siblings finish in the recorded order.

What an agent does next can depend on which of several parallel calls came back first: it orders the tool messages of its next
request by completion. A step waits until every step that overlapped it and ended before it in the record has been given,
and then, on an event loop, until the loop has nothing ready, so that what those answers set off has run. Waits are bounded.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Final

WAIT_S: Final = 2.0
"""Longest wait for a sibling that does not come."""
_QUIET_PASSES: Final = 200
_BLIND_PASSES: Final = 20
"""Passes on a loop whose ready queue cannot be seen (uvloop)."""


class Turns:
    """The completion order of one recorded run. Steps are named by their ``seq``."""

    def __init__(self, before: dict[int, frozenset[int]], relaxed: Callable[[], None], *, wait_s: float = WAIT_S) -> None:
        self._before = before
        self._relaxed = relaxed
        self._wait_s = wait_s
        self._given: set[int] = set()
        self._changed = threading.Condition()
        self._waiting: dict[int, tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = {}
        self._concerned = frozenset(before) | frozenset(s for group in before.values() for s in group)

    def turn(self, seq: int) -> "OneTurn | None":
        """The turn of a step, or ``None`` when it overlapped nothing."""
        return OneTurn(self, seq) if seq in self._concerned else None

    def _open(self, seq: int) -> bool:
        return self._before.get(seq, frozenset()) <= self._given

    def wait(self, seq: int) -> None:
        """Block this thread until it is the step's turn."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._open(seq), self._wait_s):
                self._relaxed()

    async def wait_async(self, seq: int) -> None:
        """Wait for the step's turn, then for the loop to come to rest."""
        if not self._before.get(seq):
            return
        loop = asyncio.get_running_loop()
        with self._changed:
            if not self._open(seq):
                future: asyncio.Future[None] = loop.create_future()
                self._waiting[seq] = (loop, future)
            else:
                future = loop.create_future()
                future.set_result(None)
        try:
            await asyncio.wait_for(future, self._wait_s)
        except TimeoutError:
            self._relaxed()
            return
        finally:
            with self._changed:
                self._waiting.pop(seq, None)
        await _rest(loop)

    def given(self, seq: int) -> None:
        """The step's answer has been handed over."""
        with self._changed:
            self._given.add(seq)
            ready = [(loop, future) for waiting, (loop, future) in self._waiting.items() if self._open(waiting)]
            self._changed.notify_all()
        for loop, future in ready:
            try:
                loop.call_soon_threadsafe(_release, future)
            except RuntimeError:  # that loop is closed: nobody waits there any more
                continue


class OneTurn:
    """The turn of one step; a :class:`spanreplay.boundary.call.Turn`."""

    __slots__ = ("_seq", "_turns")

    def __init__(self, turns: Turns, seq: int) -> None:
        self._turns = turns
        self._seq = seq

    def wait(self) -> None:
        """Block until it is this step's turn."""
        self._turns.wait(self._seq)

    async def wait_async(self) -> None:
        """Wait until it is this step's turn."""
        await self._turns.wait_async(self._seq)

    def given(self) -> None:
        """The answer has been handed over."""
        self._turns.given(self._seq)


def _release(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


async def _rest(loop: asyncio.AbstractEventLoop) -> None:
    """Return when nothing else is ready to run on ``loop``."""
    ready: Any = getattr(loop, "_ready", None)
    for passes in range(_QUIET_PASSES):
        await asyncio.sleep(0)
        if ready is None:
            if passes >= _BLIND_PASSES:
                return
        elif not ready:
            return
