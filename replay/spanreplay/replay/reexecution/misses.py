"""Calls that the record does not answer by themselves: what is entered of each, and which step answers where the replay is to go on."""

import sys
from collections.abc import Sequence
from typing import NoReturn

from spanreplay.boundary.step import Step as LiveStep
from spanreplay.replay.isolation.callers import user_line
from spanreplay.replay.model import Step
from spanreplay.replay.reexecution import differing, out_of_order
from spanreplay.replay.reexecution.comparing import Comparing
from spanreplay.replay.reexecution.ledger import Difference, Ledger
from spanreplay.replay.reexecution.matched import Missed, unable
from spanreplay.replay.reexecution.matching import RecordedRun
from spanreplay.replay.reexecution.standing import placed, sub_agent_of
from spanreplay.replay.reexecution.stopping import Stops


class Misses:
    """Enters them.

    Args:
        ledger: they are entered there.
        comparing: whether to go on for further ones.
        stops: what they stop.
    """

    def __init__(self, ledger: Ledger, comparing: Comparing, stops: Stops) -> None:
        self._ledger = ledger
        self._comparing = comparing
        self._stops = stops
        self._told: dict[tuple[str | None, ...], int] = {}
        """What differed so far, and at which step first."""

    def once_more(self, step: LiveStep, recorded: RecordedRun, missed: Missed, asked: str | None) -> Step | None:
        """The step that answers a second time, where all differences are asked for and the agent makes one call more; that is entered."""
        path = placed(step.path, sub_agent_of(step))
        found = recorded.repeats.one_more(path, step.number, asked)
        if found is not None:  # the call before this one was the one more, and has its answer
            self._ledger.enter("one_more", run=recorded.run.run_id, step=found.seq)
            return found
        if missed.kind != "already_used" or missed.claim is not None:
            return None
        found = recorded.repeats.once_more(path, step.call.kind, step.call.name, asked)
        if found is not None:
            self._ledger.differ(differing.of_call(step, missed.kind, None, recorded, asked, differing.unknown_detail(missed), None))
        return found

    def stop(self, step: LiveStep, recorded: RecordedRun, missed: Missed, asked: str | None) -> NoReturn:
        """Enter that the record has no answer to a call.

        Raises:
            ReplayDivergence: always, or :class:`spanreplay.replay.reexecution.stopping.Left`.
        """
        expected = missed.step
        claim = missed.claim
        where = user_line(sys._getframe(1)) if claim is None else claim.where
        if claim is not None:
            asked = claim.asked
        if missed.kind == "input" and expected is not None:
            self.enter_skipped(recorded, missed.skipped, f"step {expected.seq}, {expected.kind} {expected.name}")
            made = differing.of_input(step, expected, recorded, recorded.input_of(expected), asked, self._comparing, where)
            self._stops.stop(step, differing.with_again(made[0], missed.again), recorded, expected)
        detail = unable(expected) if expected is not None else ""
        alike: Sequence[Step] = ()
        if missed.kind == "order" and expected is not None:
            self._stops.stop(step, out_of_order.of_order(step, expected, missed, recorded, asked, where, goes_on=False), recorded, expected)
        if missed.kind != "not_replayable":
            detail, alike = differing.unknown_detail(missed), recorded.alike(step.call.kind, step.call.name)
        self._stops.stop(step, differing.of_call(step, missed.kind, expected, recorded, asked, detail, where, alike), recorded, expected)

    def going_on(self, step: LiveStep, recorded: RecordedRun, missed: Missed, asked: str | None, there: Step | None) -> Step | None:
        """The step that answers although the call differs, where all differences are asked for; they are entered."""
        found = missed.instead or there
        if not self._comparing.all_differences or missed.claim is not None or missed.kind not in ("input", "order"):
            return None
        if found is None or not recorded.free(found) or not recorded.may_answer(found):
            return None
        if missed.kind == "order" and missed.step is not None:
            self._ledger.differ(out_of_order.of_order(step, missed.step, missed, recorded, asked, None, goes_on=True))
            recorded.shuffle(found)
        self.enter_skipped(recorded, missed.skipped, f"step {found.seq}, {found.kind} {found.name}")
        if recorded.input_of(found) != asked:
            recorded.repeats.mislead(found)
            made = differing.of_input(step, found, recorded, recorded.input_of(found), asked, self._comparing, None)
            self.enter(made)
        return found

    def enter(self, made: Sequence[Difference]) -> None:
        """Enter what differs in a call that is answered all the same; what has differed so before is told as that."""
        for difference in differing.told_again(made, self._told):
            self._ledger.differ(difference)

    def enter_skipped(self, recorded: RecordedRun, skipped: Sequence[Step], before: str) -> None:
        """Enter recorded steps to which the agent has not come, and now will not.

        Args:
            recorded: their run.
            skipped: they.
            before: which step or end they were recorded before.
        """
        for missing in skipped:
            self._ledger.differ(
                Difference(
                    kind="unreached",
                    run_id=recorded.run.run_id,
                    step=missing.seq,
                    name=f"{missing.kind} {missing.name}",
                    recorded=out_of_order.asked_for(missing),
                    detail=f"recorded before {before}, to which the agent has now come without it",
                )
            )
