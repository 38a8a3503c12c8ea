"""Tasks and threads that all make the same calls, as those of a ``gather`` over equal work do.

Workers that take from a queue have each other's calls where one is faster, and what they ask tells which. Where all that run the same
have made the very same calls in the same order, each has his own: one that makes a call more has no other's.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from spanreplay.replay.model import Step
from spanreplay.replay.reexecution.forks import levels_of


def gathered(scopes: Mapping[str, Sequence[Step]], input_of: Callable[[Step], str | None]) -> frozenset[str]:
    """The scopes of tasks and threads that have made the same calls as all others that run the same from the same place.

    Only where these calls differ among each other: of one call made again and again nothing tells how often each has to make it.

    Args:
        scopes: the recorded steps by scope, in the order they began.
        input_of: the comparable input of a step.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for scope in scopes:
        levels = list(levels_of(scope))
        if levels and levels[-1][1] == scope:
            groups[scope.rpartition("#")[0]].append(scope)
    return frozenset(scope for group in groups.values() if _are_equal([scopes[s] for s in group], input_of) for scope in group)


def _are_equal(made: Sequence[Sequence[Step]], input_of: Callable[[Step], str | None]) -> bool:
    if len(made) < 2 or len({len(steps) for steps in made}) > 1:
        return False
    first = _calls(made[0], input_of)
    return len(set(first)) > 1 and all(_calls(steps, input_of) == first for steps in made[1:])


def _calls(steps: Iterable[Step], input_of: Callable[[Step], str | None]) -> list[tuple[str, str, str | None]]:
    return [(step.kind, step.name, input_of(step)) for step in steps]
