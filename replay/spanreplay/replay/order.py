"""The total order of what happened in a run.

Rules, strongest first: a parent before what is inside it; two starts in one process by that process's own count
(``spanreplay.seq.start``); else the start time, then the end time. What is left is a true tie and goes by span id: arbitrary, but the same
however often and in whatever order the records arrive. A name never decides.

:mod:`spanreplay.replay.overlap` says which of them ran at the same time.
"""

import heapq
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
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


def in_order(moments: Iterable[Moment[K]]) -> list[K]:
    """The keys in total order.

    The rules do not always agree (a clock set back, a lost count), and comparing pairs by whichever rule applies would not be an order at
    all. So parents and counts are treated as arrows, and of all that may come next the earliest by the clock does; a count that contradicts
    a parent is ignored.
    """
    by_key = {moment.key: moment for moment in moments}
    starts = corrected_starts(by_key)
    after: dict[K, list[K]] = {}
    waiting: dict[K, int] = dict.fromkeys(by_key, 0)

    def arrow(first: K, second: K) -> None:
        after.setdefault(first, []).append(second)
        waiting[second] += 1

    processes: dict[str, list[Moment[K]]] = {}
    for moment in by_key.values():
        if moment.parent is not None and moment.parent in by_key:
            arrow(moment.parent, moment.key)
        if moment.process is not None and moment.seq_start is not None:
            processes.setdefault(moment.process, []).append(moment)
    for counted in processes.values():
        counted.sort(key=lambda moment: (moment.seq_start or 0, moment.tie))
        for first, second in pairwise(counted):
            if first.seq_start != second.seq_start:
                arrow(first.key, second.key)

    def rank(key: K) -> tuple[int, int, str]:
        moment = by_key[key]
        end = NEVER if moment.end_ns is None else moment.end_ns + starts[key] - moment.start_ns
        return (starts[key], end, moment.tie)

    ready = [(rank(key), number, key) for number, (key, count) in enumerate(waiting.items()) if not count]
    heapq.heapify(ready)
    number = len(waiting)
    done: dict[K, None] = {}
    while len(done) < len(by_key):
        if not ready:
            freed = _free_of_parent(by_key, done)
            ready = [(rank(freed), number, freed)]
        _, _, key = heapq.heappop(ready)
        if key in done:
            continue
        done[key] = None
        for following in after.get(key, ()):
            waiting[following] -= 1
            number += 1
            if waiting[following] == 0 and following not in done:
                heapq.heappush(ready, (rank(following), number, following))
    return list(done)


def _free_of_parent(by_key: Mapping[K, Moment[K]], done: Mapping[K, None]) -> K:
    # Counts and parents contradict each other: the lowest count whose parent is done goes first. One exists, parents form no loop.
    free = (m for m in by_key.values() if m.key not in done and (m.parent is None or m.parent not in by_key or m.parent in done))
    return min(free, key=lambda m: (m.seq_start if m.seq_start is not None else NEVER, m.start_ns, m.tie)).key


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
