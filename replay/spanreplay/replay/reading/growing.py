"""Lists in JSON texts that grow: with every request a model is sent all that was said before, and what was read before is not read again.

The elements that two readings have in common are the same objects. Nobody changes what was read.
"""

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, Final, Generic, TypeVar

from spanreplay.spans.json_parsing import loads

T = TypeVar("T")

_SHORTEST: Final = 4_096
"""Characters below which nothing is gained."""
_LIKE: Final = 64
"""Texts that begin with the same characters may be of the same conversation."""
_ALIKE: Final = 4
_HELD: Final = 4_000_000
"""Characters of earlier texts that are remembered, about."""
_BLANKS: Final = " \t\n\r"
_Known = tuple[str, list[Any]]
"""A text without the bracket at its end, and the elements that it has."""
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
            return loads(text)
        alike = self._known.get(text[:_LIKE], ())
        before = next((known for known in alike if text.startswith(known[0])), None)
        found = loads(text) if before is None else _continued(text, *before)
        if not found:
            return found
        end = text.rindex("]")
        others = tuple(known for known in alike if known is not before)[: _ALIKE - 1]
        self._held += end - (len(before[0]) if before else 0)
        if self._held > _HELD:
            self._known, self._held, others = {}, end, ()
        self._known[text[:_LIKE]] = ((text[:end], found), *others)
        return found.copy()


def _continued(text: str, prefix: str, read: list[Any]) -> list[Any]:
    """A list that begins with elements that were read."""
    rest = text[len(prefix) :].lstrip(_BLANKS)
    if rest.rstrip(_BLANKS) == "]":
        return read
    if rest.startswith(","):
        try:
            more: list[Any] = loads(f"[{rest[1:]}")
        except (ValueError, RecursionError):
            more = []
        if more:
            return read + more
    return loads(text)  # type: ignore[no-any-return]  # which says what is wrong with it
