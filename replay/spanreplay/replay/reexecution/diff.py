"""Where two JSON values part: every place of it, and the whole of it as a unified diff that people can read."""

import difflib
import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from spanreplay.replay.reexecution.places import Keys, written

_SHOWN: Final = 120
_WIDE: Final = 100
"""Characters of a text that stay on one line of a diff."""
_COMPARED: Final = 400
"""Lines of either side that are compared, from the first that differs."""
_CONTEXT: Final = 2
DIFF_LINES: Final = 80
"""Lines that a diff has at most."""
_SENTENCE: Final = re.compile(r"(?<=[.!?;]\s)(?=\S)")
_HUNK: Final = re.compile(r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueDifference:
    """One value that differs. ``recorded`` and ``actual`` are :data:`ABSENT` where there is none."""

    keys: Keys
    recorded: Any
    actual: Any

    @property
    def path(self) -> str:
        """Where, for example ``messages[0].content``."""
        return written(self.keys)

    def texts(self) -> tuple[str, str, str | None]:
        """The two values as short texts, and a unified diff where these lack something."""
        diff = unified(self.recorded, self.actual) if self.long else None
        left, right = shown(self.recorded, self.actual), shown(self.actual, self.recorded)
        if look(left) == look(right) or look(str(self.recorded)) == look(str(self.actual)):
            left, right = escaped(left), escaped(right)
        return left, right, diff

    @property
    def long(self) -> bool:
        """Whether one of the values is a structure, or a text too long for a line."""
        return any(
            isinstance(v, dict | list) or (isinstance(v, str) and (len(v) > _WIDE or "\n" in v)) for v in (self.recorded, self.actual)
        )


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final = _Absent()


def shown(value: Any, other: Any = None) -> str:
    """A value as a short text, around the first character that differs from ``other``."""
    if value is ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= _SHOWN:
        return text
    start = 0
    if isinstance(value, str) and isinstance(other, str):
        start = max(0, parts_at(value, other) - _SHOWN // 3)
    elif isinstance(value, dict | list) and isinstance(other, dict | list):
        start = max(0, parts_at(text, json.dumps(other, ensure_ascii=False)) - _SHOWN // 3)
    cut = text[start : start + _SHOWN]
    return f"{'…' if start else ''}{cut}{'…' if start + _SHOWN < len(text) else ''} ({len(text)} characters)"


def parts_at(text: str, other: str) -> int:
    """The first character in which two texts differ; the length of the shorter where that begins the other."""
    return next((i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))


class _Link(NamedTuple):
    """A key and the way to it: shared by all values below."""

    before: "_Link | None"
    key: str | int


def _keys(link: _Link | None) -> Keys:
    found: list[str | int] = []
    while link is not None:
        found.append(link.key)
        link = link.before
    return tuple(reversed(found))


def differences(recorded: Any, actual: Any) -> Iterator[ValueDifference]:
    """Every value that differs, in the order of the recorded document. ``1``, ``1.0`` and ``true`` are different values."""
    stack: list[tuple[Any, Any, _Link | None]] = [(recorded, actual, None)]
    while stack:
        left, right, at = stack.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            keys = [*left, *(k for k in right if k not in left)]
            stack.extend((left.get(k, ABSENT), right.get(k, ABSENT), _Link(at, str(k))) for k in reversed(keys))
        elif isinstance(left, list) and isinstance(right, list):
            longest = range(max(len(left), len(right)))
            stack.extend(
                (left[i] if i < len(left) else ABSENT, right[i] if i < len(right) else ABSENT, _Link(at, i)) for i in reversed(longest)
            )
        elif type(left) is not type(right) or not _same(left, right):
            yield ValueDifference(keys=_keys(at), recorded=left, actual=right)


def _same(left: Any, right: Any) -> bool:
    """As the canonical text has it: ``-0.0`` is not ``0.0``, and what is no number is equal to itself."""
    return repr(left) == repr(right) if isinstance(left, float) else bool(left == right)


def look(text: str) -> str:
    """A text as it looks: ``é`` in one character or two, other spaces, and characters that nobody sees, are told apart by no reader."""
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")


def escaped(text: str) -> str:
    """A text with all that is not ASCII written as its code points."""
    return text.encode("ascii", "backslashreplace").decode("ascii")


def first_difference(recorded: Any, actual: Any) -> ValueDifference | None:
    """The first value that differs, or ``None``."""
    return next(differences(recorded, actual), None)


def unified(recorded: Any, actual: Any) -> str | None:
    """A unified diff of two values, each written as JSON in lines with its long texts opened; ``None`` where they are equal.

    It is bounded: it has at most :data:`DIFF_LINES` lines, and says how many it leaves out.
    """
    left, right = list(lines_of(recorded)), list(lines_of(actual))
    shorter = min(len(left), len(right))
    same = next((i for i in range(shorter) if left[i] != right[i]), shorter)
    if same == len(left) == len(right):
        return None
    start = max(0, same - _CONTEXT)
    end = 0
    while end < shorter - same and left[-1 - end] == right[-1 - end]:
        end += 1
    end = max(0, end - _CONTEXT)
    left, right = left[start : len(left) - end], right[start : len(right) - end]
    left, right = _told_apart(left, right), _told_apart(right, left)
    beyond = max(len(left), len(right)) - _COMPARED
    diff = difflib.unified_diff(left[:_COMPARED], right[:_COMPARED], "recorded", "actual", lineterm="", n=_CONTEXT)
    made = [_HUNK.sub(lambda found: _moved(found, start), line) if line.startswith("@@") else line for line in diff]
    if len(made) > DIFF_LINES:
        made = [*made[:DIFF_LINES], f"… {len(made) - DIFF_LINES} more lines"]
    if beyond > 0:
        made.append(f"… and {beyond} lines that were not compared")
    return "\n".join(made)


def _told_apart(lines: list[str], others: list[str]) -> list[str]:
    """Lines of which one looks like another one of the other side, and is not, with its code points."""
    if all(line.isascii() for line in (*lines, *others)):
        return lines
    there = set(others)
    looks = {look(line) for line in others}
    return [escaped(line) if line not in there and look(line) in looks else line for line in lines]


def _moved(found: re.Match[str], by: int) -> str:
    return f"@@ -{int(found[1]) + by}{found[2] or ''} +{int(found[3]) + by}{found[4] or ''} @@"


def lines_of(value: Any) -> Iterator[str]:
    """A value as JSON in lines. A text of several lines, or a long one, has a line for each of its lines and sentences, after ``|``."""
    todo: list[tuple[str, str, Any, str]] = [("", "", value, "")]
    while todo:
        indent, name, item, comma = todo.pop()
        opening = f"{indent}{name}"
        if isinstance(item, _Absent):
            continue
        if isinstance(item, dict) and item:
            yield f"{opening}{{"
            todo.append((indent, "", _Closing("}"), comma))
            members = [(f"{indent}  ", f"{json.dumps(str(key), ensure_ascii=False)}: ", inner, ",") for key, inner in item.items()]
            members[-1] = (*members[-1][:3], "")
            todo.extend(reversed(members))
        elif isinstance(item, list) and item:
            yield f"{opening}["
            todo.append((indent, "", _Closing("]"), comma))
            todo.extend((f"{indent}  ", "", inner, "," if number else "") for number, inner in enumerate(reversed(item)))
        elif isinstance(item, _Closing):
            yield f"{indent}{item.sign}{comma}"
        elif isinstance(item, str) and (len(item) > _WIDE or "\n" in item):
            yield f"{opening}|"
            yield from (f"{indent}  | {line}" for line in _broken(item))
        else:
            yield f"{opening}{json.dumps(item, ensure_ascii=False)}{comma}"


class _Closing(NamedTuple):
    sign: str


def _broken(text: str) -> Iterator[str]:
    """Its lines; a long one by sentences, and those by words."""
    for line in text.split("\n"):
        for sentence in _SENTENCE.split(line) if len(line) > _WIDE else (line,):
            rest = sentence
            while len(rest) > _WIDE:
                cut = rest.rfind(" ", _WIDE // 2, _WIDE) + 1 or _WIDE
                yield rest[:cut]
                rest = rest[cut:]
            yield rest
