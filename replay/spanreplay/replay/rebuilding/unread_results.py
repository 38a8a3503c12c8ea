"""Runs that end with results of tools which no model was told: whether a model answered after them, the record cannot tell.

Some agents end so: a tool's result is their answer, or a limit stopped them. Others ask the model once more, and where the span of that
last call is lost, and nothing else of the run holds its answer, what is left looks the same. So it is said, and is no gap.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from spanreplay.replay.model import Json, Run, Step
from spanreplay.replay.reasons import ANSWER_WITHOUT_SPAN
from spanreplay.replay.rebuilding.completeness import Gap
from spanreplay.replay.rebuilding.lost_answers import is_told
from spanreplay.replay.rebuilding.lost_endings import ENDED, LEAST, RAN, made_of, outside_tools, texts
from spanreplay.replay.rebuilding.same_call import FAILED
from spanreplay.replay.rebuilding.unnamed_tools import is_named
from spanreplay.replay.showing import short_id

UNREAD_RESULTS: Final = "unread-results"
_ADVICE: Final = (
    "if the agent asked its model again after that, the span of the call is lost: export every span of a trace, and flush before the end"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadResults:
    """A run that ends with them."""

    run_id: str
    step: int
    """``seq`` of the last step."""
    advice: str = _ADVICE

    @property
    def detail(self) -> str:
        """For people."""
        return (
            f"run {short_id(self.run_id)} ends with what came of step {self.step}, which no model here was told; "
            "whether one answered after it, the record cannot tell"
        )

    def to_json(self) -> dict[str, Json]:
        """As in ``spanreplay verify --json``."""
        return {"code": UNREAD_RESULTS, "detail": self.detail, "runs": [self.run_id], "step": self.step, "advice": self.advice}


def unread_results(runs: Sequence[Run], found: Mapping[str, Sequence[Gap]]) -> list[UnreadResults]:
    """The runs that end so, in order. Of our own none, since their losses are counted.

    Args:
        runs: with their steps.
        found: their gaps; a lost answer that was found is not told again.
    """
    told: list[UnreadResults] = []
    for run in runs:
        if any(gap.code == ANSWER_WITHOUT_SPAN for gap in found.get(run.run_id, ())):
            continue
        last = _last(run)
        if last is not None:
            told.append(UnreadResults(run_id=run.run_id, step=last.seq))
    return told


def _last(run: Run) -> Step | None:
    if run.outcome != "ok" or any(step.path is not None for step in run.steps):
        return None
    own = list(outside_tools(None, run.steps))
    model = max((step for step in own if step.kind == "model_call"), key=lambda step: step.seq, default=None)
    if model is None or model.outcome in FAILED or not is_told(model):
        return None
    after = [step for step in own if step.seq > model.seq]
    if not after or any(step.kind not in RAN or step.outcome not in ENDED for step in after):
        return None
    if not all(step.requested_by == model.seq or is_named(step.name, model.output) for step in after):
        return None
    here = [text for step in run.steps for view in (step.input, step.output) for text in texts(view)]
    given = [text for text in texts(run.output) if len(text) >= LEAST]
    return None if run.output is not None and all(made_of(text, here) for text in given) else after[-1]
