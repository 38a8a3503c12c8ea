"""Where in a text a secret may be, found out in few searches: most texts hold none, and a search for each form would read them as often.

A hint is a pattern over the UTF-8 bytes of a text that begins with one plain letter, a rare one where there is a choice: what stands before
it is looked back at. The regex engine then skips through a text almost at the speed of ``memchr``, 20 times that of trying the pattern
everywhere. Hints that begin with the same letter are one search. Where there is an automaton, all of them are.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from spanreplay.content._automaton import Automaton

_RARE: Final = frozenset(b"=@JZz_")
"""Letters that many texts lack. Where there is none, ``find`` says so at the speed of ``memchr``."""
_SHORT: Final = 400
"""Bytes up to which one search for all hints at once is faster than one a letter."""
_FOLDING: Final = ("\u0130", "\u0131", "\u017f", "\u212a")
"""Letters beyond ASCII that are the same as one of ASCII where letter case does not count: i, s and k."""
_NONE: Final[frozenset["Hint"]] = frozenset()


class Hint(NamedTuple):
    """Without a match of it a form of secret is not in a text."""

    pattern: str
    """Its first letter stands for itself. It may match too much, never too little."""
    forward: str = ""
    """The same for an automaton, which cannot look back or ahead; empty where it does neither. It may match more, or what is found less."""
    exact: bool = False
    """It is for the bytes as they are; else for those with ASCII letters in lower case."""


def preceded(mark: str, endings: Iterable[str]) -> Hint:
    """Return the hint of a mark after one of these endings. Their last characters are looked at first: most marks come after others."""
    endings = sorted({*endings})
    return Hint(_looking_back(mark, endings), f"(?:{'|'.join(map(re.escape, endings))}){mark}")


def _looking_back(mark: str, endings: list[str]) -> str:
    parts: dict[tuple[bool, bool], list[str]] = {}
    for ending in endings:
        parts.setdefault((ending.isascii(), ending.endswith(" ")), []).append(ending)
    last = "".join(sorted({re.escape(ending[-1]) for ending in endings}))
    return f"{mark}(?<=[{last}]{mark})(?:{'|'.join(_after_one(mark, part) for part in parts.values())})"


def _after_one(mark: str, endings: list[str]) -> str:
    seen = min(3, *map(_plain, endings))
    guard = "".join(f"[{''.join(sorted({re.escape(ending[place]) for ending in endings}))}]" for place in range(-seen, 0))
    return f"(?<={guard}{mark})(?:{'|'.join(f'(?<={re.escape(ending)}{mark})' for ending in endings)})"


def _plain(ending: str) -> int:
    """Return how many characters at its end are one byte each."""
    return next((at for at, char in enumerate(reversed(ending)) if not char.isascii()), len(ending))


class Hints:
    """Finds out which of some hints are in a text.

    Args:
        hints: which to look for.
        after: Characters to search until an automaton is made, which takes as long as searching these; 0: it is made at once.
    """

    def __init__(self, hints: Iterable[Hint], *, after: int = 4_000_000) -> None:
        self.known = tuple(dict.fromkeys(hints))
        self._groups, self._exact = _groups(self.known, exact=False), _groups(self.known, exact=True)
        self._any = _searching([hint.pattern for hint in self.known if not hint.exact])
        self._any_exact = _searching([hint.pattern for hint in self.known if hint.exact])
        self._all = frozenset(self.known)
        patterns = [(hint.forward or hint.pattern, hint.exact) for hint in self.known]
        self._automaton = Automaton([*patterns, ("|".join(_FOLDING), True)], after=after)

    @property
    def has_automaton(self) -> bool:
        """Whether they are found in one search."""
        return self._automaton.found(b"") is not None

    def of(self, text: str) -> frozenset[Hint]:
        """Return those that may be there."""
        raw = text.encode("utf-8", "surrogatepass")
        numbers = self._automaton.found(raw)
        if numbers is not None:
            return self._numbered(numbers) if numbers else _NONE
        if len(raw) != len(text) and any(search(raw) for search in _FOLDS):
            return self._all
        low = raw.lower()
        if len(raw) <= _SHORT and not self._any(low) and not self._any_exact(raw):
            return _NONE
        found = [hint for search, group in self._groups if search(low) for hint in group.those(low)]
        found += [hint for search, group in self._exact if search(raw) for hint in group.those(raw)]
        return frozenset(found)

    def at_once(self, text: str) -> frozenset[Hint] | None:
        """Return those that may be there where there is an automaton, else ``None``."""
        automaton = self._automaton
        numbers = automaton.found(text.encode("utf-8", "surrogatepass")) if automaton.is_made else None
        return None if numbers is None else self._numbered(numbers) if numbers else _NONE

    def _numbered(self, numbers: list[int]) -> frozenset[Hint]:
        return self._all if len(self.known) in numbers else frozenset([self.known[number] for number in numbers])


class _Group:
    """Hints that begin with the same letter."""

    __slots__ = ("_each",)

    def __init__(self, hints: Iterable[Hint]) -> None:
        self._each = [(hint, re.compile(_bytes(hint.pattern)).search) for hint in hints]

    def those(self, data: bytes) -> list[Hint]:
        """Return those that match."""
        return [hint for hint, search in self._each if search(data)]


def _groups(hints: Iterable[Hint], *, exact: bool) -> tuple[tuple[Callable[[bytes], object], _Group], ...]:
    """Return the groups, each with what tells whether one of them matches."""
    parted: dict[bytes, list[Hint]] = {}
    for hint in hints:
        if hint.exact is exact:
            parted.setdefault(_bytes(hint.pattern.removeprefix("\\"))[:1], []).append(hint)
    return tuple((_one_of(letter, group), _Group(group)) for letter, group in parted.items())


def _one_of(letter: bytes, hints: list[Hint]) -> Callable[[bytes], object]:
    search = _searching([hint.pattern for hint in hints])
    return _after(letter, search) if letter[0] in _RARE else search


def _searching(patterns: list[str]) -> Callable[[bytes], object]:
    return re.compile(_bytes("|".join(patterns)) if patterns else rb"(?!)").search


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _after(letter: bytes, search: Callable[..., object]) -> Callable[[bytes], object]:
    def found(data: bytes) -> object:
        at = data.find(letter)
        return at >= 0 and search(data, at)

    return found


_FOLDS: Final = tuple(_after(letter.encode()[:1], re.compile(letter.encode()).search) for letter in _FOLDING)
"""What tells whether one of these letters is in a text."""
