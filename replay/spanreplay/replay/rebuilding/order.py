"""The total order of what happened in a run.

Rules, strongest first: a parent before what is inside it; two starts in one process by that process's own count
(``spanreplay.seq.start``); else the start time; of equal starts a cause before what it caused (a model's answer before the call that it
asks for, a call before the request that tells its result); then the end time; of calls that still tie and that one answer asked for, the
one that it asked for first (:mod:`spanreplay.replay.rebuilding.ties`). What is left is a true tie and goes by span id: arbitrary, but the
same however often and in whatever order the records arrive. A name never decides.

Nor does the place of a record in its file, though many formats have times in milliseconds and many ties with them. A file is written in
order of ends, of batches, of ids, of display, or of nothing, and does not say which; the same trace fetched twice, or read again from a
store, comes in another order. A run that changed its order on such a road would be no record. So a tie that nothing in the spans decides is
broken by what travels with the span, and steps that ran at the same time are listed as beside each other.

:mod:`spanreplay.replay.rebuilding.overlap` says which of them ran at the same time.
"""

import heapq
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

NEVER: Final = 1 << 63
"""Later than any time or count: the end of what never ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment(Generic[K]):
    """When one thing ran, by every clock it has."""

    key: K
    parent: K | None
    """What it ran inside; ignored when that is not among the moments. Parents must form no loop."""
    start_ns: int
    end_ns: int | None
    process: str | None = None
    seq_start: int | None = None
    seq_end: int | None = None
    clock: str | None = None
    """Which clock gave the times, as far as known."""
    tie: str = ""


def in_order(moments: Iterable[Moment[K]], causes: Iterable[tuple[K, K]] = ()) -> list[K]:
    """The keys in total order.

    The rules do not always agree (a clock set back, a lost count), and comparing pairs by whichever rule applies would not be an order at
    all. So parents, counts and causes are treated as arrows, and of all that may come next the earliest by the clock does; an arrow that
    contradicts a parent is ignored.

    Args:
        moments: each once.
        causes: pairs of which the first is known to come before the second.
    """
    by_key = {moment.key: moment for moment in moments}
    starts = corrected_starts(by_key)
    inside: dict[K, list[K]] = {}
    for moment in by_key.values():
        if moment.parent is not None and moment.parent in by_key:
            inside.setdefault(moment.parent, []).append(moment.key)
    after: dict[K, list[K]] = {key: list(children) for key, children in inside.items()}
    for first, second in (*_counted(by_key.values()), *causes):
        after.setdefault(first, []).append(second)
    waiting = Counter(key for following in after.values() for key in following)

    def rank(key: K) -> tuple[int, int, str]:
        moment = by_key[key]
        end = NEVER if moment.end_ns is None else moment.end_ns + starts[key] - moment.start_ns
        return (starts[key], end, moment.tie)

    def forced(key: K) -> tuple[int, int, str]:
        moment = by_key[key]
        return (NEVER if moment.seq_start is None else moment.seq_start, starts[key], moment.tie)

    number = count()
    ready = [(rank(key), next(number), key) for key in by_key if key not in waiting]
    heapq.heapify(ready)
    # Where arrows contradict each other, the lowest count whose parent is done goes first. One exists: parents form no loop.
    free = [(forced(key), next(number), key) for key, moment in by_key.items() if moment.parent is None or moment.parent not in by_key]
    heapq.heapify(free)
    done: dict[K, None] = {}
    while len(done) < len(by_key):
        key = heapq.heappop(ready or free)[2]
        if key in done:
            continue
        done[key] = None
        for following in after.get(key, ()):
            waiting[following] -= 1
            if waiting[following] == 0 and following not in done:
                heapq.heappush(ready, (rank(following), next(number), following))
        for child in inside.get(key, ()):
            heapq.heappush(free, (forced(child), next(number), child))
    return list(done)


def _counted(moments: Iterable[Moment[K]]) -> Iterator[tuple[K, K]]:
    """Of the moments that one process counted each and the next."""
    processes: dict[str, list[Moment[K]]] = {}
    for moment in moments:
        if moment.process is not None and moment.seq_start is not None:
            processes.setdefault(moment.process, []).append(moment)
    for counted in processes.values():
        counted.sort(key=lambda moment: (moment.seq_start or 0, moment.tie))
        for first, second in pairwise(counted):
            if first.seq_start != second.seq_start:
                yield first.key, second.key


def corrected_starts(by_key: Mapping[K, Moment[K]]) -> dict[K, int]:
    """Start times in which nothing starts before what it is inside.

    A child that seems to start first has a clock that runs behind; it and what is inside it are moved by the smallest amount that lets the
    earliest such sibling start with its parent, so that siblings keep their distances.
    """
    children: dict[K, list[Moment[K]]] = {}
    tops: list[Moment[K]] = []
    for moment in by_key.values():
        if moment.parent is not None and moment.parent in by_key:
            children.setdefault(moment.parent, []).append(moment)
        else:
            tops.append(moment)
    shifts: dict[K, int] = {moment.key: 0 for moment in tops}
    stack = list(tops)
    while stack:
        parent = stack.pop()
        inside = children.get(parent.key)
        if not inside:
            continue
        floor = parent.start_ns + shifts[parent.key]
        inherited = shifts[parent.key]
        early: dict[str | None, int] = {}
        for moment in inside:
            shift = inherited if moment.clock == parent.clock else 0
            if moment.start_ns + shift < floor:
                early[moment.clock] = max(early.get(moment.clock, 0), floor - moment.start_ns)
        for moment in inside:
            shift = inherited if moment.clock == parent.clock else 0
            shifts[moment.key] = early[moment.clock] if moment.start_ns + shift < floor else shift
        stack.extend(inside)
    return {key: by_key[key].start_ns + shift for key, shift in shifts.items()}
