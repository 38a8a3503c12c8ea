"""The interceptor of a replay: answers every call from the record, or says what differs and stops it."""

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from functools import partial
from http import HTTPStatus
from typing import Final

from spanreplay.boundary.call import Answer, Call
from spanreplay.boundary.scope import Scope, step_label
from spanreplay.boundary.step import Step as LiveStep
from spanreplay.content.redaction import mask
from spanreplay.instrumentation.commands import LAYER as COMMAND
from spanreplay.replay.isolation.callers import user_line
from spanreplay.replay.model import Run, Step
from spanreplay.replay.reading.meaning import answer_meaning
from spanreplay.replay.rebuilding.origin import is_foreign
from spanreplay.replay.reexecution import differing, faults, turns
from spanreplay.replay.reexecution.blame import LIVE
from spanreplay.replay.reexecution.candidates import Recording
from spanreplay.replay.reexecution.claims import Claims
from spanreplay.replay.reexecution.clock import RecordedClock
from spanreplay.replay.reexecution.closed import CallRefused
from spanreplay.replay.reexecution.commands import refuse, takes_part
from spanreplay.replay.reexecution.drift import drifted
from spanreplay.replay.reexecution.ends import Ends
from spanreplay.replay.reexecution.errors import ReplayDivergence
from spanreplay.replay.reexecution.foreign import ForeignRecording, Pool
from spanreplay.replay.reexecution.foreign_calls import ForeignCalls
from spanreplay.replay.reexecution.forms import comparable
from spanreplay.replay.reexecution.holding import Holding
from spanreplay.replay.reexecution.keeping import answered_from
from spanreplay.replay.reexecution.ledger import Ledger
from spanreplay.replay.reexecution.live import Live
from spanreplay.replay.reexecution.live_runs import LiveRuns, Undecided
from spanreplay.replay.reexecution.matched import Found, Like, MatchedBy, Missed
from spanreplay.replay.reexecution.matching import RecordedRun
from spanreplay.replay.reexecution.misses import Misses
from spanreplay.replay.reexecution.options import STRICT, Options
from spanreplay.replay.reexecution.orders import RecordedOrders
from spanreplay.replay.reexecution.run_order import RunOrder
from spanreplay.replay.reexecution.standing import duration_ns, forked_by, passes, sub_agent_of
from spanreplay.replay.reexecution.stopped import WHY, was_stopped
from spanreplay.replay.reexecution.stopping import Left, Stops
from spanreplay.replay.reexecution.timed_out import is_given_up, overdue, stop_of
from spanreplay.replay.reexecution.unmade import enter_unmade

_NO_RUN: Final = "the record has no further run of this agent"
_NO_CALLS: Final = "the record has no further process that made calls here"
_BEYOND: Final = "the agent read on where it had left the stream when it was recorded; what would have followed is not known"
_CANCELLED: Final = "it was cancelled when it was recorded, and now nobody cancels it; what it would have given is not known"


