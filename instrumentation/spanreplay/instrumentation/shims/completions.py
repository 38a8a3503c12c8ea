"""Which of several tasks and futures a program saw done first is kept, and in a replay told again.

``asyncio.as_completed`` and ``concurrent.futures.as_completed`` give them one by one, ``wait`` in sets. Threads, timers and addresses in
memory decide in which order, and how many at a time; a program that makes a call for each of them depends on it. While recording, sets
are iterated in the order in which their members were done, or, of those that are not, in which they were given.
"""

import asyncio
import concurrent.futures
import functools
import inspect
import itertools
import queue
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator
from typing import Any, Final
from weakref import ReferenceType, ref

from spanreplay.boundary import loops
from spanreplay.boundary import scope as scopes
from spanreplay.boundary.orders import Channel, Item, ToldOrders, Wait, channel_of
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.arrivals import Arrivals, arrivals
from spanreplay.instrumentation.shims.jobs import in_order
from spanreplay.instrumentation.shims.ordered_sets import InOrder

_patches = Patches()
_serial: Final = itertools.count(1)
_GLANCES: Final = 100
_LATER_S: Final = 0.05
_ends: Final[dict[ReferenceType[Any], int]] = {}
"""Tasks and futures that were waited for, to where they came; 0 where they are not done."""
_forget: Final[Any] = _ends.pop
_call_back: Final = concurrent.futures.Future.add_done_callback
_WAIT: Final = "wait"
_SIZED: Final = frozenset({set, frozenset, list, tuple, InOrder})


def _scope() -> Scope | None:
    return scopes.current_scope() if scopes.process.active else None


# ---- one by one -------------------------------------------------------------------------------------------------


class _Lateness:
    """Whether somebody who came in time when it was recorded is waited for a little longer than the program's time-out."""

    def __init__(self, order: Arrivals | None, told: ToldOrders | None) -> None:
        self._order = order
        self._told = told
        self._patience: Wait | None = None

    def allows(self) -> bool:
        """Wait a little longer."""
        if self._order is None or self._told is None or not self._order.awaits_somebody:
            return False
        if self._patience is None:
            self._patience = self._told.patience(0)
            return True
        return not self._patience.is_over()


class _AsTheyCome:
    """What ``asyncio.as_completed`` gives."""

    def __init__(self, futures: Iterable[Awaitable[Any]], timeout: float | None, order: Arrivals | None) -> None:
        self._loop = asyncio.get_running_loop()
        found = in_order(futures)
        tasks = [asyncio.ensure_future(one, loop=self._loop) for one in (futures if found is None else found)]
        self._order = None if found is None else order
        self._late = _Lateness(self._order, None if self._order is None else self._order.told)
        self._left = self._unseen = len(tasks)
        self._over = False
        self._come: asyncio.Queue[tuple[int, asyncio.Future[Any] | None]] = asyncio.Queue()
        for number, task in enumerate(tasks):
            task.add_done_callback(functools.partial(self._came, number))
        self._timer = None if timeout is None or not tasks else self._loop.call_later(timeout, self._time_out)

    def _came(self, number: int, task: "asyncio.Future[Any]") -> None:
        if self._order is None:
            self._show(number, task)
        elif not self._over:
            self._order.came(number, functools.partial(self._hand_over, number, task))

    def _hand_over(self, number: int, task: "asyncio.Future[Any]") -> None:
        if asyncio._get_running_loop() is self._loop:
            self._show(number, task)
        else:
            self._loop.call_soon_threadsafe(self._show, number, task)

    def _show(self, number: int, task: "asyncio.Future[Any]") -> None:
        if self._over:
            return
        self._left -= 1
        self._come.put_nowait((number, task))
        if not self._left and self._timer is not None:
            self._timer.cancel()

    def _time_out(self) -> None:
        if self._late.allows():
            self._timer = self._loop.call_later(_LATER_S, self._time_out)
            return
        self._over = True
        if self._order is not None:
            self._order.timed_out()
        for _ in range(self._left):
            self._come.put_nowait((-1, None))

    def __iter__(self) -> "_AsTheyCome":
        return self

    def __next__(self) -> Coroutine[Any, Any, Any]:
        if not self._unseen:
            raise StopIteration
        self._unseen -= 1
        return self._result()

    async def _result(self) -> Any:
        return (await self._next()).result()

    async def _next(self) -> "asyncio.Future[Any]":
        number, task = await self._come.get()
        if task is None:
            raise TimeoutError
        if self._order is not None:
            self._order.saw(number)
        return task

    def __aiter__(self) -> "_AsTheyCome":
        return self

    async def __anext__(self) -> "asyncio.Future[Any]":
        if not self._unseen:
            raise StopAsyncIteration
        self._unseen -= 1
        return await self._next()


