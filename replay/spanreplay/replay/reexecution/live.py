"""Which calls of a re-execution are live, and what becomes of them.

The interceptor asks at every call, after it has looked for the recorded step and before that answers. A live call runs as it does while
recording; one that may not act is refused; one that a fork changes, or injects a fault into, gets that.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from spanreplay.boundary.call import Answer
from spanreplay.boundary.scope import current_scope
from spanreplay.boundary.step import Step as LiveStep
from spanreplay.content.canonical import canonical_json
from spanreplay.replay.isolation.reachable import Address
from spanreplay.replay.model import Run, Step
from spanreplay.replay.reexecution import closed, faults
from spanreplay.replay.reexecution.acting import Acting
from spanreplay.replay.reexecution.contradictions import targets_of
from spanreplay.replay.reexecution.cut import cut_at, cut_of, may_have_acted, run_of
from spanreplay.replay.reexecution.deciding import as_given, check_decisions, decision_on, failed
from spanreplay.replay.reexecution.foreign import ForeignRun
from spanreplay.replay.reexecution.ledger import Ledger
from spanreplay.replay.reexecution.matched import Found, Missed
from spanreplay.replay.reexecution.matching import RecordedRun
from spanreplay.replay.reexecution.policy import RESULT, Fault, Policy
from spanreplay.replay.reexecution.standing import passes
from spanreplay.semconv import attributes as names

_MODEL: Final = "model_call"
_RELAXED: Final = frozenset({"tool_call", "io", "retrieval", "memory", "mcp", "decision", "human"})
"""Kinds that are answered by what they ask, wherever a live model asks for them."""
_NOT_MISSED: Final = frozenset({"cancelled", "unknown", "abandoned"})
"""Outcomes of recorded calls that need not come again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What becomes of a call that the record does not simply answer."""

    answer: Answer | None = None
    """What answers it instead; ``None``: it runs."""
    delay: Fault | None = None
    """The record answers it, late."""


Matched: TypeAlias = Found | Missed | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a call stands in the record."""

    run_id: str | None
    expected: Step | None
    """The recorded step that answers it, or else the one at its place."""
    matched: bool
    """It answers it."""
    recorded: RecordedRun | None = None
    left: Callable[[Collection[str]], Iterator[Step]] | None = None
    """The steps of the run that have not answered, but those of some outcomes."""


