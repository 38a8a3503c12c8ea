"""What a difference stops: the whole replay, the task that made the call, or nothing, where the replay goes on as a fork."""

import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from spanreplay.boundary.step import Step as LiveStep
from spanreplay.replay.isolation.callers import user_line
from spanreplay.replay.model import Step
from spanreplay.replay.reexecution.closed import CallRefused
from spanreplay.replay.reexecution.comparing import Comparing
from spanreplay.replay.reexecution.errors import ReplayDivergence
from spanreplay.replay.reexecution.ledger import Difference, DifferenceKind, Ledger
from spanreplay.replay.reexecution.live import Live
from spanreplay.replay.reexecution.matching import RecordedRun
from spanreplay.replay.reexecution.tasks import StoppedTasks


class Left(Exception):  # noqa: N818 — caught by who answers calls
    """The first difference has been entered, and the replay goes on as a fork.

    Args:
        recorded: the run that was followed so far.
        there: its step at the place of the call.
    """

    def __init__(self, recorded: RecordedRun | None, there: Step | None) -> None:
        super().__init__()
        self.recorded = recorded
        self.there = there


class Stops:
    """Enters differences, and what they stop.

    Args:
        ledger: they are entered there.
        comparing: whether to go on for further ones.
        part: what of the replay is live.
        release: lets go what waits for its turn.
        on_stop: called once, when a difference stops the replay.
        single: whether there is no more than one run in the replay.
    """

    def __init__(
        self,
        ledger: Ledger,
        comparing: Comparing,
        *,
        part: Live | None,
        release: Callable[[], None],
        on_stop: Callable[[], None] | None,
        single: Callable[[], bool],
    ) -> None:
        self.lock = threading.RLock()
        """Of the whole replay: a call is compared, and what follows of it entered, as one."""
        self.by: ReplayDivergence | CallRefused | None = None
        """What has stopped the whole replay."""
        self.tasks = StoppedTasks()
        self._ledger = ledger
        self._comparing = comparing
        self._part = part
        self._release = release
        self._on_stop = on_stop
        self._single = single

    def again(self, step: LiveStep) -> ReplayDivergence | CallRefused | None:
        """What a call raises that is made after the replay, or its task, was stopped."""
        error = self.by or self.tasks.stopped(step)
        if error is None:
            return None
        return ReplayDivergence(error.difference) if isinstance(error, ReplayDivergence) else CallRefused(*error.args)

    def stop(self, step: LiveStep, difference: Difference, recorded: RecordedRun | None = None, expected: Step | None = None) -> NoReturn:
        """Enter a difference that nothing can answer.

        Raises:
            ReplayDivergence: it stops the replay, or the task.
            Left: the replay leaves the record here.
        """
        if self._leaves:
            self._ledger.differ(difference)
            raise Left(recorded, expected)
        if self._comparing.all_differences and difference.kind in ("never_recorded", "already_used"):
            self._ledger.differ(difference)
            error = ReplayDivergence(difference)
            self.tasks.stop(step, error)
            self._release()
            if self._on_stop is not None and self.tasks.whole and self._single():
                self._on_stop()
            raise error
        raise self.entered(difference)

    def entered(self, difference: Difference) -> ReplayDivergence:
        """What a difference raises that stops the replay."""
        self._ledger.differ(difference)
        error = ReplayDivergence(difference)
        self.stopped_by(error)
        return error

    def entered_or_left(self, difference: Difference) -> BaseException:
        """As :meth:`entered`, or what leaves the record."""
        if self._leaves:
            self._ledger.differ(difference)
            return Left(None, None)
        return self.entered(difference)

    def entered_at(self, recorded: RecordedRun, found: Step, kind: DifferenceKind, detail: str) -> BaseException:
        """What is raised where a step that answers has no more to give."""
        with self.lock:
            return self.entered(
                Difference(
                    kind=kind,
                    run_id=recorded.run.run_id,
                    step=found.seq,
                    name=f"{found.kind} {found.name}",
                    detail=detail,
                    where=user_line(sys._getframe(1)),
                )
            )

    def stopped_by(self, error: ReplayDivergence | CallRefused) -> None:
        """The whole replay is."""
        if self.by is None:
            self.by = error
            self._release()
            if self._on_stop is not None:
                self._on_stop()

    @property
    def _leaves(self) -> bool:
        return self._part is not None and self._part.policy.leave and not self._part.gone
