"""The recorded clock: while something is replayed, the wall clock tells the time at which it was recorded.

It starts where the record starts, ticks on, and is set forward to the end of each step that has answered, never back. Monotonic clocks,
and with them every wait and time-out, stay real. What patches the clock is time-machine, which reaches ``datetime.now`` and ``time.time``
however they were imported.
"""

import importlib
import sys
import threading
import time
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Final

from spanreplay.replay.model import Run

if TYPE_CHECKING:
    from time_machine import Traveller

_LATEST_NS: Final = 253_370_764_800_000_000_000
"""The year 9999; what is later was not measured by a clock."""


class RecordedClock:
    """Where in the recorded time a replay is.

    Args:
        runs: the runs that answer.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        starts = [run.started_ns for run in runs if 0 < run.started_ns < _LATEST_NS]
        self._now_ns = min(starts, default=0)
        self._lock = threading.Lock()
        self._travel = travelling().travel(_at(self._now_ns), tick=True) if starts else None
        self._traveller: Traveller | None = None

    def start(self) -> None:
        """Set the clock of this process to the start of the record. Does nothing where the record has no times."""
        if self._travel is not None and self._traveller is None:
            self._traveller = self._travel.start()

    def stop(self) -> None:
        """Give this process its own clock again."""
        if self._travel is not None and self._traveller is not None:
            self._traveller = None
            self._travel.stop()

    def reached(self, ns: int | None) -> None:
        """The replay has come to this time, nanoseconds since the epoch, of the record: the clock is there, unless it is beyond already."""
        if self._traveller is None or ns is None or not self._now_ns < ns < _LATEST_NS:
            return
        with self._lock:
            if self._now_ns < ns:
                self._now_ns = ns
                if ns > time.time_ns():
                    self._traveller.move_to(_at(ns), tick=True)

    def skip(self, seconds: float) -> None:
        """So much time passes at once."""
        with self._lock:
            if self._traveller is not None:
                self._traveller.move_to(_at(min(time.time_ns() + int(seconds * 1e9), _LATEST_NS)), tick=True)


@cache
def travelling() -> ModuleType:
    """time-machine, without pytest: it imports that for its fixture wherever it is installed, which would take longer than all of us."""
    if "pytest" in sys.modules:
        return importlib.import_module("time_machine")
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    modules["pytest"] = None  # which makes its import fail
    try:
        return importlib.import_module("time_machine")
    finally:
        del modules["pytest"]


def _at(ns: int) -> float:
    """Seconds: of a ``datetime``, time-machine would take the time zone too, and the agent's local time is its own."""
    return ns / 1e9
