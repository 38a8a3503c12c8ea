"""What answers calls that are one more than recorded, where a replay goes on after a difference: else all that follows were off by one."""

from collections.abc import Collection
from itertools import takewhile

from spanreplay.replay.model import Step
from spanreplay.replay.reexecution.forks import scope_of
from spanreplay.replay.reexecution.index import RunIndex


class Repeats:
    """Finds it.

    Args:
        index: of the run.
        used: the steps that have answered; grows.
    """

    def __init__(self, index: RunIndex, used: Collection[int]) -> None:
        self._index = index
        self._used = used
        self._misled: set[int] = set()
        self._repeated: set[int] = set()

    def just_before(self, step: Step, asked: str | None) -> list[Step]:
        """The calls of the sort of ``step`` right before it in its place that have answered just this, the last one first."""
        alike = [s for s in self._index.alike_in(scope_of(step.path or ""), step.kind, step.name) if _start(s) < _start(step)]
        return list(takewhile(lambda s: s.seq in self._used and self._index.input_of(s) == asked, reversed(alike)))

    def one_more(self, path: str, number: int, asked: str | None) -> Step | None:
        """The step that has answered the call before this one, by its place, though it is this one that asks for it.

        A call that is one more than recorded takes the answer of the next one. That comes then, at the place behind its own, and all that
        follows would be off by one.

        Args:
            path: of the call in the record.
            number: of the call among those of its sort there.
            asked: its comparable input.
        """
        before = self._index.by_path.get(f"{path[: path.rindex('#')]}#{number - 1}")
        if before is None or before.seq not in self._misled or self._index.input_of(before) != asked:
            return None
        self._misled.discard(before.seq)
        return before

    def mislead(self, step: Step) -> None:
        """Note that a step answers at its place though the call asks something else."""
        self._misled.add(step.seq)

    def once_more(self, path: str, kind: str, name: str, asked: str | None) -> Step | None:
        """The step that answers a call a second time: the last there that was asked just this.

        None does so more than once: an agent that asks until the answer is another one ends.

        Args:
            path: of the call in the record.
            kind: kind of the call.
            name: name of the call.
            asked: its comparable input.
        """
        alike = reversed(list(self._index.alike_in(scope_of(path), kind, name)))
        found = next((s for s in alike if s.seq in self._used and s.seq not in self._repeated and self._index.input_of(s) == asked), None)
        if found is not None:
            self._repeated.add(found.seq)
        return found


def _start(step: Step) -> int:
    return step.seq_start or 0