def _making(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def as_completed(fs: Any, *, timeout: float | None = None) -> Any:
        scope = _scope() if asyncio._get_running_loop() is not None else None
        if scope is None or not isinstance(fs, Iterable) or asyncio.isfuture(fs) or asyncio.iscoroutine(fs):
            return original(fs, timeout=timeout)
        return _AsTheyCome(_unchanging(fs), timeout, arrivals(scope, f"completed#{scope.next('!completed')}", seen=False))

    return as_completed


def _completing(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def as_completed(fs: Any, timeout: float | None = None) -> Iterator[Any]:
        scope = _scope()
        found = in_order(_unchanging(fs)) if scope is not None and isinstance(fs, Iterable) else None
        if scope is None or found is None or not _are(found, concurrent.futures.Future):
            return iter(original(fs, timeout))
        order = arrivals(scope, f"completed#{scope.next('!completed')}", seen=False)
        return iter(original(fs, timeout)) if order is None else _each(found, timeout, order)

    return as_completed


def _each(futures: list[Any], timeout: float | None, order: Arrivals) -> Iterator[Any]:
    until = None if timeout is None else time.monotonic() + timeout
    come: queue.SimpleQueue[Any] = queue.SimpleQueue()
    late = _Lateness(order, order.told)
    left = total = len(futures)
    for number, future in enumerate(futures):
        _call_back(future, functools.partial(_came, order, number, come))
    del futures
    future = None
    while left:
        try:
            number, future = come.get(timeout=None if until is None else max(until - time.monotonic(), 0))
        except queue.Empty:
            if late.allows():
                until = time.monotonic() + _LATER_S
                continue
            order.timed_out()
            raise TimeoutError(f"{left} (of {total}) futures unfinished") from None
        left -= 1
        order.saw(number)
        yield future
        del future


def _came(order: Arrivals, number: int, come: "queue.SimpleQueue[Any]", future: Any) -> None:
    order.came(number, functools.partial(come.put, (number, future)))


# ---- in sets ----------------------------------------------------------------------------------------------------


class _Waiting:
    """One call of ``wait``."""

    def __init__(self, scope: Scope, futures: Collection[Any]) -> None:
        self._kept = scope.session.orders
        self.told = scope.session.told_orders if scope.session.mode == "replay" else None
        self._futures = in_order(futures)
        self._place = {future: number for number, future in enumerate(self._futures or ())}
        channel = None if self._futures is None or (self._kept is None and self.told is None) else channel_of(scope, _WAIT)
        self._channel: Channel | None = channel
        self._at = time.monotonic()
        self._item = self._recorded()
        self.done: list[Any] | None = self._members()
        """What was done when it was recorded."""

    def _recorded(self) -> Item | None:
        left = None if self.told is None or self._channel is None else self.told.left(self._channel)
        return left.popleft() if left else None

    def _members(self) -> list[Any] | None:
        if self._item is None or self._futures is None:
            return None
        places = [place for place in self._item[1] if isinstance(place, int) and 0 <= place < len(self._futures)]
        return [self._futures[place] for place in places] if len(places) == len(self._item[1]) else None

    def patience(self) -> Wait | None:
        """How long to wait for that."""
        return None if self._item is None or self.told is None else self.told.patience(self._item[0])

    def as_recorded(self) -> tuple[InOrder, InOrder]:
        """Done and pending, as it was recorded."""
        done = InOrder.of(self.done or ())
        self._keep(self.done or [])
        return done, InOrder.of([future for future in self._futures or () if future not in done])

    def as_it_came(self, done: set[Any], pending: set[Any]) -> tuple[InOrder, InOrder]:
        """Done and pending, as they are."""
        by_end = list(done)
        if len(by_end) > 1:
            last, place = next(_serial), self._place
            by_end.sort(key=lambda future: (_ends.get(ref(future)) or last, place.get(future, 0)))
        self._keep(by_end)
        return InOrder.of(by_end), InOrder.of([future for future in self._place or pending if future in pending])

    def _keep(self, done: list[Any]) -> None:
        if self._kept is not None and self._channel is not None:
            ms = int((time.monotonic() - self._at) * 1000)
            self._kept.add(self._channel, ms, tuple([self._place[future] for future in done if future in self._place]))


def _waiting(original: Callable[..., Any]) -> Callable[..., Any]:
    process = scopes.process

    @functools.wraps(original)
    def wait(fs: Any, *, timeout: float | None = None, return_when: str = asyncio.ALL_COMPLETED) -> Any:
        if not process.active or (timeout is None and type(fs) in _SIZED and len(fs) == 1):  # of one there is no order
            return original(fs, timeout=timeout, return_when=return_when)
        return in_sets(fs, timeout=timeout, return_when=return_when)

    @functools.wraps(original)
    async def in_sets(fs: Any, *, timeout: float | None = None, return_when: str = asyncio.ALL_COMPLETED) -> Any:  # noqa: ASYNC109 — its own
        scope = _scope()
        fs = _unchanging(fs)
        if scope is None or not _are(fs, asyncio.Future):
            return await original(fs, timeout=timeout, return_when=return_when)
        waiting = _Waiting(scope, fs)
        if waiting.done is not None:
            patience = waiting.patience()
            if not waiting.done and timeout is not None:
                await original(fs, timeout=timeout)
                return waiting.as_recorded()
            while waiting.done and patience is not None:
                if all(future.done() for future in waiting.done):
                    return waiting.as_recorded()
                await original(waiting.done, timeout=patience.part)
                if waiting.told is None or waiting.told.released:
                    break
                if patience.is_over():
                    waiting.told.relaxed()
                    break
        _note_ends(fs, asyncio.Future.add_done_callback)
        found = await original(fs, timeout=timeout, return_when=return_when)
        if len(found[0]) > 1:
            _note_ready()
        return waiting.as_it_came(*found)

    return marked(wait)


def marked(function: Callable[..., Any]) -> Callable[..., Any]:
    """What gives a coroutine is a coroutine function for who asks."""
    mark: Callable[..., Any] | None = getattr(inspect, "markcoroutinefunction", None)  # Python 3.12
    if mark is not None:
        mark(function)
    else:
        function._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]
    return function


def _blocking(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wait(fs: Any, timeout: float | None = None, return_when: str = concurrent.futures.ALL_COMPLETED) -> Any:
        scope = _scope()
        fs = _unchanging(fs)
        if scope is None or not _are(fs, concurrent.futures.Future) or (len(fs) == 1 and timeout is None):
            return original(fs, timeout, return_when)
        waiting = _Waiting(scope, fs)
        if waiting.done is not None:
            patience = waiting.patience()
            if not waiting.done and timeout is not None:
                return type(original(fs, timeout))(*waiting.as_recorded())
            while waiting.done and patience is not None:
                found = original(waiting.done, patience.part)
                if not found.not_done:
                    return type(found)(*waiting.as_recorded())
                if waiting.told is None or waiting.told.released:
                    break
                if patience.is_over():
                    waiting.told.relaxed()
                    break
        _note_ends(fs, _call_back)
        found = original(fs, timeout, return_when)
        _note_threads(found.done)
        return type(found)(*waiting.as_it_came(found.done, found.not_done))

    return wait


def _unchanging(fs: Any) -> Any:
    """What may be gone through more than once."""
    if type(fs) in _SIZED or isinstance(fs, set | frozenset | list | tuple):
        return fs
    return list(fs) if isinstance(fs, Iterable) and not asyncio.isfuture(fs) and not asyncio.iscoroutine(fs) else fs


def _are(fs: Any, kind: type[Any]) -> bool:
    if not (type(fs) in _SIZED or isinstance(fs, Collection)) or not fs:
        return False
    for future in fs:  # noqa: SIM110 — a generator costs more than all of the rest
        if not isinstance(future, kind):
            return False
    return True


def _note_ends(futures: Iterable[Any], call_back: Callable[[Any, Callable[[Any], None]], None]) -> None:
    for future in futures:
        if ref(future) not in _ends:
            _ends[ref(future, _forget)] = 0
            call_back(future, _note)


def _note(future: Any) -> None:
    if not _ends.get(ref(future)):
        _ends[ref(future, _forget)] = next(_serial)


def _note_ready() -> None:
    """What was done since who waits was woken: the loop calls back in that order."""
    for handle in tuple(loops.ready() or ()):
        if getattr(handle, "_callback", None) is _note:
            _note(handle._args[0])  # type: ignore[attr-defined]


def _note_threads(done: Iterable[Any]) -> None:
    """A future wakes who waits before it calls back."""
    for _ in range(_GLANCES):
        if all(_ends.get(ref(future)) for future in done):
            return
        time.sleep(0)


def install() -> None:
    """Patch asyncio and concurrent.futures, also where the names were imported before."""
    _patches.rebind(asyncio.tasks, "as_completed", _making, everywhere=True)
    _patches.rebind(asyncio.tasks, "wait", _waiting, everywhere=True)
    _patches.rebind(concurrent.futures._base, "as_completed", _completing, everywhere=True)
    _patches.rebind(concurrent.futures._base, "wait", _blocking, everywhere=True)


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
