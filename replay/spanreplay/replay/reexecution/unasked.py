"""What the record has before a call, or inside of one, and was not asked for: a live program that has come past it is another one."""

from collections.abc import Callable, Collection, Iterator
from itertools import islice

from spanreplay.replay.model import Step
from spanreplay.replay.reexecution.forks import Forked, levels_of, over_at, scope_of
from spanreplay.replay.reexecution.index import RunIndex


class Unasked:
    """Looks for that.

    Args:
        index: of the run.
        free: tells whether a step has not been asked for yet.
        shuffled: the scopes in which which call comes first is chance; grows.
    """

    def __init__(self, index: RunIndex, free: Callable[[Step], bool], shuffled: Collection[str]) -> None:
        self._index = index
        self._free = free
        self._shuffled = shuffled
        self._first_free: dict[str, int] = {}
        self._first_fork: dict[str, int] = {}
        """Where in the order of a place's tasks and threads the first stands that may still be waited for."""

    def before(self, step: Step) -> Step | None:
        """Among the calls made one after the other from the same place: one that had ended when ``step`` began."""
        scope = scope_of(step.path or "")
        if step.seq_start is None or scope in self._shuffled:
            return None
        for earlier in self.in_scope(scope):
            if earlier.seq_start is None or earlier.seq_start >= step.seq_start:
                return None
            if over_before(earlier, step):
                return earlier
        return None

    def fork_before(self, step: Step, forked: Forked) -> Step | None:
        """The same of tasks and threads: one whose calls had all ended when that of ``step`` was started, and that was not started itself.

        A place starts its tasks in the order of its program, so another order is another program.
        """
        for parent, fork in levels_of(scope_of(step.path or "")) if self._index.forks else ():
            siblings = self._index.forks.get(parent)
            if siblings is None or fork not in siblings or siblings[fork].first is not step:
                continue
            order, at = self._index.fork_order[parent], self._first_fork.get(parent, 0)
            while at < len(order) and (not self._free(siblings[order[at]].first) or forked(parent, order[at])):
                at += 1
            self._first_fork[parent] = at
            if at < len(order) and order[at] != fork and over_at(siblings[order[at]].last, step.process, siblings[fork].born):
                return siblings[order[at]].first
        return None

    def in_forks_before(self, step: Step) -> tuple[Step, ...]:
        """The same of the tasks and threads that were started from that place: an input that misses their results differs."""
        scope = scope_of(step.path or "")
        below = self._below(f"{scope}/" if scope else "")
        found = (s for s in below if scope_of(s.path or "") != scope and over_before(s, step))
        return tuple(islice(found, 10))

    def inside(self, agent: Step) -> tuple[Step, ...]:
        """Steps inside a sub-agent that had ended when it did."""
        return tuple(s for s in self._below(f"{agent.path}/") if over_at(s, agent.process, _right_before(agent.seq_end)))

    def in_scope(self, scope: str) -> Iterator[Step]:
        """Those of a scope, in the order they began."""
        steps = self._index.in_scope(scope)
        first = self._first_free.get(scope, 0)
        while first < len(steps) and not self._free(steps[first]):
            first += 1
        self._first_free[scope] = first
        return filter(self._free, islice(steps, first, None))

    def _below(self, path: str) -> Iterator[Step]:
        return (s for s in self._index.steps if s.path is not None and s.path.startswith(path) and self._free(s))


def over_before(earlier: Step, step: Step) -> bool:
    """Had ``earlier``, which needed an answer, ended when ``step`` began?"""
    return over_at(earlier, step.process, _right_before(step.seq_start))


def _right_before(moment: int | None) -> int | None:
    return None if moment is None else moment - 1
