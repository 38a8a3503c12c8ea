"""The order in which a program saw things come that no call decides: jobs that are done, results of a pool, items of a queue.

Each line of them is a channel: one ``as_completed``, the callbacks of a run. It has items in the order in which the program saw them; an
item is the milliseconds since the one before it, and who came: places in what was waited for, or names. They are kept with the steps, so
that a replay can tell them again in that order.
"""

import json
import os
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, Final, Protocol, TypeAlias

from spanreplay.boundary.clock_reads import taken
from spanreplay.boundary.scope import Scope
from spanreplay.content.canonical import canonical_json

Channel: TypeAlias = tuple[str, str, str]
"""Path of the run in its process, causal path of the scope in the run, name."""
Member: TypeAlias = int | str
Item: TypeAlias = tuple[int, tuple[Member, ...]]
"""Milliseconds since the item before, and who came; nobody where a wait had timed out."""

MOST_OF_ONE: Final = 20_000
"""Items of one channel that are kept."""
MOST_PENDING: Final = 50_000
"""Items that wait for a step."""
_MOST_COUNTED: Final = 10_000
"""Channels whose items are counted; those that were new long ago are over."""
_BODIES_RUN: Final = frozenset({"agent", "handoff"})
"""Kinds of steps whose bodies a replay runs too."""
_all: Final["weakref.WeakSet[Orders]"] = weakref.WeakSet()


class Orders:
    """What was seen and is not kept with a step yet. Safe between threads: it has no lock."""

    def __init__(self) -> None:
        self._pending: deque[tuple[Channel, Item]] = deque()
        self._kept: dict[Channel, int] = {}
        self._number = count()
        _all.add(self)

    def __bool__(self) -> bool:
        return bool(self._pending)

    def add(self, channel: Channel, ms: int, members: tuple[Member, ...]) -> None:
        """The program has seen these come."""
        kept = self._kept.get(channel, 0)
        if kept < MOST_OF_ONE and len(self._pending) < MOST_PENDING:
            if not kept and len(self._kept) >= _MOST_COUNTED:
                self._kept.clear()
            self._kept[channel] = kept + 1
            self._pending.append((channel, (ms, members)))

    def take(self) -> str:
        """All that is pending, as a step keeps it: JSON, a number that grows, and for each channel ``[run, scope, name, *items]``.

        An item is ``[milliseconds, *members]``.
        """
        found: dict[Channel, list[list[Member]]] = {}
        for channel, (ms, members) in taken(self._pending):
            found.setdefault(channel, []).append([ms, *members])
        return canonical_json([next(self._number), *([*channel, *items] for channel, items in found.items())])

    def clear(self) -> None:
        """Nothing is pending: a copy of the process leaves to the other what that has seen."""
        self._pending.clear()


def _in_child() -> None:
    for orders in list(_all):
        orders.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def decoded(texts: Iterable[str]) -> Iterator[tuple[Channel, list[Item]]]:
    """The items of each channel, in their order, all texts together; what is not of the form is left out.

    Args:
        texts: what :meth:`Orders.take` gave, from whatever source, in whatever order.
    """
    kept: list[tuple[int, list[Any]]] = []
    for text in dict.fromkeys(texts):
        try:
            found: Any = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, list) and found and type(found[0]) is int:
            kept.append((found[0], found[1:]))
    for _, entries in sorted(kept, key=lambda one: one[0]):
        for entry in entries:
            if not isinstance(entry, list) or len(entry) < 4 or not all(isinstance(name, str) for name in entry[:3]):
                continue
            if all(map(_is_item, entry[3:])):
                yield (entry[0], entry[1], entry[2]), [(item[0], tuple(item[1:])) for item in entry[3:]]


def _is_item(item: object) -> bool:
    if not isinstance(item, list) or not item or type(item[0]) is not int:
        return False
    return all(type(member) is int or isinstance(member, str) for member in item)


class Wait(Protocol):
    """One bounded wait."""

    @property
    def part(self) -> float:
        """Seconds to wait until the next look."""
        ...

    def is_over(self) -> bool:
        """Whether it has been long enough."""
        ...


class ToldOrders(Protocol):
    """What a replay has of recorded orders."""

    released: bool
    """Nobody waits any more."""

    def left(self, channel: Channel) -> deque[Item] | None:
        """What is to come in a channel, shared by all who ask; ``None`` where nothing was recorded of it."""
        ...

    def patience(self, ms: int) -> Wait:
        """A wait for something that came so many milliseconds after something else when it was recorded."""
        ...

    def relaxed(self) -> None:
        """A wait has been given up."""
        ...

    def on_release(self, act: weakref.WeakMethod[Any]) -> None:
        """Call ``act`` when nobody waits any more."""
        ...


def is_answered(scope: Scope) -> bool:
    """Whether this is inside of a call whose body does not run in a replay."""
    step = scope.step
    while step is not None:
        if step.call.kind not in _BODIES_RUN and not step.call.passed:
            return True
        step = step.parent
    return False


def channel_of(scope: Scope, name: str, *, of_run: bool = False) -> Channel | None:
    """The channel of this name at a place, or of the run; ``None`` inside of a call whose body does not run in a replay."""
    if is_answered(scope):
        return None
    return "" if scope.run is None else scope.run.path, "" if of_run else scope.path, name
