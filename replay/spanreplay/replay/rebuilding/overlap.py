"""Which steps of a run ran at the same time.

What is inside a step does not count as beside it. Two steps that one process counted are compared by its counts, others by the clock;
touching is not overlapping. What never ended is taken to run on.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic, NamedTuple

from spanreplay.replay.rebuilding.order import NEVER, K, Moment, corrected_starts


class Extent(NamedTuple):
    """From where to where on one scale, both ends belonging to it."""

    start: int
    end: int

    def hull(self, other: "Extent") -> "Extent":
        """The smallest extent that holds both."""
        return Extent(min(self.start, other.start), max(self.end, other.end))

    def meets(self, other: "Extent") -> bool:
        """Whether they have a point in common."""
        return self.start <= other.end and other.start <= self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class _Branch(Generic[K]):
    """A moment and all that is inside it, and from where to where the whole goes."""

    moment: Moment[K]
    clock: Extent
    counts: Mapping[str, Extent]
    """By each process that counted some of it."""


MOST: Final = 1_000_000
"""Pairs that are compared in one run: of 100 000 steps that all ran at once there are five thousand million."""


class Overlaps(NamedTuple, Generic[K]):
    """What ran at the same time."""

    beside: dict[K, list[K]]
    """For each moment those beside it, both ways round, in the order given; a moment that ran alone is absent."""
    whole: bool
    """All pairs were compared."""


def overlapping(moments: Sequence[Moment[K]], most: int = MOST) -> Overlaps[K]:
    """The moments beside each moment.

    Args:
        moments: in order.
        most: how many pairs to compare at most.
    """
    by_key = {moment.key: moment for moment in moments}
    starts = corrected_starts(by_key)
    children: dict[K | None, list[Moment[K]]] = {}
    for moment in moments:
        children.setdefault(moment.parent if moment.parent in by_key else None, []).append(moment)
    branches = _branches(children, starts)
    place = {moment.key: index for index, moment in enumerate(moments)}
    beside: dict[K, set[K]] = {}
    pairs = islice(_pairs(children, branches), most + 1)
    compared = 0
    for one, other in pairs:
        compared += 1
        if compared <= most and _together(one, other, starts):
            beside.setdefault(one.key, set()).add(other.key)
            beside.setdefault(other.key, set()).add(one.key)
    found = {key: sorted(keys, key=place.__getitem__) for key, keys in beside.items()}
    return Overlaps(found, compared <= most)


def _pairs(children: Mapping[K | None, Sequence[Moment[K]]], branches: Mapping[K, "_Branch[K]"]) -> Iterator[tuple[Moment[K], Moment[K]]]:
    """The pairs to compare: only from branches whose extents meet, and of a branch only moments whose own branch meets the other one."""
    for siblings in children.values():
        for left, right in _neighbours([branches[moment.key] for moment in siblings]):
            if left.moment.key not in children and right.moment.key not in children:
                yield left.moment, right.moment
                continue
            for one in _meeting(left.moment, right, children, branches):
                for other in _meeting(right.moment, branches[one.key], children, branches):
                    yield one, other


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
        clock, own = _clock(moment, starts), _counts(moment)
        counts = {moment.process: own} if own is not None and moment.process is not None else {}
        for child in children.get(moment.key, ()):
            inner = branches[child.key]
            clock = clock.hull(inner.clock)
            for process, extent in inner.counts.items():
                counts[process] = extent.hull(counts.get(process, extent))
        branches[moment.key] = _Branch(moment=moment, clock=clock, counts=counts)
    return branches


def _meet(one: _Branch[K], other: _Branch[K]) -> bool:
    return one.clock.meets(other.clock) or any(
        process in other.counts and extent.meets(other.counts[process]) for process, extent in one.counts.items()
    )


def _neighbours(siblings: Sequence[_Branch[K]]) -> Iterator[tuple[_Branch[K], _Branch[K]]]:
    """The pairs of sibling branches whose extents meet, each once."""
    yield from ((siblings[left], siblings[right]) for left, right in _sweep(dict(enumerate(branch.clock for branch in siblings))))
    by_process: dict[str, dict[int, Extent]] = {}
    for number, branch in enumerate(siblings):
        for process, extent in branch.counts.items():
            by_process.setdefault(process, {})[number] = extent
    counted: set[tuple[int, int]] = set()
    for extents in by_process.values():
        for left, right in _sweep(extents):
            pair = (min(left, right), max(left, right))
            if pair not in counted and not siblings[left].clock.meets(siblings[right].clock):
                counted.add(pair)
                yield siblings[pair[0]], siblings[pair[1]]


def _sweep(extents: Mapping[int, Extent]) -> Iterator[tuple[int, int]]:
    running: list[int] = []
    for number in sorted(extents, key=extents.__getitem__):
        start = extents[number].start
        running = [other for other in running if extents[other].end >= start]
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
