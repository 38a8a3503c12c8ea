"""Python values in the text that ``str`` and ``repr`` make of them, which some instrumentations write where JSON belongs.

Read are displays of dictionaries, lists, tuples, texts, numbers, truth values and ``None``: nothing is evaluated, nothing recurses, and a
text that holds anything else is no value. Of an object's text the members that are such displays are read.
"""

import ast
import re
from typing import Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import MAX_DEPTH

_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
      | (?P<number>-?(?:\d+\.\d*(?:[eE][+-]?\d+)?|\d+(?:[eE][+-]?\d+)?|\.\d+))(?![\w.])
      | (?P<word>True|False|None)\b
      | (?P<mark>[\[\](){}:,])
    )""",
    re.VERBOSE | re.DOTALL,
)
_WORDS: Final[dict[str, Json]] = {"True": True, "False": False, "None": None}
_CLOSES: Final = {"]": "[", ")": "(", "}": "{"}
_NONE: Final = object()


def python_value(text: str) -> Json:
    """The dictionary, list or tuple that a text displays, the latter two as a list; ``None`` where it displays none.

    Args:
        text: such as ``{'city': 'Paris', 'days': 2}``.
    """
    if text.lstrip()[:1] not in ("{", "[", "("):
        return None
    try:
        return _Reader().read(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


class _Reader:
    """A stack of open displays; each is a list of what it holds so far."""

    def __init__(self) -> None:
        self._open: list[tuple[str, list[Json]]] = []
        self._value: Json = _NONE
        self._done: Json = None

    def read(self, text: str) -> Json:
        at, end = 0, len(text.rstrip())
        while at < end:
            found = _TOKEN.match(text, at, end)
            if found is None or (at and not self._open):
                return None
            at = found.end()
            kind = found.lastgroup
            if kind == "mark":
                self._mark(found["mark"])
            elif self._value is not _NONE:
                return None
            elif kind == "text":
                self._value = ast.literal_eval(found["text"])
            elif kind == "number":
                self._value = _number(found["number"])
            else:
                self._value = _WORDS[found["word"]]
        return None if self._open else self._done

    def _mark(self, mark: str) -> None:
        if mark in "[({":
            if self._value is not _NONE or len(self._open) >= MAX_DEPTH:
                raise ValueError(mark)
            self._open.append((mark, []))
            return
        opener, held = self._open[-1]
        if self._value is not _NONE:
            held.append(self._value)
            self._value = _NONE
        elif mark in ":," or (opener == "{" and len(held) % 2):
            raise ValueError(mark)
        if opener == "{" and mark in ":," and (len(held) % 2 == 1) != (mark == ":"):
            raise ValueError(mark)
        if mark == ":" and opener != "{":
            raise ValueError(mark)
        if mark in _CLOSES:
            self._close(mark)

    def _close(self, mark: str) -> None:
        opener, held = self._open.pop()
        if _CLOSES[mark] != opener or (opener == "{" and len(held) % 2):
            raise ValueError(mark)
        made: Json = held
        if opener == "{":
            made = dict(zip(map(_key, held[::2]), held[1::2], strict=True))
        if self._open:
            self._value = made
        else:
            self._done = made


def _key(value: Json) -> str:
    if isinstance(value, dict | list):
        raise ValueError("a display as a key")  # noqa: TRY004 (any fault of the text is one)
    return value if isinstance(value, str) else str(value)


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdecimal() else float(text)


_MEMBER: Final = re.compile(r"(?:^|,\s*|\s+)([A-Za-z_]\w*)=")
_PIECE: Final = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|[\[({<]|[\])}>]|[^'"\[\](){}<>,\s]+|\s+|,|.""", re.DOTALL)
_LONGEST: Final = 1_000_000
"""Characters of an object's text that is taken apart."""
_CALLED: Final = re.compile(r"\s*[A-Za-z_]\w*\((.*)\)\s*", re.DOTALL)


def python_members(text: str) -> dict[str, Json]:
    """The members of an object by what ``repr`` or ``str`` shows of it; empty of anything else.

    A member that is no display, such as an object in it, is left out.

    Args:
        text: such as ``Answer(role='a', n=1)``, or ``role='a' n=1``.
    """
    if len(text) > _LONGEST:
        return {}
    whole = _CALLED.fullmatch(text)
    shown = text if whole is None else whole[1]
    if _MEMBER.match(shown) is None:
        return {}
    found: dict[str, str] = {}
    at = 0
    while (named := _MEMBER.match(shown, at)) is not None:
        at = end = named.end()
        depth = 0
        while at < len(shown) and (depth or _MEMBER.match(shown, at) is None):
            piece = _PIECE.match(shown, at)
            if piece is None:
                return {}
            depth += (piece[0] in "[({<") - (piece[0] in "])}>") if len(piece[0]) == 1 else 0
            at = piece.end()
        found[named[1]] = shown[end:at]
    values = {name: python_value(f"[{value}]") for name, value in found.items()} if at == len(shown) else {}
    return {name: value[0] for name, value in values.items() if isinstance(value, list) and len(value) == 1}
