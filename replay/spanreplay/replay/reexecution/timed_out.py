"""A call that was never made, as its agent had run into a deadline before it, or its task was cancelled.

See :mod:`spanreplay.instrumentation.shims.deadlines`, :mod:`spanreplay.instrumentation.shims.alarms` and
:mod:`spanreplay.boundary.cancelled`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from spanreplay.boundary import cancelled
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.step import Step as LiveStep
from spanreplay.instrumentation.shims import alarms, deadlines
from spanreplay.replay.model import Step
from spanreplay.replay.reexecution.forks import FORK, scope_of
from spanreplay.replay.reexecution.matched import Missed
from spanreplay.replay.reexecution.matching import RecordedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """What stopped a task when it was recorded, and is still to come here.

    Attributes:
        act: brings it about now; it comes by itself where this does nothing. It may raise what ends the call.
        pending_ns: for how long it may take to come by itself.
    """

    act: Callable[[], object]
    pending_ns: int = 0


def stop_of(step: LiveStep, recorded: RecordedRun, missed: Missed, there: Step | None) -> Stop | None:
    """What is to stop the task instead of the call being a difference; ``None`` where it is one.

    Args:
        step: the call.
        recorded: its run.
        missed: why the record does not answer it.
        there: the recorded step at its place.
    """
    if missed.claim is not None or missed.kind == "not_replayable":
        return None
    to_come = [] if there is None else [there]
    to_come += recorded.index.in_scope(scope_of(step.path))
    left = [one.seq_start for one in to_come if recorded.free(one) and one.seq_start is not None]
    if not step.awaits:
        alarm = alarms.awaited(step.scope)
        return Stop(act=alarms.come) if alarm is not None and all(seq > alarm for seq in left) else None
    deadline = deadlines.awaited(step.path)
    if deadline is not None and deadline.place is not None and all(seq > deadline.place for seq in left):
        return Stop(act=deadline.expire)
    if left:
        return None  # the record has other calls there, which are missing
    ended = cancelled.recorded(step.scope) if recorded.index.in_scope(scope_of(step.path)) else _before_its_first(step, recorded)
    return None if ended is None else Stop(act=lambda: None, pending_ns=ended[1] * 1_000_000)


def is_given_up(step: LiveStep, recorded: Step) -> bool:
    """Whether a call did not get its answer, as a deadline ran out here that had not when it was recorded.

    Args:
        step: the call, which has ended.
        recorded: what answers it.
    """
    return step.outcome == "cancelled" and recorded.outcome == "ok" and deadlines.one_ran_out(step.session)


def overdue(recorded: RecordedRun, seq: int) -> list[deadlines.Deadline]:
    """The deadlines that had expired before a step ended, and have not here, though all has begun that had by then.

    Args:
        recorded: the run.
        seq: of the step, in it.
    """
    ending = recorded.index.by_seq[seq]
    found = deadlines.due(ending.seq_end or 0)
    left = [s.seq_start or 0 for s in recorded.index.by_seq.values() if s.process == ending.process and recorded.free(s)] if found else []
    return [one for one in found if all(began > (one.place or 0) for began in left)]


def _before_its_first(step: LiveStep, recorded: RecordedRun) -> tuple[int, int] | None:
    """When the task around a call was cancelled, that had made none by then, where others like it made just this one: it would have too."""
    scope: Scope | None = step.scope
    while scope is not None and scope.run is step.scope.run:
        path = scope.path
        if scope.label.startswith(FORK) and (path.rpartition("#")[0], step.path[len(path) :]) in recorded.index.made_in_tasks:
            ended = cancelled.recorded(scope)
            if ended is not None:
                return ended if recorded.index.is_empty(path) else None
        scope = scope.parent
    return None
