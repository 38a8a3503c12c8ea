"""Calls in the midst of a run that a model asked for and that left no trace: not run, or run in a span that is lost.

Agents leave calls out: a hand-off takes the place of the others, a form holds the answer. So it is said, and is no gap; of the last answer
of a run it is one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from spanreplay.replay.model import Json, Run
from spanreplay.replay.reasons import CALL_NOT_RUN
from spanreplay.replay.rebuilding.completeness import Gap
from spanreplay.replay.rebuilding.origin import told_by_others
from spanreplay.replay.showing import short_id

_ADVICE: Final = "if it did run, record a span of every call of a tool, and export all of them"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnrunCall:
    """One of them."""

    run_id: str
    step: int
    """``seq`` of the model call that asked for it."""
    what: str
    advice: str = _ADVICE

    @property
    def detail(self) -> str:
        """For people."""
        return f"run {short_id(self.run_id)}, step {self.step} {self.what}"

    def to_json(self) -> dict[str, Json]:
        """As in ``spanreplay verify --json``."""
        return {"code": CALL_NOT_RUN, "detail": self.detail, "runs": [self.run_id], "step": self.step, "advice": self.advice}


def unrun_calls(runs: Sequence[Run], found: Mapping[str, Sequence[Gap]]) -> list[UnrunCall]:
    """Those of some runs, in order.

    Args:
        runs: with their steps.
        found: their gaps; what is one is not told again.
    """
    told: list[UnrunCall] = []
    for run in runs:
        gaps = {(gap.step, gap.detail) for gap in found.get(run.run_id, ())}
        others = told_by_others(run)
        for step in run.steps:
            if step.seq not in others:
                told += (
                    UnrunCall(run_id=run.run_id, step=step.seq, what=reason.detail)
                    for reason in step.reasons
                    if reason.code == CALL_NOT_RUN and (step.seq, reason.detail) not in gaps
                )
    return told
