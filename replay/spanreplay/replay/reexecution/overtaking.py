"""Workers that take from a queue: one may come to its second item before another has come to the first.

Where several tasks or threads make calls of one sort, a call that the record has later in the same one is no other order
yet. It is answered, and the calls that it overtook are remembered: another worker may come to them, and the same one only
in another order.
"""

from spanreplay.replay.model import Step
from spanreplay.replay.reexecution.forks import scope_of


class Overtaking:
    """Which calls were answered before others that the record has before them, in the same task or thread."""

    def __init__(self) -> None:
        self._furthest: dict[str, Step] = {}

    def __bool__(self) -> bool:
        return bool(self._furthest)

    def add(self, step: Step) -> None:
        """``step`` was answered, and what comes before it in its scope was not asked for."""
        known = self.furthest(step)
        if known is None or _start(known) < _start(step):
            self._furthest[scope_of(step.path or "")] = step

    def furthest(self, step: Step) -> Step | None:
        """The last step of the scope of ``step`` that has overtaken others."""
        return self._furthest.get(scope_of(step.path or ""))

    def passed(self, step: Step) -> bool:
        """Whether a step that has not answered was overtaken."""
        furthest = self.furthest(step)
        return furthest is not None and _start(step) < _start(furthest)


def _start(step: Step) -> int:
    return step.seq_start or 0
