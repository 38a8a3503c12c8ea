"""Which recorded model calls were answered before a live call, in the task that makes it.

Calls of two agents at once may be equal. Which of them this one is, is told by what was asked for just before it in the same task, by the
id that the framework has of it, and by the agents around it: spans of others know no causal path, the live call does.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

from spanreplay.boundary.scope import Scope
from spanreplay.boundary.step import Step as LiveStep
from spanreplay.replay.model import Step

_ITSELF: Final = 0
_KEPT: Final = 16
"""Model calls of one place that are remembered."""

Owes: TypeAlias = Callable[[str, Step, Step], bool]
_Answered: TypeAlias = "deque[tuple[int, str, Step]]"
"""Each with its place in the session's order and the id of its run."""


@dataclass(frozen=True, slots=True)
class Company:
    """What a live call is near to."""

    models: tuple[tuple[str, Step], ...] = ()
    """The model calls before it, each with the id of its run: one where the task itself made it, several where tasks of its own did, or
    where it asked several before it made the calls that these asked for."""
    agents: tuple[str, ...] = ()
    """Names of the agents around it, the nearest first."""
    call_id: str | None = None
    """The model's id of it, where a framework knows that."""

    @property
    def runs(self) -> frozenset[str]:
        """Ids of the runs that answered before."""
        return frozenset(run_id for run_id, _ in self.models)

    def distance(self, run_id: str, step: Step) -> tuple[bool, bool, bool, int]:
        """How far a recorded step is from it; only to compare.

        Whether another model call asked for it, whether it has another id, whether it belongs elsewhere in the tree, and how far out the
        agent is that made it.
        """
        before = [model for of_run, model in self.models if of_run == run_id]
        return (
            step.requested_by not in {model.seq for model in before},
            step.call_id is None or step.call_id != self.call_id,
            (step.parent_seq, step.agent) not in {(model.parent_seq, model.agent) for model in before},
            self.agents.index(step.agent) if step.agent in self.agents else len(self.agents),
        )


class Before:
    """Keeps them. Not locked: the interceptor holds its own lock around every use."""

    def __init__(self) -> None:
        self._latest: WeakKeyDictionary[Scope, dict[int, _Answered]] = WeakKeyDictionary()
        """By place: the model calls that it made itself, or else those of each task that was started there since."""

    def answered(self, live: LiveStep, run_id: str, step: Step) -> None:
        """A model call was answered."""
        through = _ITSELF
        for scope in _around(live.scope):
            known = self._latest.setdefault(scope, {})
            made = known.setdefault(through, deque(maxlen=_KEPT))
            if through == _ITSELF:
                known.clear()
                known[_ITSELF] = made
            else:
                known.pop(_ITSELF, None)
            made.append((live.seq, run_id, step))
            through = id(scope)

    def of(self, live: LiveStep, owes: Owes) -> Company:
        """What a call is near to.

        Args:
            live: the call.
            owes: whether a call that a model call of a run asked for is still to come, as it was when a later model call began.
        """
        nearest = next((known for scope in _around(live.scope) if (known := tuple(self._seen(scope, live.scope, owes)))), ())
        return Company(models=nearest, agents=tuple(_agents(live)), call_id=_call_id(live))

    def _seen(self, scope: Scope, by: Scope, owes: Owes) -> Iterator[tuple[str, Step]]:
        """What was answered at a place, of that only what a task that was started from there can know: nothing since its start."""
        alone = by.born is None or scope.born == by.born
        for made in self._latest.get(scope, {}).values():
            known = [(run_id, step) for seq, run_id, step in made if alone or seq <= (by.born or 0)]
            yield from ((run_id, step) for run_id, step in known[:-1] if owes(run_id, step, known[-1][1]))
            yield from known[-1:]


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


def _call_id(live: LiveStep) -> str | None:
    """The id that a framework has of a tool call. A function alone, which has a signature, knows none: it has the first that fits."""
    known = live.call.call_id if live.call.signature is None else None
    around = live.parent
    while around is not None and around.call.kind == "tool_call" and around.call.tool_below:
        known = around.call.call_id
        around = around.parent
    return known