class RecordedCalls:
    """A :class:`spanreplay.boundary.session.CallInterceptor` fed from recorded runs.

    Args:
        runs: the runs.
        ledger: what is matched and what differs is entered there.
        focus: see :class:`spanreplay.replay.reexecution.candidates.Recording`; also ``claims`` and ``place``.
        options: how calls are compared and answered.
        redact: what is done to the texts of live calls.
        on_stop: called once, when a difference stops the replay.
        clock: told of the times in the record that the replay comes to.
        live: what of it is live.
        begun: told of each live run that a recorded one stands for, as its root step and that one.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        ledger: Ledger,
        *,
        focus: Collection[str] = (),
        claims: Claims | None = None,
        place: str = "",
        options: Options = STRICT,
        redact: Callable[[str], str] = str,
        on_stop: Callable[[], None] | None = None,
        clock: RecordedClock | None = None,
        live: Live | None = None,
        begun: Callable[[LiveStep, Run], None] = lambda step, run: None,
    ) -> None:
        claims = claims or Claims()
        own, others = [r for r in runs if not is_foreign(r)], [r for r in runs if is_foreign(r)]
        self.recording = Recording(
            own, focus=focus, claims=claims, place=place, accept_incomplete=options.accept_incomplete, comparing=options.comparing
        )
        self.of_others = ForeignRecording(
            sorted(others, key=lambda r: r.started_ns),
            focus=focus,
            claims=claims,
            accept_incomplete=options.accept_incomplete,
            redact=lambda text: mask(redact(text)),
        )
        self.ledger = ledger
        self._comparing = options.comparing
        self._part = live
        self._clock = clock or RecordedClock(())
        self._runs = LiveRuns(self.recording, self.of_others, ledger, begun)
        self._stops = Stops(
            ledger, options.comparing, part=live, release=self.release, on_stop=on_stop, single=lambda: len(self._runs) <= 1
        )
        self._misses = Misses(ledger, options.comparing, self._stops)
        self._ends = Ends(ledger, options.comparing, self._runs, self._stops, self._misses, live)
        self._by_meaning = ForeignCalls(ledger, self._stops.entered_or_left, live, self._runs.answered_by, options.comparing)
        self._turns: dict[int, turns.Turns] = {}
        self._order = RunOrder()
        self.orders = RecordedOrders(runs, lambda: ledger.enter("relaxed"))
        """In which the program is to see jobs and results come."""
        if live is not None and live.in_any_order:
            self.orders.release()

    # ---- the protocol -------------------------------------------------------------------------------------------

    def intercept(self, step: LiveStep) -> Answer | None:
        """Answer a call from the record, or let it run.

        Raises:
            ReplayDivergence: the record cannot answer it.
            CallRefused: it would be live, and may not act.
        """
        with self._stops.lock:
            error = self._stops.again(step)
            if error is not None:
                if not passes(step):  # it is known not to have begun, as against one that was interrupted
                    step.fail(error, outcome="rejected")
                raise error
            try:
                return self._intercept(step)
            except CallRefused as refused:
                self._stops.stopped_by(refused)
                raise
            except Left as left:
                assert self._part is not None  # noqa: S101 — who leaves has it
                return self._part.after_leaving(step, left.recorded, left.there)

    def _intercept(self, step: LiveStep) -> Answer | None:
        part = self._part
        if part is not None and step.session.mode == "record":
            return part.inside(step)
        if step.starts_run:
            self._begin_run(step)
            return None
        recorded = self._runs.of(step)
        if isinstance(recorded, Pool):
            return self._of_others(step, recorded)
        inside = sub_agent_of(step)
        there = None if recorded is None else recorded.at(step.path, inside)
        asked = comparable(step.input) if recorded is None else recorded.asked(step.call.kind, step.call.name, step.input, there)
        matched = None if recorded is None else recorded.match(step.call.kind, step.call.name, step.path, asked, inside, forked_by(step))
        if part is not None:
            if recorded is not None and matched is not None:
                matched = part.relaxed(step, recorded, matched, asked, there)
            course = part.course(step, recorded, matched, there)
            if course is not None and course.delay is None:
                return course.answer
            if course is not None and course.delay is not None and recorded is not None and there is not None:
                return faults.late(self._answered(step, recorded, there, "path") or Answer(outcome="ok"), course.delay)
        if recorded is None:
            if step.call.layer == COMMAND:
                raise refuse(step, self.ledger)
            detail = _NO_CALLS if step.run is None or step.run.fallback else _NO_RUN
            self._stops.stop(step, differing.of_call(step, "never_recorded", None, None, asked, detail, None))
        assert recorded is not None  # noqa: S101 — _stop raises
        match matched:
            case Missed(kind="never_recorded" | "already_used") if step.call.layer == COMMAND:
                raise refuse(step, self.ledger)
            case Found(step=found, by=by, like=like, away=away):
                return self._answered(step, recorded, found, by, like, away=away)
            case Missed() as missed:
                return self._timed_out(step, recorded, missed, asked, there) or self._unanswered(step, recorded, missed, asked, there)
        raise AssertionError("unreachable: a miss raises")

    def _of_others(self, step: LiveStep, pool: Pool) -> Answer | None:
        if step.call.layer == COMMAND:
            raise refuse(step, self.ledger)
        return self._by_meaning.answer(step, pool)

    def _answered(
        self, step: LiveStep, recorded: RecordedRun, found: Step, by: MatchedBy, like: Like | None = None, *, away: bool = False
    ) -> Answer | None:
        recorded.used.add(found.seq)
        step.recorded = found
        if found.outcome == "cancelled":
            self._keeper(recorded).begun(found.seq)
        facts = {} if like is None else like.facts()
        if away:
            recorded.claimed(found, step.path, user_line(sys._getframe(1)))
            facts["by_chance"] = recorded.is_one_of_several(found)
        self.ledger.enter("used", run=recorded.run.run_id, step=found.seq, by=by, **facts)
        if was_stopped(found) and not passes(step):
            error = CallRefused(WHY)
            step.fail(error, outcome=found.outcome)
            raise error
        begun = self.recording.begun_in(found)
        if passes(step) or (step.call.layer == COMMAND and takes_part(step, recorded, found, begun)):
            return None
        covered = recorded.cover(found)
        if covered:
            self.ledger.enter("covered", run=recorded.run.run_id, steps=covered)
        for run in begun:
            self.ledger.enter("run", run=run.run_id)
            self.ledger.enter("covered", run=run.run_id, steps=[s.seq for s in run.steps])
        if step.session.sink is not None:
            step.learn(answered_from(recorded.run, found))
        enter_unmade(self.ledger, recorded.run, found, found.typed_error)
        return self._answer(step, recorded, found)

    def foresees(self, scope: Scope, call: Call) -> bool:
        """Whether the recorded step at the next place in ``scope`` was asked just this and has a whole response, with nothing taken yet."""
        if self._part is not None:  # a policy decides over every call
            return False
        with self._stops.lock:
            recorded = self._runs.known(scope.run)
            if self._stops.by is not None or recorded is None or recorded.by_meaning:
                return False
            found = recorded.by_path.get(scope.next_path(step_label(call.kind, call.name)))
            if found is None or found.kind != call.kind or found.outcome != "ok" or found.seq in recorded.used:
                return False
            wire = found.wire
            if wire is None or wire.status != HTTPStatus.OK or not wire.complete:
                return False
            asked = None if call.input is None else scope.session.redactor.text(call.input.text)[0]
            return recorded.asked(call.kind, call.name, asked, found) == recorded.input_of(found)

    def ended(self, step: LiveStep) -> None:
        """Compare how a step whose body ran has ended with how it ended in the record."""
        if isinstance(step.recorded, Step):
            self._clock.reached(step.recorded.ended_ns)
        if self._part is not None and step.session.mode == "record":
            return
        if step.runs:
            self._ended_live(step)
        elif self._part is not None and self._part.gone and (step.starts_run or passes(step)):
            return
        elif step.starts_run and step.run is not None:
            with self._stops.lock:
                run = self._runs.ended(step)
            if run is not None:
                with self._stops.lock:
                    self._order.ended(step, run)
                self._ends.of_step(step, run.run.run_id, None, run.run.outcome, run.run.typed_output, run.run.typed_error)
        elif passes(step) and isinstance(step.recorded, Step):
            found = step.recorded
            self._ends.of_step(step, self._runs.id_of(step), found.seq, found.outcome, found.typed_result, found.typed_error, found)
        elif step.outcome == "abandoned" and isinstance(step.recorded, Step) and step.recorded.typed_items is not None:
            self._ends.of_stream(step.recorded, step)
        elif isinstance(step.recorded, Step) and is_given_up(step, step.recorded):
            self.ledger.enter("given_up", run=self._runs.id_of(step), step=step.recorded.seq)

    def _ended_live(self, step: LiveStep) -> None:
        """A live call is over: compare it where the replay goes on with the record, and let those follow that come after it there."""
        found, part = step.recorded, self._part
        if not isinstance(found, Step) or part is None or part.gone:
            return
        recorded = self._runs.of(step)
        if isinstance(recorded, RecordedRun):
            self._keeper(recorded).turn(found.seq).given()
            with self._stops.lock:
                drift = drifted(step, found, recorded.run.run_id)
                if drift is not None:
                    asked = recorded.asked(step.call.kind, step.call.name, step.input)
                    if part.policy.models and part.drifted and asked != recorded.input_of(found):
                        drift = replace(drift, cause="asked for by a live model, with other arguments", cause_kind=LIVE)
                    part.drifted = True
                    self.ledger.enter("drift", **asdict(drift))

    # ---- runs ---------------------------------------------------------------------------------------------------

    def _begin_run(self, step: LiveStep) -> None:
        asked = comparable(step.input)
        recorded = self._runs.begin(step, asked)
        if isinstance(recorded, Pool | Undecided):
            return
        if self._part is not None and (self._part.gone or (recorded is not None and self._part.is_over(recorded.run))):
            if not self._part.gone:
                self._part.leave(step, None if recorded is None else recorded.run.run_id, None)
            return
        if recorded is None:
            self._stops.stop(step, differing.of_call(step, "never_recorded", None, None, asked, _NO_RUN, None))
        made = differing.of_run_input(recorded, f"agent {step.call.name}", comparable(recorded.run.typed_input), asked, self._comparing)
        later = self._order.skipped(step, recorded)
        if later is not None:
            detail = f"recorded as run {recorded.run.run_id[:12]}, before run {later.run_id[:12]}, which the agent has now made without it"
            made.append(differing.of_call(step, "order", None, recorded, asked, detail, None))
        if made and not self._comparing.all_differences:
            self._stops.stop(step, made[0], recorded)
        for difference in differing.each(made):
            self.ledger.differ(difference)

    # ---- answers ------------------------------------------------------------------------------------------------

    def _answer(self, step: LiveStep, recorded: RecordedRun, found: Step) -> Answer:
        keeper = self._keeper(recorded)
        return Answer(
            outcome=found.outcome,
            result=answer_meaning(found) if recorded.by_meaning and found.kind == "model_call" else found.typed_result,
            error=found.typed_error,
            items=found.typed_items,
            left=found.typed_left,
            left_alone=lambda names: self.ledger.enter("alone", run=recorded.run.run_id, step=found.seq, names=names),
            fed=(lambda given: self._ends.of_stdin(step, recorded, found, given)) if step.call.layer == COMMAND else None,
            exchange=found.wire,
            duration_ns=duration_ns(found),
            turn=keeper.turn(found.seq),
            beyond=lambda: self._stops.entered_at(recorded, found, "beyond", _CANCELLED if found.outcome == "cancelled" else _BEYOND),
            unreadable=lambda why: self._stops.entered_at(recorded, found, "not_replayable", f"the record cannot answer it: {why}"),
        )

    def _keeper(self, recorded: RecordedRun) -> turns.Turns:
        keeper = self._turns.get(id(recorded))
        if keeper is None:
            index = recorded.index
            keeper = turns.Turns(
                index.ended_before,
                lambda: self.ledger.enter("relaxed"),
                pending_s=index.pending_s,
                holding=Holding(index.by_seq),
                begun=index.begun_before,
                together=index.together,
                overdue=partial(overdue, recorded),
            )
            self._turns[id(recorded)] = keeper
        if self._part is not None and self._part.in_any_order:
            keeper.release()
        return keeper

    def release(self) -> None:
        """What is recorded decides no more what comes first: nobody waits for a turn."""
        for keeper in self._turns.values():
            keeper.release()
        self.orders.release()
        self._by_meaning.release()

    # ---- differences --------------------------------------------------------------------------------------------

    def _unanswered(self, step: LiveStep, recorded: RecordedRun, missed: Missed, asked: str | None, there: Step | None) -> Answer | None:
        again = self._misses.once_more(step, recorded, missed, asked) if self._comparing.all_differences else None
        if again is not None:
            step.scope.give_back(step.label, step.number)
            step.recorded = again
            return self._answer(step, recorded, again)
        placed = self._misses.going_on(step, recorded, missed, asked, there)
        if placed is None:
            self._misses.stop(step, recorded, missed, asked)
        return self._answered(step, recorded, placed, "place")

    def _timed_out(self, step: LiveStep, recorded: RecordedRun, missed: Missed, asked: str | None, there: Step | None) -> Answer | None:
        """Where a deadline around the call had expired by now when it was recorded, let it expire, and the call wait to be cancelled."""
        stop = stop_of(step, recorded, missed, there) if self._part is None else None
        if stop is None:
            return None
        step.scope.give_back(step.label, step.number)
        stop.act()
        if not step.awaits:
            return None

        def beyond() -> BaseException:
            with self._stops.lock:
                try:
                    self._misses.stop(step, recorded, missed, asked)
                except ReplayDivergence as error:
                    return error

        return Answer(outcome="cancelled", beyond=beyond, duration_ns=stop.pending_ns)
