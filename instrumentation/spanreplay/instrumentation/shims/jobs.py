"""Which job a future is for: the causal path of the task, or of the job of a pool, that it is done with."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

_paths: Final[WeakKeyDictionary[Any, str]] = WeakKeyDictionary()


def named(future: T, path: str) -> T:
    """``future`` is for the job at this place; gives it back."""
    with suppress(TypeError):  # a task factory of the program's may make anything
        _paths[future] = path
    return future


def path_of(future: object) -> str | None:
    """The place of its job; ``None`` where it is not known."""
    try:
        return _paths.get(future)
    except TypeError:
        return None


def in_order(futures: Iterable[Any]) -> list[Any] | None:
    """Each once, in an order that is the same in every execution; ``None`` where there is none that is.

    Args:
        futures: as the program gave them. A set is iterated by addresses in memory.
    """
    if not isinstance(futures, set | frozenset) or hasattr(futures, "in_order"):
        return list(dict.fromkeys(futures))
    paths = {future: path_of(future) for future in futures}
    if None in paths.values():
        return None
    return sorted(futures, key=lambda future: _parts(paths[future] or ""))


def _parts(path: str) -> list[tuple[str, int]]:
    found = (part.rpartition("#") for part in path.split("/"))
    return [(label or number, int(number) if label and number.isdigit() else 0) for label, _, number in found]
