"""Where a re-execution leaves the record: which steps are before that, and what of the runs is judged."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from spanreplay.replay.model import Run, Step
from spanreplay.replay.reexecution import contradictions
from spanreplay.replay.reexecution.ledger import Totals
from spanreplay.replay.reexecution.policy import RESULT, Policy, PolicyError
from spanreplay.replay.showing import short_id

PASSED: Final = frozenset({"agent", "handoff"})
"""Kinds whose body runs in a replay: their inner calls are stubbed."""
_NO_TOOLS: Final = frozenset({*PASSED, "model_call"})
_HARMLESS: Final = frozenset({*PASSED, "model_call", "decision"})
"""Kinds of which a second one does no harm."""


def is_passed(step: Step) -> bool:
    """Whether the step's body runs in a replay."""
    return step.passed or step.kind in PASSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The place in the record up to which it answers."""

    run_id: str
    step: int
    moment_ns: int
    """When that step began: what other runs began earlier is before it."""
    unfinished: bool = False
    """Every step that had ended is before it, whatever its place."""

    def before(self, run_id: str, step: Step) -> bool:
        """Whether a recorded step is before the cut."""
        if self.unfinished:
            return has_ended(step)
        return step.seq < self.step if run_id == self.run_id else step.started_ns < self.moment_ns


def has_ended(step: Step) -> bool:
    """Whether how it ended is known, so that its record can answer."""
    return step.outcome != "unknown"


def cut_of(runs: Sequence[Run], policy: Policy) -> Cut | None:
    """The place where a policy leaves the record; ``None`` where it does not, or where only the replay tells.

    Args:
        runs: those that answer.
        policy: what is live.

    Raises:
        PolicyError: it contradicts itself, the run has no such step, or it happened inside one that is answered whole.
    """
    contradictions.check(policy, runs)
    if policy.finish:
        _check_decisions(runs, policy)
        return Cut(run_id=policy.run or "", step=0, moment_ns=0, unfinished=True)
    numbers = {policy.at, policy.only, *(fault.step for fault in policy.faults)} - {None}
    run = run_of(runs, policy) if numbers or policy.run is not None else None
    for number in numbers:
        _check(run, number or 0, may_be_next=number == policy.at)
    _check_changes(run, policy)
    if run is None or policy.at is None:
        return None
    if early := next((fault for fault in policy.faults if fault.step < policy.at), None):
        raise PolicyError(f"the fault {early.kind}@{early.step} is before step {policy.at}, from where on it is live; fork at {early.step}")
    return cut_at(run, policy.at)


def cut_at(run: Run, number: int) -> Cut:
    """The place before one step of a run, or behind its last."""
    step = next((s for s in run.steps if s.seq == number), None)
    moment = step.started_ns if step is not None else max((s.ended_ns or s.started_ns for s in run.steps), default=run.started_ns)
    return Cut(run_id=run.run_id, step=number, moment_ns=moment)


def run_of(runs: Sequence[Run], policy: Policy) -> Run:
    """The run whose steps are named by their number.

    Raises:
        PolicyError: it is not there, or several have steps and none is named.
    """
    if policy.run is not None:
        found = next((r for r in runs if r.run_id == policy.run), None)
        if found is None:
            raise PolicyError(f"there is no run {policy.run}")
        return found
    with_steps = [r for r in runs if r.steps] or list(runs)
    if len(with_steps) != 1:
        named = ", ".join(short_id(r.run_id) for r in with_steps[:6])
        raise PolicyError(f"{len(with_steps)} runs have steps ({named}), and a step has its number in one of them; name that run")
    return with_steps[0]


def _check(run: Run | None, number: int, *, may_be_next: bool) -> None:
    if run is None:
        return
    by_seq = {s.seq: s for s in run.steps}
    last = max(by_seq, default=0)
    step = by_seq.get(number)
    if step is None:
        if may_be_next and number == last + 1:
            return
        raise PolicyError(f"run {short_id(run.run_id)} has steps 1 to {last}; there is no step {number}")
    around = step.parent_seq
    while around is not None and around in by_seq:
        outer = by_seq[around]
        if not is_passed(outer):
            inside = f"step {outer.seq}, {outer.kind} {outer.name}"
            raise PolicyError(f"step {number} happened inside {inside}, which is answered as a whole; name step {outer.seq}")
        around = outer.parent_seq


def _check_changes(run: Run | None, policy: Policy) -> None:
    """Refuse changes that would change nothing."""
    kinds = {} if run is None else {step.seq: step.kind for step in run.steps}
    if RESULT in policy.changes:
        if policy.at is None:
            raise PolicyError("result is what the tool at the step of a fork gives; name that step: fork --at N")
        if kinds.get(policy.at, "model_call") in _NO_TOOLS:
            raise PolicyError(f"result is what a tool gives, and step {policy.at} is a {kinds.get(policy.at, 'new')} step")
        step = next((s for s in run.steps if s.seq == policy.at), None) if run is not None else None
        if step is not None and step.typed_items is not None and not isinstance(policy.changes[RESULT], list):
            raise PolicyError(f"{step.name} is a generator: its result is given as the list of what it yields: --set result='[…]'")
    others = ", ".join(key for key in policy.changes if key != RESULT)
    model = policy.is_fork or policy.models or kinds.get(policy.only or 0) == "model_call"
    if others and not model:
        raise PolicyError(f"{others} is of a model call, and none is live: --live models, or --only with the number of one")


# ---- unfinished runs -----------------------------------------------------------------------------------------------


def _check_decisions(runs: Sequence[Run], policy: Policy) -> None:
    """Refuse decisions on calls that nobody has to decide on: they would do nothing."""
    open_ = [(run.run_id, s) for run in runs for s in run.steps if may_have_acted(run, s)]
    several = len({run_id for run_id, _ in open_}) > 1
    for decision in policy.decisions:
        meant = [run_id for run_id, s in open_ if decision.is_on(run_id, s.seq, policy.run)]
        if not meant:
            named = ", ".join(f"step {f'{short_id(run)}:' if several else ''}{s.seq} ({s.kind} {s.name})" for run, s in open_) or "none"
            raise PolicyError(f"step {decision.place} is no call that began, may have acted and never ended; to be decided: {named}")
        if len(meant) > 1:
            named = ", ".join(f"{short_id(run_id)}:{decision.step}" for run_id in meant)
            raise PolicyError(f"step {decision.place} may be one of {named}; name the run")


def undecided(runs: Sequence[Run], policy: Policy) -> list[Step]:
    """The calls that began, may have acted and never ended, and for which there is no decision, in order."""
    return [
        s
        for run in runs
        for s in run.steps
        if may_have_acted(run, s) and not any(decision.is_on(run.run_id, s.seq, policy.run) for decision in policy.decisions)
    ]


def may_have_acted(run: Run, step: Step) -> bool:
    """Whether it is not known if a call that began has acted. What ran inside such a call is a part of it."""
    if has_ended(step) or is_harmless(step):
        return False
    by_seq = {s.seq: s for s in run.steps}
    around = by_seq.get(step.parent_seq or 0)
    return around is None or is_passed(around)


def is_harmless(step: Step) -> bool:
    """Whether a second such call does no harm."""
    return is_passed(step) or step.kind in _HARMLESS or step.effect == "read"


# ---- what is judged -------------------------------------------------------------------------------------------------


def judged(runs: Sequence[Run], policy: Policy, totals: Totals) -> list[Run]:
    """The runs as far as a re-execution has to come to them.

    Args:
        runs: those that it would have to come to if nothing were live.
        policy: what is live.
        totals: what it did.
    """
    if not policy.is_kept:
        return list(runs)
    came = {r.run_id: {*totals.used.get(r.run_id, ()), *totals.covered.get(r.run_id, ())} for r in runs}
    for call in totals.live:
        if call["run"] is not None and call["step"] is not None:
            came.setdefault(call["run"], set()).add(call["step"])
    if policy.models or policy.finish:
        return [_only(run, came.get(run.run_id, ())) for run in runs if policy.models or run.run_id in totals.runs_matched]
    cut = cut_of(runs, policy)
    if policy.leave and totals.left:
        left = totals.left[0]
        run = next((r for r in runs if r.run_id == left["run"]), None)
        if run is None or left["step"] is None:
            return [_only(run, came.get(run.run_id, ())) for run in runs]
        cut = cut_at(run, left["step"])
    if cut is None:
        return list(runs)
    found = []
    for run in runs:
        steps = tuple(s for s in run.steps if cut.before(run.run_id, s) or (run.run_id == cut.run_id and s.seq == cut.step))
        if steps or run.started_ns < cut.moment_ns or run.run_id == cut.run_id:
            found.append(replace(run, steps=steps))
    return found


def _only(run: Run, steps: Collection[int]) -> Run:
    return replace(run, steps=tuple(s for s in run.steps if s.seq in steps))
