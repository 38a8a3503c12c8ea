"""The words that differ, looked for where they may come from.

A text is often made of several things at once: what a dependency gives, with the value of a variable in it. So besides the words that
differ, what is left of them without the values that are known is looked for, and, where they are short, the words that only one side has.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

SHORT: Final = 4
"""Words shorter than this are found everywhere."""
_AROUND: Final = " \t.,;:!?\"'()[]{}"
_WORD: Final = re.compile(r"\w+")
_FEW: Final = 4
"""So many words in a row, of :data:`_RUN` characters, do not come together by chance."""
_RUN: Final = 20
_MOST: Final = 60
"""Words of one text that are looked at."""


def holds(where: str, text: str, *, same_file: bool = False) -> bool:
    """Does a line, or a file, hold words that differ? Short ones count as whole words, in the file that made the call."""
    if len(text) >= SHORT:
        return text in where
    return same_file and bool(text) and re.search(rf"(?<![\w.]){re.escape(text)}(?![\w.])", where) is not None


class Looked:
    """What of a difference is looked for.

    Args:
        added: the words that only the actual value has.
        removed: the words that only the recorded value has.
        values: what is known to stand in texts as it is: of variables, of arguments.
    """

    def __init__(self, added: Sequence[str], removed: Sequence[str], values: Sequence[str]) -> None:
        known = [value for value in values if len(value) >= SHORT - 1]
        self.added = _with_rests(added, known)
        self.removed = list(removed)
        self._own = added

    def in_file(self, where: str) -> bool:
        """Does a file, or all of several, hold them?"""
        if any(holds(where, text) for text in self.added):
            return True
        if any(run in where for run in self._runs):
            return True
        return any(_literal(where, word) for word in self._short)

    @cached_property
    def _runs(self) -> list[str]:
        """Some words in a row of each text."""
        found: dict[str, None] = {}
        for text in self._own:
            words = list(_WORD.finditer(text))[:_MOST]
            for first, last in zip(words, words[_FEW - 1 :], strict=False):
                run = text[first.start() : last.end()]
                if len(run) >= _RUN:
                    found[run] = None
        return list(found)

    @cached_property
    def _short(self) -> list[str]:
        """The words that only the actual value has, where it has no more than a few."""
        gone = {word for text in self.removed for word in _WORD.findall(text)}
        new = dict.fromkeys(
            word for text in self._own for word in _WORD.findall(text)[:_MOST] if word not in gone and len(word) >= SHORT - 1
        )
        return list(new) if len(new) < _FEW else []


def _with_rests(texts: Sequence[str], known: Sequence[str]) -> list[str]:
    """The texts, and what is left of each without the values that are known."""
    return list(dict.fromkeys([*texts, *(rest for text in texts for rest in _rests(text, known))]))


def _rests(text: str, known: Sequence[str]) -> Iterator[str]:
    parts = [text]
    for value in known:
        parts = [rest for part in parts for rest in part.split(value)]
    if parts != [text]:
        yield from (clean for part in parts if len(clean := part.strip().strip(_AROUND)) >= SHORT)


def _literal(where: str, word: str) -> bool:
    """Does a text of a program begin or end with a word?"""
    found = re.escape(word)
    return re.search(rf"""["']{found}(?!\w)|(?<!\w){found}["']""", where) is not None
