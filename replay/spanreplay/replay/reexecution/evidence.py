"""What of a difference can be looked for where it may come from: the words that are there on one side only."""

import difflib
import json
from collections.abc import Iterator
from typing import Any, Final

from spanreplay.replay.reexecution.diff import ABSENT

_FRAGMENTS: Final = 12
_LENGTH: Final = 300
"""Characters of a fragment."""
_AROUND: Final = " \t.,;:!?\"'()[]{}"
_SHORT: Final = 5
_LINES: Final = 400
_STRUCTURE: Final = 40
"""Values of a structure that are looked at."""


def fragments(recorded: Any, actual: Any) -> tuple[list[str], list[str]]:
    """The words of two values that only the recorded one has, and those that only the actual one has."""
    if isinstance(recorded, str) and isinstance(actual, str):
        return _of_texts(recorded, actual)
    left, right = list(_scalars(recorded)), list(_scalars(actual))
    return _bounded(t for t in left if t not in right), _bounded(t for t in right if t not in left)


def _of_texts(recorded: str, actual: str) -> tuple[list[str], list[str]]:
    left, right = recorded.splitlines()[:_LINES], actual.splitlines()[:_LINES]
    removed: list[str] = []
    added: list[str] = []
    for tag, start, end, from_, to in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if end - start == to - from_:
            for one, other in zip(left[start:end], right[from_:to], strict=True):
                was, now = _middles(one, other)
                removed.append(was)
                added.append(now)
        else:
            removed.extend(left[start:end])
            added.extend(right[from_:to])
    return _bounded(removed), _bounded(added)


def _middles(one: str, other: str) -> tuple[str, str]:
    """What differs of two lines, in whole words."""
    shorter = min(len(one), len(other))
    start = next((i for i in range(shorter) if one[i] != other[i]), shorter)
    while start > 0 and _in_word(one[start - 1]):
        start -= 1
    end = 0
    while end < shorter - start and one[-1 - end] == other[-1 - end]:
        end += 1
    while end > 0 and _in_word(one[len(one) - end]):
        end -= 1
    if max(len(one), len(other)) - start - end < _SHORT:  # too short to be looked for: with the words beside it
        start = len(one[:start].rstrip().rpartition(" ")[0])
        end = len(one[len(one) - end :].lstrip().partition(" ")[2])
    return one[start : len(one) - end], other[start : len(other) - end]


def _in_word(character: str) -> bool:
    return character.isalnum() or character in "_-"


def _scalars(value: Any) -> Iterator[str]:
    todo, left = [value], _STRUCTURE
    while todo and left:
        item = todo.pop()
        if isinstance(item, dict):
            todo.extend(reversed(list(item.values())))
        elif isinstance(item, list):
            todo.extend(reversed(item))
        elif item is not ABSENT:
            left -= 1
            yield from item.splitlines() if isinstance(item, str) else (json.dumps(item),)


def _bounded(texts: Iterator[str] | list[str]) -> list[str]:
    clean = (text.strip()[:_LENGTH].strip(_AROUND) for text in texts)
    return list(dict.fromkeys(text for text in clean if text))[:_FRAGMENTS]
