"""Ratios of CPU time: A and B interleaved in one process, the median with its 95 % bootstrap interval."""

import gc
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

PAIRS = 40
_RESAMPLES = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """B's CPU time over A's."""

    name: str
    goal: float | None
    """The ratio is met at or below this."""
    median: float
    low: float
    high: float
    a_us: float
    b_us: float
    pairs: int
    note: str = ""

    @property
    def verdict(self) -> Literal["met", "missed", "undecided", "reported"]:
        """Met when the interval's upper end is inside the goal, missed when its lower end is outside."""
        if self.goal is None:
            return "reported"
        if self.high <= self.goal:
            return "met"
        return "missed" if self.low > self.goal else "undecided"

    def line(self) -> str:
        """One line for people."""
        goal = "" if self.goal is None else f"  goal <= {self.goal:g}"
        note = f"  ({self.note})" if self.note else ""
        return (
            f"{self.verdict:9}  {self.name}: {self.median:.2f} [{self.low:.2f}, {self.high:.2f}]{goal}"
            f"  A {self.a_us:.2f} us, B {self.b_us:.2f} us, {self.pairs} pairs{note}"
        )

    def to_json(self) -> dict[str, object]:
        """For machines."""
        return {**asdict(self), "verdict": self.verdict}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Something that happens so many times a second."""

    name: str
    goal: float
    median: float
    slowest: float

    @property
    def verdict(self) -> Literal["met", "missed", "undecided"]:
        """Met when even the slowest round reached the goal, missed when the median did not."""
        if self.slowest >= self.goal:
            return "met"
        return "missed" if self.median < self.goal else "undecided"

    def line(self) -> str:
        """One line for people."""
        return f"{self.verdict:9}  {self.name}: {self.median:.0f} (slowest round {self.slowest:.0f})  goal >= {self.goal:g}"

    def to_json(self) -> dict[str, object]:
        """For machines."""
        return {**asdict(self), "verdict": self.verdict}


def ratio(
    name: str,
    a: Callable[[], object],
    b: Callable[[], object],
    *,
    goal: float | None,
    times: int,
    pairs: int = PAIRS,
    clock: Callable[[], float] = time.thread_time,
    note: str = "",
) -> Ratio:
    """Call ``a`` and ``b`` ``times`` times each, in turn, ``pairs`` times over.

    Args:
        name: what is compared.
        a: the floor.
        b: ours.
        goal: the ratio wanted, or None to report only.
        times: calls a round, enough for a round of a millisecond.
        pairs: rounds of each.
        clock: ``thread_time`` or ``process_time``.
        note: anything a reader must know.
    """
    for warm in (a, b, a, b):
        _round(warm, max(1, times // 4), clock)
    found: list[tuple[float, float]] = []
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for i in range(pairs):
            if i % 2:
                right = _round(b, times, clock)
                left = _round(a, times, clock)
            else:
                left = _round(a, times, clock)
                right = _round(b, times, clock)
            found.append((left, right))
            gc.collect()
    finally:
        if enabled:
            gc.enable()
    ratios = [right / left for left, right in found]
    low, high = interval(ratios)
    return Ratio(
        name=name,
        goal=goal,
        median=statistics.median(ratios),
        low=low,
        high=high,
        a_us=statistics.median(left for left, _ in found) * 1e6,
        b_us=statistics.median(right for _, right in found) * 1e6,
        pairs=pairs,
        note=note,
    )


def _round(call: Callable[[], object], times: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(times):
        call()
    return (clock() - start) / times


def interval(values: list[float]) -> tuple[float, float]:
    """The 95 % bootstrap interval of the median; the same for the same values."""
    chance = random.Random(20261129)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(_RESAMPLES))
    return medians[int(_RESAMPLES * 0.025)], medians[int(_RESAMPLES * 0.975)]
