"""Who recorded a run, and each of its steps: spanreplay, or another instrumentation."""

from collections.abc import Iterable
from typing import Final, Protocol

from spanreplay.boundary.call import Kind
from spanreplay.replay.model import Run, Step

OWN: Final = "spanreplay"
"""The dialect whose steps hold the exact exchange."""
_ASKED_FOR: Final[frozenset[Kind]] = frozenset({"model_call", "tool_call"})


class Recorded(Protocol):
    """What tells who recorded a step."""

    @property
    def seq(self) -> int:
        """Place in the run's total order."""
        ...

    @property
    def dialect(self) -> str:
        """In which it was written."""
        ...

    @property
    def path(self) -> str | None:
        """Causal path of the call; ``None`` where spanreplay did not record it."""
        ...


def is_foreign(run: Run) -> bool:
    """Was a run recorded by others? Neither it nor its steps have a causal path then, and they are found by their meaning."""
    return not run.is_command and run.path is None and all(step.path is None for step in run.steps)


def told_in(steps: Iterable[Recorded]) -> frozenset[int]:
    """``seq`` of the steps of a run of our own that only another instrumentation told of: no call passed a seam here, and none will."""
    return frozenset(step.seq for step in steps if step.path is None and step.dialect != OWN)


def told_by_others(run: Run) -> frozenset[int]:
    """The same of a run; none of one that others recorded, as that has nothing else."""
    return frozenset() if is_foreign(run) else told_in(run.steps)


def judged(run: Run) -> list[Step]:
    """The steps of a run that a re-execution must ask for: of one that others recorded, those of the kinds that pass a seam here."""
    if is_foreign(run):
        return [step for step in run.steps if step.kind in _ASKED_FOR]
    told = told_by_others(run)
    return [step for step in run.steps if step.seq not in told]
