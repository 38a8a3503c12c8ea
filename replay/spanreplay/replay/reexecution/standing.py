"""Where a live call stands in its program: what a recorded run needs to know of it to find its step."""

from spanreplay.boundary.scope import Scope
from spanreplay.boundary.step import Step as LiveStep
from spanreplay.replay.model import Step
from spanreplay.replay.reexecution.cut import PASSED
from spanreplay.replay.reexecution.forks import Forked


def forked_by(step: LiveStep) -> Forked:
    """Which tasks and threads the places around a live call have started."""

    def forked(parent: str, path: str) -> bool:
        scope: Scope | None = step.scope
        while scope is not None and (scope.path != parent or scope.run is not step.scope.run):
            scope = scope.parent
        if scope is None:
            return True  # not known: nothing is concluded from it
        label, _, number = path[len(parent) :].lstrip("/").rpartition("#")
        return not number.isdigit() or scope.has_forked(label, int(number))

    return forked


def sub_agent_of(step: LiveStep) -> tuple[str, Step] | None:
    """Path of the sub-agent that a call is made in, and the recorded step it was matched with."""
    parent = step.parent
    return None if parent is None or not isinstance(parent.recorded, Step) else (parent.path, parent.recorded)


def placed(path: str, inside: tuple[str, Step] | None) -> str:
    """The path in the record of a call that is made inside a sub-agent, see :func:`sub_agent_of`."""
    if inside is not None and inside[1].path is not None and path.startswith(f"{inside[0]}/"):
        return inside[1].path + path[len(inside[0]) :]
    return path


def passes(step: LiveStep) -> bool:
    """Whether its body runs in a replay, as its inner calls are answered."""
    return step.call.passed or step.call.kind in PASSED


def duration_ns(step: Step) -> int:
    """How long a recorded step took; 0 where that is not known."""
    return 0 if step.ended_ns is None else max(0, step.ended_ns - step.started_ns)
