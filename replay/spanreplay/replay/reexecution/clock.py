"""The recorded clock: while something is replayed, the wall clock tells the time at which it was recorded.

A read that the record has is answered with the very time that it gave: the first read of a function of the program, in one scope, with the
first that was recorded there, and so on. For any other the clock starts where the record starts, ticks on, and is set forward to the end of
each step that has answered and to each time that was told, never back. Monotonic clocks tell the program's own code the same in their way,
where it has read them when it was recorded; with them every wait and time-out stays real.
What patches the clock is time-machine, which reaches ``datetime.now`` and ``time.time`` however they were imported.

It patches that of the process: where several replays run in one, in threads, each read is answered by the clock of its session.
"""

import sys
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from spanreplay.boundary.boundary import here
from spanreplay.boundary.clock_reads import Reader, decoded
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation.shims import monotonic
from spanreplay.instrumentation.shims.clock import (
    in_body,
    leave_texts,
    note,
    reader_of,
    reading,
    real_time_ns,
    tell_texts,
    travelling,
)
from spanreplay.instrumentation.shims.monotonic import FAMILIES, Family, anchor_of
from spanreplay.replay.model import Run

_SECOND: Final = 1_000_000_000
_LATEST: Final = "told of "
"""Under which name a scope keeps what it was told of a clock."""
_LATEST_NS: Final = 253_370_764_800_000_000_000
"""The year 9999; what is later was not measured by a clock."""


