"""Which steps of a run ran at the same time.

What is inside a step does not count as beside it. Two steps that one process counted are compared by its counts, others by the clock;
touching is not overlapping. What never ended is taken to run on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple

from spanreplay.replay.order import NEVER, K, Moment, corrected_starts


class Extent(NamedTuple):
    """From where to where on one scale, both ends belonging to it."""

    start: int
    end: int

    def hull(self, other: "Extent") -> "Extent":
        """The smallest extent that holds both."""
        return Extent(min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Branch(Generic[K]):
    """A moment, all that is inside it, and the extents of the whole."""

    moment: Moment[K]
    clock: Extent
    counts: Extent | None
    """Of those that the moment's own process counted."""


def overlapping(moments: Sequence[Moment[K]]) -> dict[K, list[K]]:
    """The moments beside each moment, both ways round, in the order given; a moment that ran alone is absent."""
    by_key = {moment.key: moment for moment in moments}
    starts = corrected_starts(by_key)
    children: dict[K | None, list[Moment[K]]] = {}
    for moment in moments:
        children.setdefault(moment.parent if moment.parent in by_key else None, []).append(moment)
    branches = _branches(children, starts)
    place = {moment.key: index for index, moment in enumerate(moments)}
    beside: dict[K, set[K]] = {}
    for siblings in children.values():
        for left, right in _neighbours([branches[moment.key] for moment in siblings]):
            # Only branches whose extents meet get here, and from a branch only moments whose own branch meets the other one.
            for one in _meeting(left.moment, branches[right.moment.key], children, branches):
                for other in _meeting(right.moment, branches[one.key], children, branches):
                    if _together(one, other, starts):
                        beside.setdefault(one.key, set()).add(other.key)
                        beside.setdefault(other.key, set()).add(one.key)
    return {key: sorted(keys, key=place.__getitem__) for key, keys in beside.items()}


def _clock(moment: Moment[K], starts: Mapping[K, int]) -> Extent:
    start = starts[moment.key]
    return Extent(start, NEVER if moment.end_ns is None else max(start, start + moment.end_ns - moment.start_ns))


def _counts(moment: Moment[K]) -> Extent | None:
    if moment.process is None or moment.seq_start is None:
        return None
    return Extent(moment.seq_start, NEVER if moment.seq_end is None else max(moment.seq_start, moment.seq_end))


def _together(one: Moment[K], other: Moment[K], starts: Mapping[K, int]) -> bool:
    a, b = _counts(one), _counts(other)
    if a is None or b is None or one.process != other.process:
        a, b = _clock(one, starts), _clock(other, starts)
    return a.start < b.end and b.start < a.end


def _branches(children: Mapping[K | None, Sequence[Moment[K]]], starts: Mapping[K, int]) -> dict[K, _Branch[K]]:
    # Parents first, so that going backwards meets every child before its parent.
    downwards: list[Moment[K]] = list(children.get(None, ()))
    for moment in downwards:
        downwards.extend(children.get(moment.key, ()))
    branches: dict[K, _Branch[K]] = {}
    for moment in reversed(downwards):
        clock, counts = _clock(moment, starts), _counts(moment)
        for child in children.get(moment.key, ()):
            inner = branches[child.key]
            clock = clock.hull(inner.clock)
            if counts is not None and inner.counts is not None and child.process == moment.process:
                counts = counts.hull(inner.counts)
        branches[moment.key] = _Branch(moment=moment, clock=clock, counts=counts)
    return branches


def _meet(one: _Branch[K], other: _Branch[K]) -> bool:
    if one.clock.start <= other.clock.end and other.clock.start <= one.clock.end:
        return True
    a, b = one.counts, other.counts
    return a is not None and b is not None and one.moment.process == other.moment.process and a.start < b.end and b.start < a.end


def _neighbours(siblings: Sequence[_Branch[K]]) -> Iterator[tuple[_Branch[K], _Branch[K]]]:
    """The pairs of sibling branches whose extents meet, each once."""
    found: set[tuple[int, int]] = set()
    numbers = range(len(siblings))
    by_process: dict[str | None, list[int]] = {}
    for number in numbers:
        if siblings[number].counts is not None:
            by_process.setdefault(siblings[number].moment.process, []).append(number)
    for left, right in _sweep(numbers, lambda number: siblings[number].clock):
        found.add((min(left, right), max(left, right)))
    for counted in by_process.values():
        for left, right in _sweep(counted, lambda number: siblings[number].counts or Extent(0, 0)):
            found.add((min(left, right), max(left, right)))
    for left, right in sorted(found):
        yield siblings[left], siblings[right]


def _sweep(numbers: Sequence[int], extent: Callable[[int], Extent]) -> Iterator[tuple[int, int]]:
    running: list[int] = []
    for number in sorted(numbers, key=extent):
        running = [other for other in running if extent(other).end >= extent(number).start]
        for other in running:
            yield other, number
        running.append(number)


def _meeting(
    top: Moment[K], other: _Branch[K], children: Mapping[K | None, Sequence[Moment[K]]], branches: Mapping[K, _Branch[K]]
) -> Iterator[Moment[K]]:
    """The moments of one branch whose own branch meets another branch."""
    stack = [top]
    while stack:
        moment = stack.pop()
        if _meet(branches[moment.key], other):
            yield moment
            stack.extend(children.get(moment.key, ()))
