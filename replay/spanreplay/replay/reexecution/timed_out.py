"""A call that was never made, as its agent had run into a deadline before it: see :mod:`spanreplay.instrumentation.shims.deadlines`."""

from spanreplay.boundary.step import Step as LiveStep
from spanreplay.instrumentation.shims import deadlines
from spanreplay.instrumentation.shims.deadlines import Deadline
from spanreplay.replay.model import Step
from spanreplay.replay.reexecution.forks import scope_of
from spanreplay.replay.reexecution.matched import Missed
from spanreplay.replay.reexecution.matching import RecordedRun


def deadline_of(step: LiveStep, recorded: RecordedRun, missed: Missed, there: Step | None) -> Deadline | None:
    """The deadline that is to expire instead of the call being a difference; ``None`` where it is one.

    Args:
        step: the call, whose caller can be cancelled.
        recorded: its run.
        missed: why the record does not answer it.
        there: the recorded step at its place.
    """
    if not step.awaits or missed.claim is not None or missed.kind == "not_replayable":
        return None
    deadline = deadlines.awaited()
    if deadline is None or deadline.place is None:
        return None
    to_come = [] if there is None else [there]
    to_come += recorded.index.in_scope(scope_of(step.path))
    if any(recorded.free(one) and one.seq_start is not None and one.seq_start <= deadline.place for one in to_come):
        return None  # before the deadline the record has other calls there, which are missing
    return deadline
