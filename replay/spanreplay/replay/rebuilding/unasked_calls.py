"""Calls of tools that no answer here asked for, while the answers of the run ask for all others.

The program may have called the tool itself, or the call of the model that asked for it is lost: where the requests after it were not
recorded, nothing else tells. So it is said, and is no gap.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from spanreplay.replay.model import Json, Run, Step
from spanreplay.replay.reasons import ANSWER_WITHOUT_SPAN
from spanreplay.replay.rebuilding.completeness import Gap
from spanreplay.replay.rebuilding.lost_answers import is_told
from spanreplay.replay.rebuilding.lost_endings import outside_tools
from spanreplay.replay.rebuilding.unnamed_tools import is_named
from spanreplay.replay.showing import short_id

UNASKED_CALL: Final = "unasked-call"
_ADVICE: Final = "if the program did not call the tool itself, the span of the model's call is lost: export every span of a trace"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaskedCall:
    """A call that a tool ran for nobody here."""

    run_id: str
    step: int
    """``seq`` of the tool call."""
    name: str
    advice: str = _ADVICE

    @property
    def detail(self) -> str:
        """For people."""
        return (
            f"run {short_id(self.run_id)} has a call of {self.name} (step {self.step}) that no answer of a model here asked for, while all "
            "others were asked for; whether one did that is not here, the record cannot tell"
        )

    def to_json(self) -> dict[str, Json]:
        """As in ``spanreplay verify --json``."""
        return {"code": UNASKED_CALL, "detail": self.detail, "runs": [self.run_id], "step": self.step, "advice": self.advice}


def unasked_calls(runs: Sequence[Run], found: Mapping[str, Sequence[Gap]]) -> list[UnaskedCall]:
    """The first such call of each run, in order. Of our own runs none, since their losses are counted.

    Args:
        runs: with their steps.
        found: their gaps; a lost answer that was found is not told again.
    """
    told: list[UnaskedCall] = []
    for run in runs:
        if any(gap.code == ANSWER_WITHOUT_SPAN for gap in found.get(run.run_id, ())):
            continue
        step = _first(run)
        if step is not None:
            told.append(UnaskedCall(run_id=run.run_id, step=step.seq, name=step.name))
    return told


def _first(run: Run) -> Step | None:
    if any(step.path is not None for step in run.steps):
        return None
    own = list(outside_tools(None, run.steps))
    models = [step for step in own if step.kind == "model_call"]
    ran = [step for step in own if step.kind == "tool_call"]
    if not models or not all(map(is_told, models)):
        return None
    unasked = [step for step in ran if step.requested_by is None]
    # Everything about the one call that is out of order has to be as in the others: an agent's loop, and nobody calls beside it.
    if len(ran) - len(unasked) < len(unasked) or not unasked or unasked[0].seq < models[0].seq:
        return None
    around = {step.parent_seq for step in models}
    if any(step.parent_seq not in around or any(is_named(step.name, model.output) for model in models) for step in unasked):
        return None
    return unasked[0]
