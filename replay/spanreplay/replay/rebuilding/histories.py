"""Which model calls of a run are one conversation with a model: those of one agent at a time, never of two together."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from spanreplay.replay.model import Reason, Step
from spanreplay.replay.reasons import AGENTS_MIXED
from spanreplay.replay.rebuilding.placed import Placed


class History(NamedTuple):
    """Where a message history belongs. Two steps with different ones are never parts of one history."""

    parent_seq: int | None
    """The agent, or other step, inside which the calls were made; ``None``, the run."""
    agent: str | None
    conversation_id: str | None


def histories(steps: Iterable[Step]) -> dict[History, list[Step]]:
    """The model calls of a run by the history that each belongs to, in order of first appearance, each in order.

    A step that names no agent is the run's or that of the agent around it. Calls of several agents that name neither themselves nor a
    conversation, and are in one place, cannot be told apart: see :func:`mixed`.
    """
    found: dict[History, list[Step]] = {}
    for step in steps:
        if step.kind == "model_call":
            found.setdefault(History(step.parent_seq, step.agent, step.conversation_id), []).append(step)
    return found


def mixed(steps: Sequence[Step], placed: Iterable[Placed]) -> Iterator[Reason]:
    """A reason for each history in which model calls ran at the same time: one agent waits for its model, so these may be of several.

    Args:
        steps: of one run, in order.
        placed: the same; whether a step itself names its agent or its conversation.
    """
    known = {
        step.seq for step in placed if step.draft.path is not None or step.draft.agent is not None or step.draft.session_id is not None
    }
    for history, calls in histories(steps).items():
        members = {step.seq for step in calls}
        beside = [step.seq for step in calls if not members.isdisjoint(step.overlaps)]
        if beside and not known.issuperset(beside):
            who = f"the agent {history.agent}" if history.agent is not None else "no agent that is named"
            shown = ", ".join(map(str, beside[:8])) + (f" and {len(beside) - 8} more" if len(beside) > 8 else "")
            detail = f"model calls ran at the same time under {who} (steps {shown}); if they are of several agents, nothing says so"
            yield Reason(code=AGENTS_MIXED, detail=detail)
