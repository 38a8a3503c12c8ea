"""Which job a future is for: the causal path of the task, or of the job of a pool, that it is done with."""

from collections.abc import Iterable
from itertools import count
from typing import Any, Final, TypeVar
from weakref import ReferenceType, ref

T = TypeVar("T")

JOB: Final = "job:"
"""Begins the name of the scope of a job of a pool of processes: what is below it in the causal path, any process may have done."""

_jobs: Final[dict[ReferenceType[Any], tuple[int, str]]] = {}
"""Futures to how many were named before, and the place of their job. A ``WeakKeyDictionary`` takes a call of Python for each that ends."""
_forget: Final[Any] = _jobs.pop
_number: Final = count().__next__


def named(future: T, path: str) -> T:
    """``future`` is for the job at this place; gives it back."""
    try:
        _jobs[ref(future, _forget)] = _number(), path
    except TypeError:  # a task factory of the program's may make anything
        return future
    return future


def path_of(future: object) -> str | None:
    """The place of its job; ``None`` where it is not known."""
    try:
        return _jobs[ref(future)][1]
    except (KeyError, TypeError):
        return None


def number_of(future: object) -> int | None:
    """Grows from job to job in the order in which they were started; ``None`` where it is not known."""
    try:
        return _jobs[ref(future)][0]
    except (KeyError, TypeError):
        return None


def in_order(futures: Iterable[Any]) -> list[Any] | None:
    """Each once, in an order that is the same in every execution; ``None`` where there is none that is.

    Args:
        futures: as the program gave them. A set is iterated by addresses in memory.
    """
    if not isinstance(futures, set | frozenset) or hasattr(futures, "in_order"):
        return list(dict.fromkeys(futures))
    if len(futures) < 2:
        return list(futures) if None not in map(path_of, futures) else None
    paths = {future: path_of(future) for future in futures}
    if None in paths.values():
        return None
    return sorted(futures, key=lambda future: _parts(paths[future] or ""))


def _parts(path: str) -> list[tuple[str, int]]:
    found = (part.rpartition("#") for part in path.split("/"))
    return [(label or number, int(number) if label and number.isdigit() else 0) for label, _, number in found]
