"""The times that a program read of the clock, and where: kept with its steps, so that a replay can tell them again.

A read is known by the run and the causal scope it is made in, by the function that makes it, and by how many that function has made there
before it. So neither the order of tasks nor what others read changes which time a read is answered with.
"""

import json
from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import count
from typing import Any, Final, TypeAlias, TypeVar

from spanreplay.content.canonical import canonical_json

Reader: TypeAlias = tuple[str, str, str]
"""Path of the run in its process, causal path of the scope in the run, function (``file.py:qualified name``)."""

MOST_OF_ONE: Final = 1000
"""Reads of one reader that are kept: a loop that waits for a time reads without end."""
_SECOND: Final = 1_000_000_000
_T = TypeVar("_T")


def taken(pending: "deque[_T]") -> Iterator[_T]:
    """Takes out what is there at the beginning; another thread, or a signal handler, may take of it at the same time."""
    for _ in range(len(pending)):
        try:
            item = pending.popleft()
        except IndexError:
            return
        yield item


class ClockReads:
    """What was read and is not kept with a step yet. Safe between threads, and in signal handlers: it has no lock."""

    def __init__(self) -> None:
        self._pending: deque[tuple[Reader, int]] = deque()
        self._kept: dict[Reader, int] = defaultdict(int)
        self._number = count()
        self.anchored: set[str] = set()
        """Clocks of which it is kept what they said at one time."""

    def __bool__(self) -> bool:
        return bool(self._pending)

    def add(self, reader: Reader, ns: int) -> None:
        """A read was answered with this time, nanoseconds since the epoch."""
        if self._kept[reader] < MOST_OF_ONE:
            self._kept[reader] += 1
            self._pending.append((reader, ns))

    def take(self) -> str:
        """All that is pending, as a step keeps it: JSON, for each reader ``[run, scope, function, seconds, nanoseconds, *deltas]``.

        Before them stands a number that grows, as a coarse clock may say the same again. Deltas are nanoseconds since the read before. A
        whole time is two numbers, as one of 19 digits may be taken for a secret.
        """
        found: dict[Reader, list[int]] = {}
        last: dict[Reader, int] = {}
        for reader, ns in taken(self._pending):
            if reader in found:
                found[reader].append(ns - last[reader])
            else:
                found[reader] = [ns // _SECOND, ns % _SECOND]
            last[reader] = ns
        return canonical_json([next(self._number), *([*reader, *numbers] for reader, numbers in found.items())])

    def clear(self) -> None:
        """Nothing is pending: a copy of the process leaves to the other what that has read."""
        self._pending.clear()


def decoded(text: str) -> Iterator[tuple[Reader, list[int]]]:
    """The reads of each reader, in their order; what is not of the form is left out.

    Args:
        text: what :meth:`ClockReads.take` gave, from whatever source.
    """
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return
    for entry in found if isinstance(found, list) else ():
        if not isinstance(entry, list) or len(entry) < 5:
            continue
        (run, scope, function), numbers = entry[:3], entry[3:]
        if not all(isinstance(name, str) for name in entry[:3]) or not all(type(number) is int for number in numbers):
            continue
        times = [numbers[0] * _SECOND + numbers[1]]
        for delta in numbers[2:]:
            times.append(times[-1] + delta)
        yield (run, scope, function), times