class _Process:
    """The clock of this process, as long as anything is replayed in it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clocks: list[RecordedClock] = []
        self._travel: Any = None

    def add(self, clock: "RecordedClock", start_ns: int) -> None:
        with self._lock:
            if not self._clocks:
                self._travel = travelling().travel(_at(start_ns), tick=True)
                self._travel.start().time_ns = self._read
                tell_texts()
            if clock.knows_monotonic and not any(known.knows_monotonic for known in self._clocks):
                monotonic.install(self._tell)
            self._clocks.append(clock)

    def remove(self, clock: "RecordedClock") -> None:
        with self._lock:
            self._clocks.remove(clock)
            if not any(known.knows_monotonic for known in self._clocks):
                monotonic.uninstall(self._tell)
            if not self._clocks:
                leave_texts()
                self._travel.stop()

    def _read(self) -> int:
        """Somebody asks what time it is: the clock of the session in force answers, outside of all sessions the latest."""
        scope, function = reading(sys._getframe(1))
        around = scope or here()
        clock = None if around is None else around.session.told_by
        if not isinstance(clock, RecordedClock):
            clock = next(reversed(self._clocks), None)
        return real_time_ns() if clock is None else clock.read(scope, function)

    def _tell(self, family: Family, now: int, scope: Scope, function: str) -> int | None:
        """What a monotonic clock of this process says to the program."""
        clock = scope.session.told_by
        return clock.monotonic(family, now, scope, function) if isinstance(clock, RecordedClock) else None


_process: Final = _Process()


class RecordedClock:
    """Where in the recorded time a replay is.

    Args:
        runs: the runs that answer.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        starts = [run.started_ns for run in runs if 0 < run.started_ns < _LATEST_NS]
        self._now_ns = min(starts, default=0)
        self._start_ns = self._now_ns
        self._has_times = bool(starts)
        self._lock = threading.Lock()
        self._telling = False
        self._began_ns: int | None = None
        self._ahead_ns = 0
        """How far the clock was set forward since the start."""
        self._reads, self._anchors = _reads_of(runs)
        self._places = Counter(reader[1:] for reader in self._reads)
        self._only = {reader[1:]: times for reader, times in self._reads.items()}
        self._left = False
        self._left_ns = 0, 0
        """The time that was told, and the real one, when the replay has left the record."""
        self._shifts: dict[Family, int] = {}
        """Seconds that a clock has said more when it was recorded, where that is not to come yet."""

    @property
    def knows_monotonic(self) -> bool:
        """The program has read a monotonic clock when it was recorded."""
        return self._has_times and bool(self._anchors)

    def start(self) -> None:
        """Set the clock of this process to the start of the record. Does nothing where the record has no times."""
        if self._has_times and not self._telling:
            _process.add(self, self._start_ns)
            self._telling = True

    def leave(self) -> None:
        """The replay has left the record: from now on the time is the real one. What is read of it is kept with the new run."""
        if not self._left:
            self._left_ns = self._line(), real_time_ns()
            self._left = True

    def stop(self) -> None:
        """Give this process its own clock again, unless others still tell it the time."""
        if self._telling:
            self._telling = False
            _process.remove(self)

    def reached(self, ns: int | None) -> None:
        """The replay has come to this time, nanoseconds since the epoch, of the record: the clock is there, unless it is beyond already."""
        if not self._telling or self._left or ns is None or not self._now_ns < ns < _LATEST_NS:
            return
        with self._lock:
            if self._now_ns < ns:
                self._now_ns = ns
                self._ahead_ns = max(self._ahead_ns, ns - self._tick())

    def skip(self, seconds: float) -> None:
        """So much time passes at once."""
        with self._lock:
            if self._telling and not self._left:
                self._ahead_ns = min(self._ahead_ns + int(seconds * 1e9), _LATEST_NS - self._tick())

    def read(self, scope: Scope | None, function: str) -> int:
        """What time it is.

        Args:
            scope: in which it is asked; ``None`` where nothing is recorded of that.
            function: that asks.
        """
        reader = None if scope is None else reader_of(scope, function)
        told = self._told(reader if scope is not None and scope.session.mode == "replay" else None)
        if scope is not None and reader is not None and scope.session.clock_reads is not None:
            scope.session.clock_reads.add(reader, told)
        return told

    def _told(self, reader: Reader | None) -> int:
        if self._left or not self._telling:
            return real_time_ns()
        left = None if reader is None else self._recorded(reader)
        with suppress(IndexError):  # another thread was faster
            if left:
                told = left.popleft()
                self.reached(told)
                return told
        return self._line()

    def _line(self) -> int:
        """The time where none was recorded."""
        if self._left:
            told, then = self._left_ns
            return told + max(real_time_ns() - then, 0)
        return max(self._tick() + self._ahead_ns, self._now_ns)

    def monotonic(self, family: Family, now: int, scope: Scope, function: str) -> int | None:
        """What a monotonic clock says, nanoseconds; ``None`` where it is the real one.

        It says the recorded values themselves, so that differences of them are the same to the last digit; where it would be ahead of the
        real clock, as after a start of the machine, whole seconds less. So nobody who waits by the real one waits longer.

        Args:
            family: which clock.
            now: what it says really.
            scope: in which it is asked.
            function: that asks.
        """
        anchor = self._anchors.get(family)
        if anchor is None or not self._telling:
            return None
        counts = scope.session.mode == "replay" and not in_body(scope)
        reader = reader_of(scope, function)
        left = self._recorded(monotonic.reader_of(family, reader)) if counts and not self._left else None
        told = None
        with suppress(IndexError):  # another thread was faster
            told = left.popleft() if left else None
        if told is not None:
            self.reached(told - anchor[0] + anchor[1])
        told = max(self._line() - anchor[1] + anchor[0] if told is None else told, _latest(family, scope))
        scope.memo[_LATEST + family] = told
        shift = self._shifts.get(family)
        if shift is None:
            shift = self._shifts.setdefault(family, min((now - told) // _SECOND, 0))
        told += shift * _SECOND
        if counts and scope.session.clock_reads is not None:
            note(scope.session.clock_reads, family, reader, told, self._line)
        return told

    def _tick(self) -> int:
        """The time as it would be had nothing set it forward."""
        now = real_time_ns()
        if self._began_ns is None:
            self._began_ns = now
        return self._start_ns + now - self._began_ns

    def _recorded(self, reader: Reader) -> deque[int] | None:
        """What was recorded of a reader; where its run is another one now, as in a copy of the process, of the only one at its place."""
        found = self._reads.get(reader)
        place = reader[1:]
        return self._only[place] if found is None and self._places[place] == 1 else found


def _latest(family: Family, scope: Scope) -> int:
    """What was told last where a scope is, and where it was started: it never goes back there."""
    at: Scope | None = scope
    latest = 0
    while at is not None:
        told = at.memo.get(_LATEST + family)
        latest = max(latest, told) if isinstance(told, int) else latest
        at = at.parent
    return latest


def _reads_of(runs: Sequence[Run]) -> tuple[dict[Reader, deque[int]], dict[Family, tuple[int, int]]]:
    """The recorded reads, each reader's in their order; and what monotonic clocks said at a time, with that time."""
    of_runs = (text for run in runs for text in run.clock_reads)
    of_steps = (step.clock_reads for run in runs for step in run.steps if step.clock_reads is not None)
    found: dict[Reader, list[int]] = defaultdict(list)
    anchors: dict[Family, tuple[int, int]] = {}
    at: dict[Reader, Family] = {anchor_of(family): family for family in FAMILIES}
    for text in dict.fromkeys([*of_runs, *of_steps]):
        for reader, times in decoded(text):
            family = at.get(reader)
            if family is not None:
                if len(times) == 2 and times[1] > 0 and 0 < times[0] < _LATEST_NS:
                    anchors.setdefault(family, (times[1], times[0]))
                continue
            found[reader].extend(ns for ns in times if 0 < ns < _LATEST_NS)
    return {reader: deque(sorted(times)) for reader, times in found.items()}, anchors


def _at(ns: int) -> float:
    """Seconds: of a ``datetime``, time-machine would take the time zone too, and the agent's local time is its own."""
    return ns / 1e9
