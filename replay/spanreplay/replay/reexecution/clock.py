"""The recorded clock: while something is replayed, the wall clock tells the time at which it was recorded.

A read that the record has is answered with the very time that it gave: the first read of a function of the program, in one scope, with the
first that was recorded there, and so on. For any other the clock starts where the record starts, ticks on, and is set forward to the end of
each step that has answered and to each time that was told, never back. Monotonic clocks, and with them every wait and time-out, stay real.
What patches the clock is time-machine, which reaches ``datetime.now`` and ``time.time`` however they were imported.
"""

import sys
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from spanreplay.boundary.clock_reads import Reader, decoded
from spanreplay.instrumentation.shims.clock import reader_of, reading, real_time_ns, travelling
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
        self._tick: Callable[[], int] | None = None
        self._ahead_ns = 0
        """How far the clock was set forward since the start; to move the traveller itself takes longer."""
        self._reads = _reads_of(runs)
        self._places = Counter(reader[1:] for reader in self._reads)
        self._only = {reader[1:]: times for reader, times in self._reads.items()}
        self._left = False

    def start(self) -> None:
        """Set the clock of this process to the start of the record. Does nothing where the record has no times."""
        if self._travel is not None and self._traveller is None:
            traveller = self._travel.start()
            self._tick = traveller.time_ns
            traveller.time_ns = self._read
            self._traveller = traveller

    def leave(self) -> None:
        """The replay has left the record: from now on the time is the real one. What is read of it is kept with the new run."""
        self._left = True

    def stop(self) -> None:
        """Give this process its own clock again."""
        if self._travel is not None and self._traveller is not None:
            self._traveller = None
            self._travel.stop()

    def reached(self, ns: int | None) -> None:
        """The replay has come to this time, nanoseconds since the epoch, of the record: the clock is there, unless it is beyond already."""
        if self._traveller is None or self._tick is None or self._left or ns is None or not self._now_ns < ns < _LATEST_NS:
            return
        with self._lock:
            if self._now_ns < ns:
                self._now_ns = ns
                self._ahead_ns = max(self._ahead_ns, ns - self._tick())

    def skip(self, seconds: float) -> None:
        """So much time passes at once."""
        with self._lock:
            if self._traveller is not None and self._tick is not None and not self._left:
                self._ahead_ns = min(self._ahead_ns + int(seconds * 1e9), _LATEST_NS - self._tick())

    def _read(self) -> int:
        """Somebody asks what time it is."""
        scope, function = reading(sys._getframe(1))
        reader = None if scope is None else reader_of(scope, function)
        told = self._told(reader if scope is not None and scope.session.mode == "replay" else None)
        if scope is not None and reader is not None and scope.session.clock_reads is not None:
            scope.session.clock_reads.add(reader, told)
        return told

    def _told(self, reader: Reader | None) -> int:
        if self._left or self._tick is None:
            return real_time_ns()
        left = None if reader is None else self._recorded(reader)
        with suppress(IndexError):  # another thread was faster
            if left:
                told = left.popleft()
                self.reached(told)
                return told
        return max(self._tick() + self._ahead_ns, self._now_ns)

    def _recorded(self, reader: Reader) -> deque[int] | None:
        """What was recorded of a reader; where its run is another one now, as in a copy of the process, of the only one at its place."""
        found = self._reads.get(reader)
        place = reader[1:]
        return self._only[place] if found is None and self._places[place] == 1 else found


def _reads_of(runs: Sequence[Run]) -> dict[Reader, deque[int]]:
    """The recorded reads, each reader's in their order."""
    of_runs = (text for run in runs for text in run.clock_reads)
    of_steps = (step.clock_reads for run in runs for step in run.steps if step.clock_reads is not None)
    found: dict[Reader, list[int]] = defaultdict(list)
    for text in dict.fromkeys([*of_runs, *of_steps]):
        for reader, times in decoded(text):
            found[reader].extend(ns for ns in times if 0 < ns < _LATEST_NS)
    return {reader: deque(sorted(times)) for reader, times in found.items()}


def _at(ns: int) -> float:
    """Seconds: of a ``datetime``, time-machine would take the time zone too, and the agent's local time is its own."""
    return ns / 1e9
