"""Reading attributes of spans that anybody may have written: lenient, total, and with a memory of what was wrong.

Nothing here raises on a value, whatever its type, depth or size.
"""

import base64
import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from spanreplay.replay.model import Json, Reason
from spanreplay.replay.reading.growing import GrowingLists, PerElement
from spanreplay.replay.reasons import CUT
from spanreplay.spans.json_parsing import loads
from spanreplay.spans.record import Value

NULL_IDS: Final = frozenset({"", "unknown", "<not specified>", "none", "None", "null"})
"""What instrumentations write for a call id that they do not have."""
NOT_CAPTURED: Final = frozenset({"<REDACTED>", "[REDACTED]", "__REDACTED__", "<elided>", "FILTERED", "<not serializable>"})
"""What instrumentations write where content capture is off."""
_MARK: Final = re.compile(r"(?:<+|\[+|\(+|\{+|_+|\*+)\s*(?:redacted|elided|filtered)\s*(?:>+|\]+|\)+|\}+|_+|\*+)", re.IGNORECASE)
LONGEST_MARK: Final = 32
REPLACED: Final = "\ufffd"
"""What decoders make of bytes that are no character."""
TEMPO_LIMIT: Final = 2048
"""Bytes at which Tempo cuts every text by default, whatever it is (``distributor.max_attribute_bytes``, Tempo 3.0)."""
MAX_DEPTH: Final = 200
"""Deeper JSON stays text: nothing that reads it later may run out of stack."""

_LONG: Final = 65_536
"""Characters of a text in which counting takes longer than looking at what it says."""
_LONG_LIST: Final = 4_096
"""The same of a list, which may have grown: its elements are looked at once."""


class Fields:
    """The attributes of one span, read by name; keeps a reason for every text that is plainly a part of a longer one."""

    __slots__ = ("attributes", "reasons")

    def __init__(self, attributes: Mapping[str, Value]) -> None:
        self.attributes = attributes if bytes not in map(type, attributes.values()) else _with_texts(attributes)
        self.reasons: dict[str, Reason] = {}

    def __contains__(self, name: str) -> bool:
        value = self.attributes.get(name)
        return value is not None and not not_captured(value)

    def text(self, *names: str) -> str | None:
        """The first of these attributes that is a text and not empty."""
        for name in names:
            value = self.attributes.get(name)
            if isinstance(value, str) and value:
                return value
        return None

    def identifier(self, *names: str) -> str | None:
        """The first of these attributes that identifies something; the words that stand for "none" do not."""
        for name in names:
            value = self.attributes.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                return str(value)
            if isinstance(value, str) and value.strip() not in NULL_IDS:
                return value
        return None

    def integer(self, *names: str) -> int | None:
        """The first of these attributes that is a whole number, or the text or float of one."""
        for name in names:
            number = whole(self.attributes.get(name))
            if number is not None:
                return number
        return None

    def true(self, name: str) -> bool:
        """Whether a flag is set."""
        return self.attributes.get(name) in (True, "true", "True")

    def texts(self, name: str) -> list[str]:
        """A list of texts, however it was written."""
        value = self.json(name)
        if isinstance(value, str):
            return [value]
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

    def json(self, *names: str, strict: bool = False) -> Json:
        """The first of these attributes that is there, as a JSON value.

        A text that holds JSON is decoded, twice if it was encoded twice; any other text is itself. Only one that begins like JSON and
        stops in the middle is taken for cut. ``strict`` says that the convention has nothing but JSON here, so that one that begins like a
        list or an object and is none has been damaged, unless it is whole as Python writes it.
        """
        for name in names:
            value = self.attributes.get(name)
            if name not in self or (strict and value == ""):
                continue
            decoded, whole_text = decoded_json(value)
            if isinstance(value, str) and (not whole_text or (strict and isinstance(decoded, str) and _is_damaged(value))):
                size = cut_size(value)
                self.cut(name, f"{name} stops in the middle of its JSON after {size} bytes", size)
            elif isinstance(decoded, str) and isinstance(value, str) and ends_at_limit(value):
                self.cut(name, f"{name} ends at {TEMPO_LIMIT} bytes, where Tempo cuts by default", TEMPO_LIMIT)
            return decoded
        return None

    def encoded(self, name: str) -> Json:
        """An attribute in which whatever it holds is encoded as JSON, once.

        A text is in quotes, and stays one if there is JSON in it; a number, ``true`` or ``null`` is one.
        """
        value = self.attributes.get(name)
        if isinstance(value, str) and value.strip()[:1] not in ("{", "[") and name in self:
            held, _ = decoded_json(f"[{value}]")
            if isinstance(held, list) and len(held) == 1:
                return held[0]
        return self.json(name)

    def cut(self, name: str, detail: str, size: int | None = None) -> None:
        """Remembers that an attribute is not whole, and how many bytes of it are left."""
        self.reasons.setdefault(name, Reason(code=CUT, detail=detail, field=name, size=size))


def _with_texts(attributes: Mapping[str, Value]) -> Mapping[str, Value]:
    """Attributes with the JSON text that some write as bytes, such as LangSmith's exporter up to 0.4."""
    return {name: _text_in(value) if isinstance(value, bytes) else value for name, value in attributes.items()}


