"""Tasks and futures that the standard library keeps in sets come in the order of the program, and not of their addresses in memory.

``asyncio.as_completed`` makes its tasks out of a set, so which of them were started first would be chance, and with it whose call a
recorded call is. ``asyncio.wait`` and ``concurrent.futures.wait`` give sets, so which of two that were done together is looked at first
would be. Here the former gets tasks made in the order given, and the latter give sets that are iterated in the order in which their
members were done, or those that are not done in the order in which they were given.
"""

import asyncio
import concurrent.futures
import functools
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Final
from weakref import WeakKeyDictionary

from spanreplay.boundary import loops
from spanreplay.boundary import scope as scopes
from spanreplay.instrumentation.shims.patching import Patches

_patches = Patches()
_serial: Final = itertools.count()
_GLANCES: Final = 100
_given: Final[WeakKeyDictionary[Any, int]] = WeakKeyDictionary()
"""Tasks and futures to where they came in what was first waited for."""
_done: Final[WeakKeyDictionary[Any, int]] = WeakKeyDictionary()
"""Those that are done to where they came."""


def _is_recorded() -> bool:
    return scopes.process.active and scopes.current_scope() is not None


class _AsTasks:
    """Coroutines, made into tasks in their order as soon as somebody goes through them."""

    def __init__(self, awaitables: Iterable[Awaitable[Any]]) -> None:
        self._awaitables = awaitables

    def __iter__(self) -> Iterator[asyncio.Future[Any]]:
        return (asyncio.ensure_future(one) for one in dict.fromkeys(self._awaitables))


def _making(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def as_completed(fs: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_recorded() or not isinstance(fs, Iterable) or asyncio.isfuture(fs) or asyncio.iscoroutine(fs):
            return original(fs, *args, **kwargs)
        return original(_AsTasks(fs), *args, **kwargs)

    return as_completed


class InOrder(set[Any]):
    """A set that is iterated in the order given; what was added to it since comes last."""

    _order: tuple[Any, ...] = ()

    @classmethod
    def of(cls, members: Iterable[Any]) -> "InOrder":
        """The members in their order."""
        made = cls(members)
        made._order = tuple(members)
        return made

    def __iter__(self) -> Iterator[Any]:
        if len(self._order) == len(self) and all(one in self for one in self._order):
            return iter(self._order)
        known = [one for one in self._order if one in self]
        return iter((*known, *(one for one in super().__iter__() if one not in known)))

    def pop(self) -> Any:
        """Take the first."""
        for first in self:
            self.remove(first)
            return first
        raise KeyError("pop from an empty set")


def _register(futures: Iterable[Any]) -> None:
    for future in futures:
        if future not in _given:
            _given[future] = next(_serial)
            future.add_done_callback(_note)


def _note(future: Any) -> None:
    _done.setdefault(future, next(_serial))


def _note_ready() -> None:
    """What was done since who waits was woken: the loop calls back in that order."""
    for handle in tuple(loops.ready() or ()):
        if getattr(handle, "_callback", None) is _note:
            _note(handle._args[0])  # type: ignore[attr-defined]


def _note_threads(done: Iterable[Any]) -> None:
    """A future wakes who waits before it calls back."""
    for _ in range(_GLANCES):
        if all(future in _done for future in done):
            return
        time.sleep(0)


def _ordered(done: set[Any], pending: set[Any]) -> tuple[InOrder, InOrder]:
    last = next(_serial)
    by_end = sorted(done, key=lambda future: (_done.get(future, last), _place(future)))
    return InOrder.of(by_end), InOrder.of(sorted(pending, key=_place))


def _place(future: Any) -> int:
    return _given.get(future, 0)


def _waiting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def wait(fs: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_recorded() or not isinstance(fs, Iterable) or asyncio.isfuture(fs):
            return await original(fs, *args, **kwargs)
        fs = fs if isinstance(fs, set | frozenset | list | tuple) else list(fs)
        if all(isinstance(future, asyncio.Future) for future in fs):
            _register(fs)
        done, pending = await original(fs, *args, **kwargs)
        _note_ready()
        return _ordered(done, pending)

    return wait


def _blocking(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wait(fs: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_recorded() or not isinstance(fs, Iterable):
            return original(fs, *args, **kwargs)
        fs = fs if isinstance(fs, set | frozenset | list | tuple) else list(fs)
        if all(isinstance(future, concurrent.futures.Future) for future in fs):
            _register(fs)
        found = original(fs, *args, **kwargs)
        _note_threads(found.done)
        return type(found)(*_ordered(found.done, found.not_done))

    return wait


def install() -> None:
    """Patch asyncio and concurrent.futures, also where the names were imported before."""
    _patches.rebind(asyncio.tasks, "as_completed", _making, everywhere=True)
    _patches.rebind(asyncio.tasks, "wait", _waiting, everywhere=True)
    _patches.rebind(concurrent.futures._base, "wait", _blocking, everywhere=True)


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
