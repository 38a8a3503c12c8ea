"""Sets of tasks that are iterated in an order of the program: what asyncio and anyio keep tasks in, and cancel them from."""

import asyncio
import functools
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import wrapt

from spanreplay.boundary import scope as scopes
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.jobs import in_order, number_of

_ANYIO: Final = "anyio._backends._asyncio"
_patches = Patches()
_hooked: Final[set[str]] = set()


class InOrder(set[Any]):
    """A set that is iterated in the order given; what was added to it since comes after that, in the order in which it was."""

    __slots__ = ("_order",)
    in_order = True

    def __init__(self, members: Iterable[Any] = ()) -> None:
        self._order: dict[Any, None] = dict.fromkeys(members)
        super().__init__(self._order)

    @classmethod
    def of(cls, members: Iterable[Any]) -> "InOrder":
        """The members in their order."""
        return cls(members)

    def add(self, member: Any, /) -> None:
        """Add one."""
        super().add(member)
        self._order[member] = None

    def discard(self, member: Any, /) -> None:
        """Take one out, where it is there."""
        super().discard(member)
        self._order.pop(member, None)

    def remove(self, member: Any, /) -> None:
        """Take one out."""
        super().remove(member)
        self._order.pop(member, None)

    def __iter__(self) -> Iterator[Any]:
        if len(self._order) != len(self) or not all(map(super().__contains__, self._order)):  # ``|=`` and the like
            there = list(super().__iter__())
            known = [one for one in self._order if super(InOrder, self).__contains__(one)]
            self._order = dict.fromkeys([*known, *there])
        return iter(self._order)

    def pop(self) -> Any:
        """Take the first."""
        for first in self:
            self.remove(first)
            return first
        raise KeyError("pop from an empty set")


def _finding(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def all_tasks(*args: Any, **kwargs: Any) -> Any:
        found = original(*args, **kwargs)
        known = in_order(found) if scopes.process.active else None
        return found if known is None else InOrder.of(known)

    return all_tasks


def keeping_order(original: Callable[..., None], names: Iterable[str]) -> Callable[..., None]:
    """An ``__init__`` after which the sets of these names are iterated in the order in which they were filled."""

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 — it stands in for that
        original(self, *args, **kwargs)
        for name in names if scopes.process.active else ():
            found = getattr(self, name, None)
            if type(found) is set:
                setattr(self, name, InOrder(found))

    return __init__


def _cancelling(original: Callable[..., Any], names: Mapping[str, Callable[[Any], Any]], known: Callable[[], Iterable[Any]]) -> Any:
    """What cancels all members of sets: these are in order from then on. Most sets never get there, so nothing is done to others.

    Args:
        original: the method.
        names: of the sets, to what gives the task of a member.
        known: tasks that were not started by the loop, in an order that is the same in every execution.
    """
    sets = tuple(names.items())

    @functools.wraps(original)
    def cancel(self: Any, *args: Any, **kwargs: Any) -> Any:
        if scopes.process.active:
            for name, task_of in sets:
                found = getattr(self, name, None)
                if type(found) is set and len(found) > 1:
                    setattr(self, name, InOrder(_as_started(found, task_of, known)))
        return original(self, *args, **kwargs)

    return cancel


def _as_started(members: set[Any], task_of: Callable[[Any], Any], known: Callable[[], Iterable[Any]]) -> list[Any]:
    numbers = {member: number_of(task_of(member)) for member in members}
    if list(numbers.values()).count(None) > 1:  # one is what the loop was started for
        places = {task: number for number, task in enumerate(known())}
        numbers = {member: places.get(task_of(member)) for member in members}
    return sorted(members, key=lambda member: -1 if (number := numbers[member]) is None else number)


def install() -> None:
    """Patch asyncio, and anyio when it is there or comes."""
    _patches.rebind(asyncio.tasks, "all_tasks", _finding, everywhere=True)
    if hasattr(asyncio.TaskGroup, "_abort"):
        _patches.replace(asyncio.TaskGroup, "_abort", functools.partial(_cancelling, names={"_tasks": _itself}, known=tuple))
    if _ANYIO in sys.modules:
        _anyio(sys.modules[_ANYIO])
    elif _ANYIO not in _hooked:
        wrapt.register_post_import_hook(_anyio, _ANYIO)
        _hooked.add(_ANYIO)


def _itself(task: Any) -> Any:
    return task


def _anyio(module: Any) -> None:
    from spanreplay.instrumentation import shims

    if shims._installed and hasattr(module.CancelScope, "_deliver_cancellation"):
        states = getattr(module, "_task_states", None)  # of a task that is started, and of one that enters a scope

        def known() -> Iterable[Any]:
            return () if states is None else [reference() for reference in states.keyrefs()]

        names: dict[str, Callable[[Any], Any]] = {"_tasks": _itself, "_child_scopes": operator.attrgetter("_host_task")}
        _patches.replace(module.CancelScope, "_deliver_cancellation", functools.partial(_cancelling, names=names, known=known))


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
