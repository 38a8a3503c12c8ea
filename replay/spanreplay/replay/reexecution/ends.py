"""Compares ends with the record: of steps whose bodies ran, of streams that were left, and of what was written to a command."""

from spanreplay.boundary.step import Step as LiveStep
from spanreplay.content.codec import Encoded
from spanreplay.replay.model import Step
from spanreplay.replay.reexecution import differing, raised
from spanreplay.replay.reexecution.commands import inputs_of
from spanreplay.replay.reexecution.comparing import Comparing
from spanreplay.replay.reexecution.forms import comparable
from spanreplay.replay.reexecution.ledger import Ledger
from spanreplay.replay.reexecution.live import Live
from spanreplay.replay.reexecution.live_runs import LiveRuns
from spanreplay.replay.reexecution.matching import RecordedRun
from spanreplay.replay.reexecution.misses import Misses
from spanreplay.replay.reexecution.stopping import Stops


class Ends:
    """Compares them, and enters what differs.

    Args:
        ledger: it is entered there.
        comparing: what does not count.
        runs: which recorded run stands for which live one.
        stops: what differences stop.
        misses: enters calls that are missing.
        part: what of the replay is live.
    """

    def __init__(self, ledger: Ledger, comparing: Comparing, runs: LiveRuns, stops: Stops, misses: Misses, part: Live | None) -> None:
        self._ledger = ledger
        self._comparing = comparing
        self._runs = runs
        self._stops = stops
        self._misses = misses
        self._part = part

    def of_step(
        self,
        step: LiveStep,
        run_id: str | None,
        seq: int | None,
        outcome: str,
        result: str | None,
        error: str | None,
        sub_agent: Step | None = None,
    ) -> None:
        """How a step whose body ran has ended, with how it ended in the record.

        Args:
            step: it.
            run_id: of the recorded run.
            seq: of the recorded step; ``None`` for a whole run.
            outcome: the recorded one; also ``result`` and ``error``.
            result: as the codec wrote it.
            error: as the codec wrote it.
            sub_agent: the recorded step, where calls may be missing inside.
        """
        with self._stops.lock:
            if self._stops.by is not None or step.outcome == "interrupted" or self._stops.tasks.reached(step):
                return
            name = f"{step.call.kind} {step.call.name}"
            equal = (outcome in ("unknown", step.outcome)) and comparable(result) == comparable(step.result)
            fed_from = None if sub_agent is None or equal else self._runs.of(step)
            if isinstance(fed_from, RecordedRun) and sub_agent is not None:
                self._misses.enter_skipped(fed_from, fed_from.unasked.inside(sub_agent), f"the end of step {sub_agent.seq}, {name}")
            for difference in differing.of_end(run_id, seq, step, outcome, result, self._comparing):
                self._ledger.differ(difference)
            for difference in raised.of_end(run_id, seq, step, outcome, error, self._comparing):
                self._ledger.differ(difference)

    def of_stream(self, found: Step, step: LiveStep) -> None:
        """The agent left a stream: a difference where it was read to its end when it was recorded."""
        with self._stops.lock:
            if found.outcome == "ok" and self._stops.by is None and not self._ledger.totals.refusals:
                self._ledger.differ(differing.of_leaving(self._runs.id_of(step), found, step))

    def of_stdin(self, step: LiveStep, recorded: RecordedRun, found: Step, given: Encoded) -> bool:
        """What the agent wrote to a command while that ran is a part of its input that is known late."""
        redactor = step.session.redactor
        text = (redactor.typed(given.text) if given.typed else redactor.text(given.text))[0]
        inputs = inputs_of(found, text)
        with self._stops.lock:
            if self._stops.by is not None or inputs is None or self._comparing.ignores(("stdin",), inputs.recorded, inputs.actual):
                return False
            wanted, asked = inputs.whole(recorded.input_of(found))
            made = differing.of_input(step, found, recorded, wanted, asked, self._comparing, None)
            if not self._comparing.all_differences and (self._part is None or not self._part.policy.leave):
                raise self._stops.entered(made[0])
            self._misses.enter(made)
            return True