class Live:
    """What is live of one process's replay. Not locked: the interceptor holds its own lock around every use.

    Args:
        policy: what is live.
        runs: those that answer.
        ledger: what is live, left and refused is entered there.
        hosts: host and port that model calls may go to; ``None`` for any.
        on_leave: called once, when it leaves the record.

    Raises:
        PolicyError: the policy does not fit the runs.
    """

    def __init__(
        self,
        policy: Policy,
        runs: Sequence[Run],
        ledger: Ledger,
        *,
        hosts: Sequence[Address] | None = None,
        on_leave: Callable[[], None] = lambda: None,
    ) -> None:
        self.policy = policy
        self.gone = False
        """It has left the record: nothing is compared any more."""
        self.drifted = False
        """A live call gave something else than the recorded one, if only an id: what models are asked after it may differ too."""
        self._runs = runs
        self._ledger = ledger
        self._acting = Acting(policy, runs, ledger, hosts)
        self._on_leave = on_leave
        self._cut = cut_of(runs, policy)
        needs_run = policy.only is not None or bool(policy.faults) or policy.at is not None
        self._run = run_of(runs, policy).run_id if needs_run else policy.run
        self._faults = {fault.step: fault for fault in policy.faults}
        self._faulted: dict[str, Fault] = {}

    # ---- in the replay ------------------------------------------------------------------------------------------

    def relaxed(
        self, step: LiveStep, recorded: RecordedRun, matched: Found | Missed, asked: str | None, there: Step | None
    ) -> Found | Missed:
        """What answers a call where what is live before it may have changed what is asked, and in which order.

        Args:
            step: the call.
            recorded: the run that answers.
            matched: what a strict look has found.
            asked: the comparable input.
            there: the recorded step at the call's place.
        """
        if isinstance(matched, Found):
            return matched
        leaves = self._cut is not None and there is not None and not self._is_before(recorded.run.run_id, there)
        stubbed = step.call.name in self.policy.stub and (self.gone or leaves)
        anywhere = stubbed or (self.policy.models and step.call.kind in _RELAXED)
        if anywhere:
            found = recorded.same(step.call.kind, step.call.name, asked)
            return matched if found is None else Found(step=found, by="input")
        if self.drifted and not self.gone and step.call.kind == _MODEL and there is not None and recorded.free(there):
            return Found(step=there, by="path")
        return matched

    def course(self, step: LiveStep, recorded: RecordedRun | None, matched: Matched, there: Step | None) -> Course | None:
        """What becomes of a call; ``None``: what it would without a policy.

        Raises:
            CallRefused: it may not act.
        """
        run_id = None if recorded is None else recorded.run.run_id
        expected = matched.step if isinstance(matched, Found) else there
        if self._leaves_out(run_id, matched):
            return None
        left = None if recorded is None else recorded.left
        return self._decide(Standing(run_id, expected, matched=isinstance(matched, Found), recorded=recorded, left=left), step)

    def course_of_others(self, step: LiveStep, run: ForeignRun | None, found: Step | None) -> Course | None:
        """The same of a call in a run that others recorded, which has no places: ``found`` is what answers it by its meaning."""
        run_id, left = (None, None) if run is None else (run.run.run_id, run.left)
        return self._decide(Standing(run_id, found, matched=found is not None, left=left), step)

    def _decide(self, at: Standing, step: LiveStep) -> Course | None:
        again = self._faulted.get(str(step.attributes.get(names.STEP_RETRY_OF)))
        if again is not None:
            return self._inject(again, step, None)
        if step.call.name in self.policy.refuse and not passes(step):
            raise closed.refused(step, closed.why_closed(step, self.policy, self._runs) or "", self._ledger, expected=at.expected)
        if self.policy.is_fork or self._cut is not None:
            return self._fork(step, at)
        if not self._is_live(step, at.run_id, at.expected):
            return None
        return self._let(step, at)

    def inside(self, step: LiveStep) -> Answer | None:
        """A call that is made in the body of a live one: it is part of that, and must be allowed to act itself.

        Raises:
            CallRefused: it may not.
        """
        if step.starts_run or passes(step):
            return None
        self._acting.allow(step)
        changed = self._acting.change(step)
        if changed:
            step.learn({names.STEP_CHANGED: canonical_json(changed)})
        step.let_run()
        return None

    def permits(self) -> bool:
        """Whether what runs now may act outside: a live call that is no model's, whose own hosts are open; or a run that is finished."""
        if self.policy.finish and self.gone:
            return True
        scope = current_scope()
        if scope is None or scope.session.mode != "record":
            return False
        return scope.step is not None and scope.step.call.kind != _MODEL

    # ---- forks --------------------------------------------------------------------------------------------------

    def _fork(self, step: LiveStep, at: Standing) -> Course | None:
        expected = at.expected
        fault = self._faults.get(expected.seq) if expected is not None and at.run_id == self._run else None
        if not self.gone:
            if self._cut is None or not self._is_past(at):
                return None
            if expected is not None and passes(step):  # it had begun: what it was doing is looked at, call by call
                return None if at.matched else self._let(step, at)
            self.leave(step, at.run_id, expected)
        elif at.matched and expected is not None and self._is_before(at.run_id, expected):
            return None
        if fault is not None:
            return self._inject(fault, step, expected)
        if self.policy.finish and at.recorded is not None and expected is not None and may_have_acted(at.recorded.run, expected):
            return self._decided(step, at, expected)
        if self._is_changed_result(step, at.run_id, expected):
            answer = as_given(canonical_json(self.policy.changes[RESULT]), step, expected, self._runs, self._ledger)
            self._enter(step, at.run_id, expected, changed={RESULT: self.policy.changes[RESULT]}, given="set")
            return Course(answer=answer)
        if at.matched and step.call.name in self.policy.stub:
            return None
        return self._let(step, at)

    def _leaves_out(self, run_id: str | None, matched: Matched) -> bool:
        """Was something before the cut left out, which is a difference?"""
        if self.gone or self._cut is None or not isinstance(matched, Missed) or matched.kind != "order" or matched.step is None:
            return False
        return self._cut.before(run_id or "", matched.step)

    def _is_past(self, at: Standing) -> bool:
        """Is a call, made while everything so far was answered, at or behind the cut?"""
        cut = self._cut
        assert cut is not None  # noqa: S101 — asked by the caller
        if at.expected is not None:
            return not cut.before(at.run_id or "", at.expected)
        return at.left is not None and not any(cut.before(at.run_id or "", s) for s in at.left(_NOT_MISSED))

    def is_over(self, run: Run) -> bool:
        """Whether all of a run is behind the cut, so that it is not to be compared."""
        cut = self._cut
        return cut is not None and not cut.unfinished and run.run_id != cut.run_id and run.started_ns >= cut.moment_ns

    def _is_before(self, run_id: str | None, found: Step) -> bool:
        return self._cut is not None and self._cut.before(run_id or "", found)

    def leave(self, step: LiveStep, run_id: str | None, expected: Step | None) -> None:
        """It leaves the record here.

        Raises:
            CallRefused: a decision gives what the tool that it is about does not; nothing has been live by then.
        """
        check_decisions(step, self.policy, self._runs, self._ledger)
        self.gone = True
        if self._cut is None and expected is not None:
            run = next((r for r in self._runs if r.run_id == run_id), None)
            self._cut = None if run is None else cut_at(run, expected.seq)
        seq = None if expected is None else expected.seq
        self._ledger.enter("left", run=run_id, step=seq, name=f"{step.call.kind} {step.call.name}")
        self._on_leave()

    def after_leaving(self, step: LiveStep, recorded: RecordedRun | None, expected: Step | None) -> Answer | None:
        """The first difference was met, and it goes on as a fork: what becomes of the call that differs."""
        self.leave(step, None if recorded is None else recorded.run.run_id, expected)
        at = Standing(None if recorded is None else recorded.run.run_id, expected, matched=False, recorded=recorded)
        return None if step.starts_run else self._let(step, at).answer

    def _decided(self, step: LiveStep, at: Standing, expected: Step) -> Course:
        decision = decision_on(at.run_id or "", step, expected, self.policy, self._ledger)
        if decision.choice == "again":
            return self._let(step, at)
        answer = as_given(decision.result, step, expected, self._runs, self._ledger) if decision.choice == "done" else failed(step)
        self._enter(step, at.run_id, expected, changed={"decision": decision.choice}, given="decided")
        return Course(answer=answer)

    # ---- mixes --------------------------------------------------------------------------------------------------

    def _is_live(self, step: LiveStep, run_id: str | None, expected: Step | None) -> bool:
        policy, call = self.policy, step.call
        if passes(step):
            return False
        if policy.only is not None and expected is not None and (run_id, expected.seq) == (self._run, policy.only):
            return True
        return (call.kind == _MODEL and policy.models) or call.name in policy.live or call.name in policy.live_read

    @property
    def in_any_order(self) -> bool:
        """Whether what comes first is decided by what is live, and not by the record."""
        return self.gone or self.policy.models

    @property
    def compares(self) -> bool:
        """Whether what live calls give is compared with the record."""
        return not self.policy.is_fork

    # ---- a live call --------------------------------------------------------------------------------------------

    def _let(self, step: LiveStep, at: Standing) -> Course:
        """Let a call run."""
        recorded, expected = at.recorded, at.expected
        if expected is not None:
            step.recorded = expected
        if passes(step):
            if recorded is not None and expected is not None:
                recorded.used.add(expected.seq)
                self._ledger.enter("used", run=recorded.run.run_id, step=expected.seq, by="path")
            return Course()
        self._acting.allow(step, expected)
        seq, name = None if expected is None else expected.seq, f"{step.call.kind} {step.call.name}"
        changed = self._acting.change(step, partial(self._ledger.enter, "withdrawn", run=at.run_id, step=seq, name=name))
        if recorded is not None and expected is not None:
            recorded.used.add(expected.seq)
            covered = recorded.cover(expected)
            if covered and self.compares:
                self._ledger.enter("covered", run=recorded.run.run_id, steps=covered)
        self._enter(step, at.run_id, expected, changed=changed)
        self.drifted = self.drifted or (step.call.kind == _MODEL and not self.policy.models)
        step.let_run()
        return Course()

    def _inject(self, fault: Fault, step: LiveStep, expected: Step | None) -> Course:
        self._faulted[step.span_id] = fault
        self._enter(step, self._run, expected, injected=fault.kind)
        if fault.kind == "slow":
            return Course(delay=fault)
        return Course(answer=faults.injected(fault, step))

    def _is_changed_result(self, step: LiveStep, run_id: str | None, expected: Step | None) -> bool:
        changes, at = self.policy.changes, self.policy.at
        return RESULT in changes and expected is not None and run_id == self._run and expected.seq == at and step.call.kind != _MODEL

    def _enter(
        self,
        step: LiveStep,
        run_id: str | None,
        expected: Step | None,
        *,
        changed: dict[str, Any] | None = None,
        injected: str | None = None,
        given: Literal["set", "decided"] | None = None,
    ) -> None:
        seq = None if expected is None else expected.seq
        kept: dict[str, Any] = {}
        if seq is not None:
            kept[names.STEP_STANDS_FOR] = seq
        if changed:
            kept[names.STEP_CHANGED] = canonical_json(changed)
        if injected:
            kept[names.STEP_INJECTED] = injected
        target = self._target(step)
        if target is not None and step.call.kind != _MODEL and given is None:
            kept[names.STEP_TARGET] = target
        if kept:
            step.learn(kept)
        name = f"{step.call.kind} {step.call.name}"
        self._ledger.enter("live", run=run_id, step=seq, name=name, changed=sorted(changed or ()), injected=injected, given=given)

    def _target(self, step: LiveStep) -> str | None:
        """Where a live call acts; what is finished goes on where it was recorded, if that is one place."""
        if not self.policy.finish:
            return self.policy.target
        recorded = targets_of(self._runs, step.call.name)
        return next(iter(recorded)) if len(recorded) == 1 else None
