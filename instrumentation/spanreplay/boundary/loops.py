"""Waiting on the event loop that is running, asyncio's (uvloop is one) or trio's, without importing the latter."""

import asyncio
import sys
import threading
from collections.abc import Collection, Hashable
from itertools import count
from typing import Any, Final, Protocol
from weakref import ref

NEAR: Final = 16
"""Turns of a loop that are counted after one that was asked for."""
_BLIND: Final = 4
"""The same on a loop that does not show whether it has something to do (uvloop)."""
_APART: Final = 1 << 20


class Bell(Protocol):
    """Who waits in one task can be woken from any thread."""

    def ring(self) -> None:
        """Wake who waits; once rung, waiting ends at once."""
        ...

    async def wait(self, seconds: float) -> bool:
        """Wait to be woken; tells whether that came in time. May be called again where it did not."""
        ...


def _finish(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


class _OfAsyncio:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung: asyncio.Future[None] = self._loop.create_future()

    def ring(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._release)
        except RuntimeError:  # that loop is closed: nobody waits there any more
            return

    def _release(self) -> None:
        _finish(self._rung)

    async def wait(self, seconds: float) -> bool:
        over: asyncio.Future[None] = self._loop.create_future()
        timer = self._loop.call_later(seconds, _finish, over)
        self._rung.add_done_callback(lambda _: _finish(over))
        try:
            await over
        finally:
            timer.cancel()
            over.cancel()
        return self._rung.done()


class _OfTrio:
    def __init__(self, trio: Any) -> None:
        self._trio = trio
        self._token = trio.lowlevel.current_trio_token()
        self._rung = trio.Event()

    def ring(self) -> None:
        try:
            self._token.run_sync_soon(self._rung.set, idempotent=True)
        except self._trio.RunFinishedError:
            return

    async def wait(self, seconds: float) -> bool:
        with self._trio.move_on_after(seconds):
            await self._rung.wait()
        return bool(self._rung.is_set())


def bell() -> Bell:
    """A bell for the task that is running."""
    trio = _trio()
    return _OfAsyncio() if trio is None else _OfTrio(trio)


def is_running() -> bool:
    """Whether this thread runs an event loop now."""
    return asyncio._get_running_loop() is not None or _trio() is not None


def running() -> object | None:
    """The event loop that runs in this thread."""
    trio = _trio()
    return asyncio._get_running_loop() if trio is None else trio.lowlevel.current_trio_token()


def who() -> Hashable:
    """Who runs now, to be compared: a weak reference to the task, else the number of the thread."""
    if asyncio._get_running_loop() is not None:
        task: Any = asyncio.current_task()
    else:
        trio = _trio()
        task = None if trio is None else trio.lowlevel.current_task()
    return threading.get_ident() if task is None else ref(task)


def ready() -> Collection[object] | None:
    """What the running loop has ready to run; ``None`` where it does not show that."""
    loop = asyncio._get_running_loop()
    found: Collection[object] | None = getattr(loop, "_ready", None)
    return found


class _Turns(threading.local):
    loop: asyncio.AbstractEventLoop | None = None
    """Whose turns are counted now."""
    number: int = 0
    left: int = 0

    def at(self, loop: asyncio.AbstractEventLoop) -> int:
        if self.loop is not loop:
            self.loop = loop
            self.number = next(_begun) * _APART
            loop.call_soon(self._over, loop)
        self.left = NEAR
        return self.number

    def _over(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.loop is not loop:
            return
        self.number += 1
        self.left -= 1
        others = ready()
        if self.left > (NEAR - _BLIND if others is None else 0) and (others is None or others):
            loop.call_soon(self._over, loop)
        else:
            self.loop = None


_turns: Final = _Turns()
_begun: Final = count(1)


def turn_number() -> int | None:
    """The number of the turn that asyncio's loop is in which runs in this thread; ``None`` where none does.

    Numbers that differ by less than :data:`NEAR` are that many turns apart. Turns are counted as long as the loop has something to do, and
    only so many after somebody has asked: numbers of other turns, and of other loops of the process, are farther apart.

    Trio's turns are not counted: it throws a coin in each, so that one more would change what comes first.
    """
    loop = asyncio._get_running_loop()
    return None if loop is None else _turns.at(loop)


async def turn() -> None:
    """Let everything run that is ready."""
    trio = _trio()
    await (asyncio.sleep(0) if trio is None else trio.lowlevel.checkpoint())


async def pause(seconds: float) -> None:
    """Sleep."""
    trio = _trio()
    await (asyncio.sleep(seconds) if trio is None else trio.sleep(seconds))


def is_cancellation_of_trio(error: BaseException) -> bool:
    """Whether trio has cancelled a task."""
    trio = sys.modules.get("trio")
    return trio is not None and isinstance(error, getattr(trio, "Cancelled", ()))


def _trio() -> Any:
    """The module, where a task of it is running in this thread."""
    trio = sys.modules.get("trio")
    if trio is None or asyncio._get_running_loop() is not None:
        return None
    lowlevel = getattr(trio, "lowlevel", None)
    return trio if lowlevel is not None and lowlevel.in_trio_task() else None
