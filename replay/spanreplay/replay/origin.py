"""Who recorded a run: spanreplay, or another instrumentation."""

from typing import Final

from spanreplay.boundary.call import Kind
from spanreplay.replay.model import Run, Step

_ASKED_FOR: Final[frozenset[Kind]] = frozenset({"model_call", "tool_call"})


def is_foreign(run: Run) -> bool:
    """Was a run recorded by others? Neither it nor its steps have a causal path then, and they are found by their meaning."""
    return not run.is_command and run.path is None and all(step.path is None for step in run.steps)


def judged(run: Run) -> list[Step]:
    """The steps of a run that a re-execution must ask for: of one that others recorded, those of the kinds that pass a seam here."""
    return [step for step in run.steps if step.kind in _ASKED_FOR] if is_foreign(run) else list(run.steps)
