"""Which recorded model calls were answered before a live call, in the task that makes it.

Calls of two agents at once may be equal. Which of them this one is, is told by what was asked for just before it in the same task: spans of
others know no causal path, the live call does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from spanreplay.boundary.scope import Scope
from spanreplay.boundary.step import Step as LiveStep
from spanreplay.replay.model import Step

_ITSELF: Final = 0


@dataclass(frozen=True, slots=True)
class Company:
    """What a live call is near to."""

    models: tuple[tuple[str, Step], ...] = ()
    """The model calls before it, each with the id of its run: one where the task itself made it, several where tasks of its own did."""
    agents: tuple[str, ...] = ()
    """Names of the agents around it."""

    @property
    def runs(self) -> frozenset[str]:
        """Ids of the runs that answered before."""
        return frozenset(run_id for run_id, _ in self.models)

    def distance(self, run_id: str, step: Step) -> tuple[bool, bool, bool]:
        """How far a recorded step is from it; only to compare.

        Whether another model call asked for it, whether it belongs elsewhere in the tree, whether it is another agent's.
        """
        before = [model for of_run, model in self.models if of_run == run_id]
        return (
            step.requested_by not in {model.seq for model in before},
            (step.parent_seq, step.agent) not in {(model.parent_seq, model.agent) for model in before},
            step.agent not in self.agents,
        )


class Before:
    """Keeps them. Not locked: the interceptor holds its own lock around every use."""

    def __init__(self) -> None:
        self._latest: WeakKeyDictionary[Scope, dict[int, tuple[int, str, Step]]] = WeakKeyDictionary()
        """By place: the last model call that it made itself, or else the last one of each task that was started there since; each with
        its place in the session's order."""

    def answered(self, live: LiveStep, run_id: str, step: Step) -> None:
        """A model call was answered."""
        through = _ITSELF
        for scope in _around(live.scope):
            known = self._latest.setdefault(scope, {})
            if through == _ITSELF:
                known.clear()
            else:
                known.pop(_ITSELF, None)
            known[through] = (live.seq, run_id, step)
            through = id(scope)

    def of(self, live: LiveStep) -> Company:
        """What a call is near to."""
        nearest = next((known for scope in _around(live.scope) if (known := self._seen(scope, live.scope))), ())
        return Company(models=nearest, agents=tuple(_agents(live)))

    def _seen(self, scope: Scope, by: Scope) -> tuple[tuple[str, Step], ...]:
        """What was answered at a place, of that only what a task that was started from there can know: nothing since its start."""
        known = self._latest.get(scope, {}).values()
        alone = by.born is None or scope.born == by.born
        return tuple((run_id, step) for seq, run_id, step in known if alone or seq <= (by.born or 0))


def _around(scope: Scope | None) -> Iterator[Scope]:
    while scope is not None:
        yield scope
        scope = scope.parent


def _agents(live: LiveStep) -> Iterator[str]:
    around = live.parent
    while around is not None:
        if around.call.kind == "agent":
            yield around.call.name
        around = around.parent
