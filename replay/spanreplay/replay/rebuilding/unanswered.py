"""Model calls of which nothing tells how they ended, as the failure of the agent around them tells it.

The span of a stream that fails before it says anything ends without an error in some instrumentations, and the error is on the agent's.
"""

from collections.abc import Sequence
from dataclasses import replace

from spanreplay.replay.model import Reason
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reasons import ERROR_OF_AGENT, INPUT_ABSENT, OUTPUT_ABSENT
from spanreplay.replay.rebuilding.assembly import Assembly
from spanreplay.replay.rebuilding.placed import Placed
from spanreplay.replay.rebuilding.same_call import FAILED


def failed_with_agent(assembly: Assembly, steps: Sequence[Placed]) -> list[Placed]:
    """The steps of a run; a model call without answer or end of its own has those of the agent in which it came last, if that failed.

    Args:
        assembly: the run.
        steps: in order.
    """
    last = {step.parent_seq: step for step in steps}
    made = {step.seq: step for step in steps}
    for outer, step in last.items():
        draft = step.draft
        if draft.kind != "model_call" or draft.outcome != "unknown" or step.ended_ns is None:
            continue
        around = made[outer].draft if outer is not None else assembly.root_step
        if around is not None and around.kind == "agent" and around.outcome in FAILED and around.error is not None:
            made[step.seq] = replace(step, draft=_failed(draft, around))
    return list(made.values())


def _failed(draft: StepDraft, around: StepDraft) -> StepDraft:
    reasons = tuple(reason for reason in draft.reasons if reason.code != OUTPUT_ABSENT)  # a call that failed has none
    whole = draft.grade == "structure" and not any(reason.code == INPUT_ABSENT for reason in reasons)
    told = Reason(
        code=ERROR_OF_AGENT, detail="its span tells neither an answer nor an error; the error is that of the agent, which it ended"
    )
    return replace(
        draft,
        outcome=around.outcome,
        error=around.error,
        grade="semantic" if whole else draft.grade,
        reasons=(*reasons, told),
    )
