"""The interceptor of a replay: answers every call from the record, or says what differs and stops it."""

import sys
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from http import HTTPStatus
from typing import Final, NoReturn

from spanreplay.boundary.call import Answer, Call
from spanreplay.boundary.scope import Scope, step_label
from spanreplay.boundary.step import Step as LiveStep
from spanreplay.content.codec import Encoded
from spanreplay.content.redaction import mask
from spanreplay.instrumentation.commands import LAYER as COMMAND
from spanreplay.replay.isolation.callers import user_line
from spanreplay.replay.model import Run, Step
from spanreplay.replay.reading.meaning import answer_meaning
from spanreplay.replay.rebuilding.origin import is_foreign
from spanreplay.replay.reexecution import differing, faults, out_of_order, raised, turns
from spanreplay.replay.reexecution.blame import LIVE
from spanreplay.replay.reexecution.candidates import Recording
from spanreplay.replay.reexecution.claims import Claims
from spanreplay.replay.reexecution.clock import RecordedClock
from spanreplay.replay.reexecution.closed import CallRefused
from spanreplay.replay.reexecution.commands import inputs_of, refuse, takes_part
from spanreplay.replay.reexecution.drift import drifted
from spanreplay.replay.reexecution.errors import ReplayDivergence
from spanreplay.replay.reexecution.foreign import ForeignRecording, Pool
from spanreplay.replay.reexecution.foreign_calls import ForeignCalls
from spanreplay.replay.reexecution.forms import comparable
from spanreplay.replay.reexecution.holding import Holding
from spanreplay.replay.reexecution.keeping import answered_from
from spanreplay.replay.reexecution.ledger import Difference, DifferenceKind, Ledger
from spanreplay.replay.reexecution.live import Live
from spanreplay.replay.reexecution.live_runs import LiveRuns, Undecided
from spanreplay.replay.reexecution.matched import Found, Like, MatchedBy, Missed, unable
from spanreplay.replay.reexecution.matching import RecordedRun
from spanreplay.replay.reexecution.options import STRICT, Options
from spanreplay.replay.reexecution.orders import RecordedOrders
from spanreplay.replay.reexecution.run_order import RunOrder
from spanreplay.replay.reexecution.standing import duration_ns, forked_by, passes, sub_agent_of
from spanreplay.replay.reexecution.stopped import WHY, was_stopped
from spanreplay.replay.reexecution.tasks import StoppedTasks
from spanreplay.replay.reexecution.timed_out import is_given_up, stop_of
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
        self.stopped: ReplayDivergence | CallRefused | None = None
        self._comparing = options.comparing
        self._told: dict[tuple[str | None, ...], int] = {}
        """What differed so far, and at which step first."""
        self._tasks = StoppedTasks()
        self._part = live
        self._on_stop = on_stop
        self._clock = clock or RecordedClock(())
        self._lock = threading.RLock()
        self._runs = LiveRuns(self.recording, self.of_others, ledger, begun)
        self._by_meaning = ForeignCalls(ledger, self._entered_or_left, live, self._runs.answered_by, options.comparing)
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
        with self._lock:
            stopped = self.stopped or self._tasks.stopped(step)
            if stopped is not None:
                error = _again(stopped)
                if not passes(step):  # it is known not to have begun, as against one that was interrupted
                    step.fail(error, outcome="rejected")
                raise error
            try:
                return self._intercept(step)
            except CallRefused as refused:
                self._stopped_by(refused)
                raise
            except _Left as left:
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
            self._stop(step, differing.of_call(step, "never_recorded", None, None, asked, detail, None))
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
        with self._lock:
            recorded = self._runs.known(scope.run)
            if self.stopped is not None or recorded is None or recorded.by_meaning:
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
            with self._lock:
                run = self._runs.ended(step)
            if run is not None:
                with self._lock:
                    self._order.ended(step, run)
                self._compare_end(step, run.run.run_id, None, run.run.outcome, run.run.typed_output, run.run.typed_error)
        elif passes(step) and isinstance(step.recorded, Step):
            found = step.recorded
            self._compare_end(step, self._runs.id_of(step), found.seq, found.outcome, found.typed_result, found.typed_error, found)
        elif step.outcome == "abandoned" and isinstance(step.recorded, Step) and step.recorded.typed_items is not None:
            self._compare_leaving(step.recorded, step)
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
            with self._lock:
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
            self._stop(step, differing.of_call(step, "never_recorded", None, None, asked, _NO_RUN, None))
        made = differing.of_run_input(recorded, f"agent {step.call.name}", comparable(recorded.run.typed_input), asked, self._comparing)
        later = self._order.skipped(step, recorded)
        if later is not None:
            detail = f"recorded as run {recorded.run.run_id[:12]}, before run {later.run_id[:12]}, which the agent has now made without it"
            made.append(differing.of_call(step, "order", None, recorded, asked, detail, None))
        if made and not self._comparing.all_differences:
            self._stop(step, made[0], recorded)
        for difference in differing.each(made):
            self.ledger.differ(difference)

    def _compare_end(
        self,
        step: LiveStep,
        run_id: str | None,
        seq: int | None,
        outcome: str,
        result: str | None,
        error: str | None,
        sub_agent: Step | None = None,
    ) -> None:
        with self._lock:
            if self.stopped is not None or step.outcome == "interrupted" or self._tasks.reached(step):
                return
            name = f"{step.call.kind} {step.call.name}"
            equal = (outcome in ("unknown", step.outcome)) and comparable(result) == comparable(step.result)
            fed_from = None if sub_agent is None or equal else self._runs.of(step)
            if isinstance(fed_from, RecordedRun) and sub_agent is not None:
                self._enter_skipped(fed_from, fed_from.missing_in(sub_agent), f"the end of step {sub_agent.seq}, {name}")
            for difference in differing.of_end(run_id, seq, step, outcome, result, self._comparing):
                self.ledger.differ(difference)
            for difference in raised.of_end(run_id, seq, step, outcome, error, self._comparing):
                self.ledger.differ(difference)

    def _compare_leaving(self, found: Step, step: LiveStep) -> None:
        """The agent left a stream: a difference where it was read to its end when it was recorded."""
        with self._lock:
            if found.outcome == "ok" and self.stopped is None and not self.ledger.totals.refusals:
                self.ledger.differ(differing.of_leaving(self._runs.id_of(step), found, step))

    def _compare_fed(self, step: LiveStep, recorded: RecordedRun, found: Step, given: Encoded) -> bool:
        """What the agent wrote to a command while that ran is a part of its input that is known late."""
        redactor = step.session.redactor
        text = (redactor.typed(given.text) if given.typed else redactor.text(given.text))[0]
        inputs = inputs_of(found, text)
        with self._lock:
            if self.stopped is not None or inputs is None or self._comparing.ignores(("stdin",), inputs.recorded, inputs.actual):
                return False
            wanted, asked = inputs.whole(recorded.input_of(found))
            made = differing.of_input(step, found, recorded, wanted, asked, self._comparing, None)
            if not self._comparing.all_differences and (self._part is None or not self._part.policy.leave):
                raise self._entered(made[0])
            for difference in differing.told_again(made, self._told):
                self.ledger.differ(difference)
            return True

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
            fed=(lambda given: self._compare_fed(step, recorded, found, given)) if step.call.layer == COMMAND else None,
            exchange=found.wire,
            duration_ns=duration_ns(found),
            turn=keeper.turn(found.seq),
            beyond=lambda: self._entered_at(recorded, found, "beyond", _CANCELLED if found.outcome == "cancelled" else _BEYOND),
            unreadable=lambda why: self._entered_at(recorded, found, "not_replayable", f"the record cannot answer it: {why}"),
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

    def _entered_at(self, recorded: RecordedRun, found: Step, kind: DifferenceKind, detail: str) -> BaseException:
        with self._lock:
            return self._entered(
                Difference(
                    kind=kind,
                    run_id=recorded.run.run_id,
                    step=found.seq,
                    name=f"{found.kind} {found.name}",
                    detail=detail,
                    where=user_line(sys._getframe(1)),
                )
            )

    # ---- differences --------------------------------------------------------------------------------------------

    def _unanswered(self, step: LiveStep, recorded: RecordedRun, missed: Missed, asked: str | None, there: Step | None) -> Answer | None:
        again = self._once_more(step, recorded, missed, asked) if self._comparing.all_differences else None
        if again is not None:
            step.scope.give_back(step.label, step.number)
            step.recorded = again
            return self._answer(step, recorded, again)
        placed = self._going_on(step, recorded, missed, asked, there)
        if placed is None:
            self._miss(step, recorded, missed, asked, there)
        return self._answered(step, recorded, placed, "place")

    def _once_more(self, step: LiveStep, recorded: RecordedRun, missed: Missed, asked: str | None) -> Step | None:
        """The step that answers a second time, where all differences are asked for and the agent makes one call more; that is entered."""
        inside = sub_agent_of(step)
        found = recorded.one_more(step, asked, inside)
        if found is not None:  # the call before this one was the one more, and has its answer
            recorded.lead_back(found)
            self.ledger.enter("one_more", run=recorded.run.run_id, step=found.seq)
            return found
        if missed.kind != "already_used" or missed.claim is not None:
            return None
        found = recorded.once_more(step, asked, inside)
        if found is not None:
            self.ledger.differ(differing.of_call(step, missed.kind, None, recorded, asked, differing.unknown_detail(missed), None))
        return found

    def _miss(self, step: LiveStep, recorded: RecordedRun, missed: Missed, asked: str | None, there: Step | None) -> NoReturn:
        expected = missed.step
        claim = missed.claim
        where = user_line(sys._getframe(1)) if claim is None else claim.where
        if claim is not None:
            asked = claim.asked
        if missed.kind == "input" and expected is not None:
            self._enter_skipped(recorded, missed.skipped, f"step {expected.seq}, {expected.kind} {expected.name}")
            made = differing.of_input(step, expected, recorded, recorded.input_of(expected), asked, self._comparing, where)
            self._stop(step, differing.with_again(made[0], missed.again), recorded, expected)
        detail = unable(expected) if expected is not None else ""
        alike: Sequence[Step] = ()
        if missed.kind == "order" and expected is not None:
            self._stop(step, out_of_order.of_order(step, expected, missed, recorded, asked, where, goes_on=False), recorded, expected)
        if missed.kind != "not_replayable":
            detail, alike = differing.unknown_detail(missed), recorded.alike(step.call.kind, step.call.name)
        self._stop(step, differing.of_call(step, missed.kind, expected, recorded, asked, detail, where, alike), recorded, expected)

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
            with self._lock:
                try:
                    self._miss(step, recorded, missed, asked, there)
                except ReplayDivergence as error:
                    return error

        return Answer(outcome="cancelled", beyond=beyond, duration_ns=stop.pending_ns)

    def _going_on(self, step: LiveStep, recorded: RecordedRun, missed: Missed, asked: str | None, there: Step | None) -> Step | None:
        """The step that answers although the call differs, where all differences are asked for; they are entered."""
        found = missed.instead or there
        if not self._comparing.all_differences or missed.claim is not None or missed.kind not in ("input", "order"):
            return None
        if found is None or not recorded.free(found) or not recorded.may_answer(found):
            return None
        if missed.kind == "order" and missed.step is not None:
            self.ledger.differ(out_of_order.of_order(step, missed.step, missed, recorded, asked, None, goes_on=True))
            recorded.shuffle(found)
        self._enter_skipped(recorded, missed.skipped, f"step {found.seq}, {found.kind} {found.name}")
        if recorded.input_of(found) != asked:
            recorded.mislead(found)
            made = differing.of_input(step, found, recorded, recorded.input_of(found), asked, self._comparing, None)
            for difference in differing.told_again(made, self._told):
                self.ledger.differ(difference)
        return found

    def _enter_skipped(self, recorded: RecordedRun, skipped: Sequence[Step], before: str) -> None:
        for missing in skipped:
            self.ledger.differ(
                Difference(
                    kind="unreached",
                    run_id=recorded.run.run_id,
                    step=missing.seq,
                    name=f"{missing.kind} {missing.name}",
                    recorded=out_of_order.asked_for(missing),
                    detail=f"recorded before {before}, to which the agent has now come without it",
                )
            )

    def _stop(self, step: LiveStep, difference: Difference, recorded: RecordedRun | None = None, expected: Step | None = None) -> NoReturn:
        if self._part is not None and self._part.policy.leave and not self._part.gone:
            self.ledger.differ(difference)
            raise _Left(recorded, expected)
        if self._comparing.all_differences and difference.kind in ("never_recorded", "already_used"):
            self.ledger.differ(difference)
            error = ReplayDivergence(difference)
            self._tasks.stop(step, error)
            self.release()
            if self._on_stop is not None and self._tasks.whole and len(self._runs) <= 1:
                self._on_stop()
            raise error
        raise self._entered(difference)

    def _entered(self, difference: Difference) -> ReplayDivergence:
        self.ledger.differ(difference)
        error = ReplayDivergence(difference)
        self._stopped_by(error)
        return error

    def _entered_or_left(self, difference: Difference) -> BaseException:
        if self._part is not None and self._part.policy.leave and not self._part.gone:
            self.ledger.differ(difference)
            return _Left(None, None)
        return self._entered(difference)

    def _stopped_by(self, error: ReplayDivergence | CallRefused) -> None:
        if self.stopped is None:
            self.stopped = error
            self.release()
            if self._on_stop is not None:
                self._on_stop()


class _Left(Exception):  # noqa: N818 — caught where it is raised
    """The first difference has been entered, and the replay goes on as a fork."""

    def __init__(self, recorded: RecordedRun | None, there: Step | None) -> None:
        super().__init__()
        self.recorded = recorded
        self.there = there


def _again(error: ReplayDivergence | CallRefused) -> ReplayDivergence | CallRefused:
    return ReplayDivergence(error.difference) if isinstance(error, ReplayDivergence) else CallRefused(*error.args)
