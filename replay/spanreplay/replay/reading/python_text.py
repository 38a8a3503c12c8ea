"""Python values in the text that ``str`` and ``repr`` make of them, which some instrumentations write where JSON belongs.

Read are displays of dictionaries, lists, tuples, texts, numbers, truth values and ``None``: nothing is evaluated, nothing recurses, and a
text that holds anything else is no value.
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
