"""Lists in JSON texts that grow: with every request a model is sent all that was said before, and what was read before is not read again.

The elements that two readings have in common are the same objects. Nobody changes what was read.
"""

import json
import re
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

_SHORTEST: Final = 4_096
"""Characters below which nothing is gained."""
_LIKE: Final = 64
"""Texts that begin with the same characters may be of the same conversation."""
_ALIKE: Final = 4
_HELD: Final = 4_000_000
"""Characters of earlier texts that are remembered, about."""
_scan: Final[Callable[[str, int], tuple[Any, int]]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # it is there
_space: Final = re.compile(r"[ \t\n\r]*").match
_Known = tuple[str, list[Any]]
"""A text up to the end of its last element, and the elements."""
_FEW: Final = 4
"""Elements of a list that is not worth remembering."""


class PerElement(Generic[T]):
    """What is made of each element of lists that grow. Of elements that a list before began with, the same objects, it is made once.

    For any number of threads: at worst something is made twice.

    Args:
        make: gives it for one element; depends on nothing else.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._known: tuple[tuple[list[Any], list[T]], ...] = ()
        """The one met last comes first."""

    def of(self, elements: Sequence[Any]) -> list[T]:
        """What is made of each, in order."""
        if len(elements) < _FEW:
            return list(map(self._make, elements))
        before = self._known
        known = next((known for known in before if _begins(elements, known[0])), None)
        made = known[1].copy() if known is not None else []
        made += map(self._make, elements[len(made) :])
        self._known = ((list(elements), made), *[other for other in before if other is not known][: _ALIKE - 1])
        return made.copy()


def _begins(elements: Sequence[Any], known: list[Any]) -> bool:
    size = len(known)
    return size <= len(elements) and elements[0] is known[0] and elements[size - 1] is known[-1] and all(map(is_, known, elements))


class GrowingLists:
    """Reads texts, and remembers the latest of them. For any number of threads: at worst they read a text twice."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Known, ...]] = {}
        self._held = 0

    def read(self, text: str) -> Any:
        """What ``json.loads`` gives.

        Raises:
            Exception: what it raises, too.
        """
        if len(text) < _SHORTEST or text[0] != "[":
            return json.loads(text)
        alike = self._known.get(text[:_LIKE], ())
        before = next((known for known in alike if text.startswith(known[0])), None)
        try:
            place, found = _elements(text, *(before or ("[", [])))
            if _skip(text, _skip(text, place) + 1) != len(text):
                return json.loads(text)
        except (StopIteration, ValueError, IndexError):
            return json.loads(text)  # which says what is wrong with it
        others = tuple(known for known in alike if known is not before)[: _ALIKE - 1]
        self._held += place - (len(before[0]) if before else 0)
        if self._held > _HELD:
            self._known, self._held, others = {}, place, ()
        self._known[text[:_LIKE]] = ((text[:place], found.copy()), *others)
        return found


def _skip(text: str, place: int) -> int:
    return _space(text, place).end()  # type: ignore[union-attr]  # it always matches


def _elements(text: str, prefix: str, read: list[Any]) -> tuple[int, list[Any]]:
    """Where the last element ends, and all of them; after it there is the bracket that closes the list."""
    found = read.copy()
    place = len(prefix)
    while True:
        following = _skip(text, place)
        if text[following] == "]":
            return place, found
        if found:
            if text[following] != ",":
                raise ValueError(following)
            following = _skip(text, following + 1)
        value, place = _scan(text, following)
        found.append(value)
