"""Results that the user gives: that of the step of a fork, and those of calls that a crash interrupted."""

import json
from collections.abc import Sequence

from spanreplay.boundary.call import Answer
from spanreplay.boundary.step import Step as LiveStep
from spanreplay.content import codec
from spanreplay.instrumentation.tools import known
from spanreplay.replay.model import Run, Step
from spanreplay.replay.reexecution import closed
from spanreplay.replay.reexecution.chosen import chosen, unfit
from spanreplay.replay.reexecution.ledger import CHANGE, Ledger
from spanreplay.replay.reexecution.policy import Decision, Policy, PolicyError


def check_decisions(step: LiveStep, policy: Policy, runs: Sequence[Run], ledger: Ledger) -> None:
    """See, before the first live call, that what the decisions give is what the tools give that they are about.

    Raises:
        CallRefused: one does not.
    """
    for decision in policy.decisions:
        of = next((s for run in runs for s in run.steps if decision.is_on(run.run_id, s.seq, policy.run)), None)
        if of is None or decision.choice != "done":
            continue
        problems = list(unfit(json.loads(decision.result), known(of.name)))
        if problems and all(problems):
            raise closed.refused(step, str(problems[0]), ledger, action=CHANGE, expected=of) from problems[0]


def decision_on(run_id: str, step: LiveStep, expected: Step, policy: Policy, ledger: Ledger) -> Decision:
    """What is decided on a call that began, may have acted and never ended.

    Raises:
        CallRefused: nothing.
    """
    decision = next((d for d in policy.decisions if d.is_on(run_id, expected.seq, policy.run)), None)
    if decision is None:  # whoever resumes a run has asked for all of them before it began
        why = f"step {expected.seq} began, may have acted, and never ended; decide: --decide {expected.seq}=done:JSON, =again or =fail"
        raise closed.refused(step, why, ledger)
    return decision


def as_given(text: str, step: LiveStep, expected: Step | None, runs: Sequence[Run], ledger: Ledger) -> Answer:
    """A result that was given, of the type that the call's recorded results have.

    Args:
        text: JSON.
        step: the call.
        expected: the recorded step at its place.
        runs: those that answer.
        ledger: a refusal is entered there.

    Raises:
        CallRefused: the tool does not give such a value.
    """
    recorded = (s for s in (expected, *(s for run in runs for s in run.steps)) if s is not None)
    same = (s.typed_result for s in recorded if (s.kind, s.name) == (step.call.kind, step.call.name))
    like = next((text for text in same if text is not None), None)
    try:
        return chosen(text, step, like)
    except PolicyError as error:
        raise closed.refused(step, str(error), ledger, action=CHANGE, expected=expected) from error


def failed(step: LiveStep) -> Answer:
    """That a call has failed, as was decided."""
    error = RuntimeError(f"{step.call.name} was interrupted by a crash, and is taken to have failed")
    return Answer(outcome="error", error=codec.encode_exception(error).text)