def _text_in(value: bytes) -> Value:
    if value.lstrip()[:1] not in (b"{", b"[", b'"'):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def not_captured(value: object) -> bool:
    """Whether a value is nothing but a mark that content was taken out: the word, in any case and any brackets."""
    return isinstance(value, str) and len(value) <= LONGEST_MARK and _is_mark(value)


@lru_cache(maxsize=4096)
def _is_mark(text: str) -> bool:
    return text in NOT_CAPTURED or _MARK.fullmatch(text.strip()) is not None


_CLOSING: Final = {"{": "}", "[": "]"}


def _is_damaged(text: str) -> bool:
    """Whether a text that is no JSON begins like a list or an object and does not end like one."""
    start = text.lstrip()[:1]
    return start in _CLOSING and text.rstrip()[-1:] != _CLOSING[start]


def whole(value: Value) -> int | None:
    """A whole number from a number or its text; ``None`` from anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and len(value) < 20 and value.strip().lstrip("-").isdecimal():
        return int(value)
    return None


_lists: Final = GrowingLists()


def decoded_json(value: Value) -> tuple[Json, bool]:
    """A value as JSON, and whether it was whole.

    A text that starts like a JSON object, list or string is decoded, up to twice, and is itself if it is none. A number or a word in a text
    stays a text: nothing tells whether ``"0"`` was one.
    """
    whole_text = True
    given = value
    for _ in range(2):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
            break
        try:
            decoded = _lists.read(value)
        except json.JSONDecodeError as error:
            whole_text = not _stops(value, error)
            break
        except (ValueError, RecursionError):
            break
        if isinstance(decoded, dict | list) and _may_nest(value, decoded) and too_deep(decoded):
            break
        value = decoded
    return value if value is not given else jsonable(value), whole_text


def _may_nest(text: str, decoded: Json) -> bool:
    """Whether a text has brackets enough, or is so long that its value is looked at instead."""
    return len(text) >= (_LONG_LIST if type(decoded) is list else _LONG) or text.count("[") + text.count("{") > MAX_DEPTH


def json_value(text: str, otherwise: Json) -> Json:
    """What a text says that is known to be JSON, encoded once; what it is otherwise where it is none, or nests too deep."""
    try:
        value = loads(text)
    except (ValueError, RecursionError):
        return otherwise
    return otherwise if isinstance(value, dict | list) and too_deep(value) else value


def ends_at_limit(text: str) -> bool:
    """Whether a text has just the length at which Tempo cuts."""
    return TEMPO_LIMIT // 4 <= len(text) <= TEMPO_LIMIT + 3 and cut_size(text) == TEMPO_LIMIT


def cut_size(text: str) -> int:
    """The bytes of a text as they were before a decoder made U+FFFD of a character that was cut in two.

    One to three bytes were left of the character; how many it does not say, so the known limit is taken where it is possible.
    """
    if text.isascii():
        return len(text)
    whole_part = text.rstrip(REPLACED)
    size = len(whole_part.encode("utf-8", "surrogatepass"))
    if len(whole_part) == len(text):
        return size
    return TEMPO_LIMIT if size < TEMPO_LIMIT <= size + 3 else size


def _stops(text: str, error: json.JSONDecodeError) -> bool:
    """Whether JSON text is wrong only because it is not all there."""
    rest = text[error.pos :].rstrip()
    if not rest or error.msg.startswith("Unterminated string"):
        return True
    if error.msg.startswith("Invalid \\") or error.msg.startswith("Invalid control"):
        return len(rest) < 7 and not error.msg.startswith("Invalid control")
    return any(word.startswith(rest) for word in ("true", "false", "null")) or rest == "-"


def too_deep(value: Json) -> bool:
    """Whether what ``json.loads`` gave nests deeper than :data:`MAX_DEPTH`."""
    return any(_too_deep_inside.of(value)) if type(value) is list else _nests(value, MAX_DEPTH)


def _nests(value: Json, most: int) -> bool:
    level: list[Any] = [value] if type(value) is dict or type(value) is list else []
    for _ in range(most):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
        if not level:
            return False
    return True


_too_deep_inside: Final = PerElement(lambda element: _nests(element, MAX_DEPTH - 1))


_SCALARS: Final = frozenset({str, bool, int, float, type(None)})


def jsonable(value: Value, depth: int = 0) -> Json:
    """An OTLP value as JSON: bytes as base64 text, keys as texts, what nests too deep as text."""
    kind = type(value)
    if kind in _SCALARS or isinstance(value, str | int | float):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode("ascii")
    if depth > MAX_DEPTH:
        return "<nested too deep>"
    if kind is not list and kind is not tuple and isinstance(value, Mapping):
        return {str(key): jsonable(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple | Sequence):
        return [jsonable(inner, depth + 1) for inner in value]
    return str(value)


def strict(value: Json) -> Json:
    """A JSON value without the numbers that JSON lacks: ``NaN`` and the infinities become their names."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {key: strict(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [strict(inner) for inner in value]
    return value
