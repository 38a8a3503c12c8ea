"""Were two runs of one command begun in the order of the record?

A task that begins one run when another is over says an order, as it does by its calls: in another order it is another program. Two runs
have one where both were made from the same place of one process, and the second was begun, or its task started, when the first was over. Of
all others, such as those of tasks that were started together, which comes first is chance.
"""

from typing import NamedTuple

from spanreplay.boundary.step import Step as LiveStep
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.forks import owner_of, scope_of
from spanreplay.replay.reexecution.matching import RecordedRun


class _Extent(NamedTuple):
    """From where to where a recorded run went, in its process's order."""

    process: str
    born: int | None
    """Where its task was started."""
    start: int
    end: int


class _Over(NamedTuple):
    """A run of the replay that is over."""

    recorded: Run
    scope: str
    end: int
    """Place in the order of this process."""


class RunOrder:
    """The runs that are over in a replay, as far as the order of a later one can differ from theirs. Not locked."""

    def __init__(self) -> None:
        self._latest: dict[str, _Over] = {}
        """By the scope, and by the step around the tasks, that they were made from: the one that was recorded last."""

    def ended(self, step: LiveStep, recorded: RecordedRun) -> None:
        """Take note of the end of a run.

        Args:
            step: its agent.
            recorded: what it was answered from.
        """
        over = _Over(recorded.run, step.scope.path, step.session.latest)
        for place in {over.scope, owner_of(over.scope)}:
            known = self._latest.get(place)
            if known is None or known.recorded.started_ns < recorded.run.started_ns:
                self._latest[place] = over

    def skipped(self, step: LiveStep, recorded: RecordedRun) -> Run | None:
        """A run that is over, and was recorded after the one that begins now was over; ``None`` where the order is that of the record.

        Args:
            step: the agent that begins.
            recorded: what it is answered from.
        """
        here = step.scope.path
        for place in (here, owner_of(here)):
            over = self._latest.get(place)
            if over is None or not _came_before(recorded.run, over.recorded):
                continue
            if over.scope == here or (step.scope.born is not None and step.scope.born >= over.end):
                return over.recorded
        return None


def _came_before(first: Run, second: Run) -> bool:
    a, b = _extent(first), _extent(second)
    if a is None or b is None or a.process != b.process or first.ended_ns is None or first.ended_ns > second.started_ns:
        return False
    here, there = scope_of(first.path or ""), scope_of(second.path or "")
    if here == there:
        return a.end < b.start
    return owner_of(here) == owner_of(there) and b.born is not None and a.end <= b.born


def _extent(run: Run) -> _Extent | None:
    steps = [step for step in run.steps if step.path is not None]
    processes = {step.process for step in steps}
    starts = [step.seq_start for step in steps if step.seq_start is not None]
    ends = [step.seq_end for step in steps if step.seq_end is not None]
    process = next(iter(processes), None)
    if run.path is None or process is None or len(processes) > 1 or len(starts) < len(steps) or len(ends) < len(steps):
        return None
    return _Extent(process, min((step.seq_fork for step in steps if step.seq_fork is not None), default=None), min(starts), max(ends))
