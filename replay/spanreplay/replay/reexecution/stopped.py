"""Calls at which an earlier re-execution was stopped: what is kept of a fork ends there, and so does a replay of it."""

from typing import Final

from spanreplay.replay.model import Step

_STOPS: Final = frozenset({"interrupted", "rejected"})

WHY: Final = "the recorded run was stopped at this call: it was refused, or had no answer; nothing is known of what would follow"


def never_came(step: Step) -> bool:
    """Whether a call was open, and nothing of its answer had come, when its process ended by itself: whether it begins at all is chance."""
    given = (step.typed_result, step.typed_items, step.typed_error)
    nothing = all(value is None for value in given) and step.wire is not None and step.wire.status is None
    return step.outcome == "abandoned" and step.dialect == "spanreplay" and nothing


def was_stopped(step: Step) -> bool:
    """Whether a call was stopped by spanreplay, and so gave nothing: neither a result, nor an exception that an agent could see."""
    given = (step.typed_result, step.typed_items, step.typed_error, step.wire)
    return step.outcome in _STOPS and step.dialect == "spanreplay" and all(value is None for value in given)
