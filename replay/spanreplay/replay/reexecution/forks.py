"""Tasks and threads in a recorded run: which calls were theirs, and what their order says.

A place starts its tasks in the order of its program. A call that had ended when another task was started came before that task's calls,
however they are scheduled.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from spanreplay.replay.model import Step

Forked: TypeAlias = Callable[[str, str], bool]
"""Tells whether the place of the first path has started the task or thread of the second."""

NOT_AWAITED: Final = frozenset({"cancelled", "unknown"})
"""Outcomes of calls that the agent need not have waited for."""
NOBODY: Final = ""
"""Stands for a process that has made nothing itself: only the jobs of pools answer it."""
_JOB: Final = "~job:"
FORK: Final = "~"
"""Begins the path segment of a task or thread, and is in no other; see :mod:`spanreplay.boundary.scope`."""
_NAMED: Final = "@"
"""Begins the path segment of a scope that the user named."""


def is_job(path: str | None) -> bool:
    """Whether a call was made in a job of a pool of processes, which any of them may have done."""
    return path is not None and _JOB in path


def scope_of(path: str) -> str:
    """The scope part of a causal path."""
    return path.rpartition("/")[0]


def owner_of(scope: str) -> str:
    """The step whose body a scope is, or whose tasks and threads it is one of."""
    segments = scope.split("/")
    while segments and segments[-1].startswith((FORK, _NAMED)):
        segments.pop()
    return "/".join(segments)


@dataclass(slots=True, kw_only=True)
class Fork:
    """The calls of one recorded task or thread: the first to begin and the last to end; and where in the order it was started itself."""

    first: Step
    last: Step
    born: int | None = None


def levels_of(scope: str) -> Iterator[tuple[str, str]]:
    """Each task or thread that a scope is inside of, from the outermost: the path of the place that started it, and its own."""
    at = 0
    while at <= len(scope):
        end = scope.find("/", at)
        end = len(scope) if end < 0 else end
        if scope.startswith(FORK, at):
            yield scope[: max(0, at - 1)], scope[:end]
        at = end + 1


def over_at(step: Step, process: str | None, moment: int | None) -> bool:
    """Had ``step``, which needed an answer, ended at that moment of a process?"""
    return (
        moment is not None
        and step.seq_end is not None
        and step.process == process
        and step.seq_end <= moment
        and step.outcome not in NOT_AWAITED
    )


def comes_later(step: Step, at_path: Step, forked: Forked) -> bool:
    """Was ``step`` made by a task or thread that was started after ``at_path`` had ended, and that the replay has not started yet?

    Then the call made now, at the place of ``at_path``, is not the one of ``step``.
    """
    here = f"{scope_of(at_path.path or '')}/"
    apart = next(((parent, fork) for parent, fork in levels_of(scope_of(step.path or "")) if not here.startswith(f"{fork}/")), None)
    return apart is not None and over_at(at_path, step.process, step.seq_fork) and not forked(*apart)


def has_siblings(scope: str, forked: Forked) -> bool:
    """Whether the replay has started another task or thread that runs the same as the innermost one of a scope, from the same place."""
    levels = list(levels_of(scope))
    if not levels:
        return False
    parent, path = levels[-1]
    label, _, number = path.rpartition("#")
    return number.isdigit() and (number != "0" or forked(parent, f"{label}#1"))


def forks_in(steps: Iterable[Step]) -> dict[str, dict[str, Fork]]:
    """Path of a place to the tasks and threads started there, by their paths. Steps of unknown place or end are left out."""
    found: dict[str, dict[str, Fork]] = defaultdict(dict)
    unfinished: set[str] = set()
    for step in steps:
        levels = list(levels_of(scope_of(step.path or "")))
        innermost = levels[-1][1] if levels else ""
        for parent, path in levels:
            if step.seq_start is None or step.seq_end is None:
                unfinished.add(path)
                continue
            known = found[parent].setdefault(path, Fork(first=step, last=step))
            if step.seq_start < (known.first.seq_start or 0):
                known.first = step
            if step.seq_end > (known.last.seq_end or 0):
                known.last = step
            if path == innermost:
                known.born = step.seq_fork
    for siblings in found.values():
        for path in unfinished & siblings.keys():
            del siblings[path]
    return found
