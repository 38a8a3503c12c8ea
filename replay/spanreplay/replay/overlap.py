"""Which steps of a run ran at the same time.

What is inside a step does not count as beside it. Two steps that one process counted are compared by its counts, others by the clock;
touching is not overlapping. What never ended is taken to run on.
"""

from collections.abc import Iterator, Mapping, Sequence
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
    found: set[tuple[int, int]] = set()
    by_process: dict[str, dict[int, Extent]] = {}
    for number, branch in enumerate(siblings):
        for process, extent in branch.counts.items():
            by_process.setdefault(process, {})[number] = extent
    for extents in (dict(enumerate(branch.clock for branch in siblings)), *by_process.values()):
        found.update((min(pair), max(pair)) for pair in _sweep(extents))
    for left, right in sorted(found):
        yield siblings[left], siblings[right]


def _sweep(extents: Mapping[int, Extent]) -> Iterator[tuple[int, int]]:
    running: list[int] = []
    for number in sorted(extents, key=extents.__getitem__):
        running = [other for other in running if extents[other].end >= extents[number].start]
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
