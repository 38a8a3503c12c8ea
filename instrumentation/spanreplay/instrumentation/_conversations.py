"""Request bodies of a conversation: what was said in the last request comes again in the next one, and is read and written once.

The messages and tools of a request are members of lists at the top of its body, and clients write them the same each time. So after
a member that is known, the one that followed it last time is looked for as text, which takes no parser: the text of a JSON object ends
where the object does, whatever follows.
"""

import json
import re
from collections.abc import Mapping
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, Final

from spanreplay.content.canonical import canonical_json
from spanreplay.instrumentation import _lenient

_ALTERNATIVES: Final = 16
"""Members known after another one, the latest first: other conversations begin alike."""
_SHORTEST: Final = 32
_LONGEST: Final = 262_144
_HELD: Final = 4_000_000
"""Characters of the members that are known; then all are forgotten."""

_space: Final = re.compile(r"[ \t\n\r]*").match
_parser: Final[Any] = json.JSONDecoder()
_scan, _string = _parser.scan_once, _parser.parse_string


class Member(dict[str, object]):
    """An object in a list of a body. It is shared by all requests that have it, and never changed.

    Attributes:
        text: as it stands in the body.
        canonical: its canonical JSON, once somebody asked for it.
        made: what was written of it, by what it was made with.
        size: characters of the text.
    """

    __slots__ = ("_next", "canonical", "made", "size", "text")

    def __init__(self, value: Mapping[str, object], text: str) -> None:
        super().__init__(value)
        self.text = text
        self.size = len(text)
        self.canonical: str | None = None
        self.made: dict[object, str] = {}
        self._next: list[Member] = []


class _Known:
    """Members that stood first in a list, by its name. Needs no lock: lists are replaced, and what one thread forgets is read again."""

    __slots__ = ("first", "held")

    def __init__(self) -> None:
        self.first: dict[str, list[Member]] = {}
        self.held = 0


_known: Final = _Known()


def loads(data: bytes) -> object:
    """Parse the body of a request, as :func:`._lenient.loads` does; objects in lists at its top are :class:`Member`.

    Raises:
        ValueError: it does not parse.
    """
    try:
        text = data.decode()
        value, end = _top(text, 0)
        if end == len(text) or _space(text, end).end() == len(text):  # type: ignore[union-attr]
            return value
    except (ValueError, IndexError, StopIteration, RecursionError):
        pass
    return _lenient.loads(data)


def _after(text: str, at: int) -> int:
    """The place of the next character that is no white space."""
    return at if text[at] > " " else _space(text, at).end()  # type: ignore[union-attr]


def _top(text: str, at: int) -> tuple[dict[str, object], int]:
    if text[at] != "{":
        raise ValueError
    found: dict[str, object] = {}
    at = _after(text, at + 1)
    while text[at] == '"':
        key, at = _string(text, at + 1)
        at = _after(text, at)
        if text[at] != ":":
            raise ValueError
        at = _after(text, at + 1)
        found[key], at = _list(text, at + 1, key) if text[at] == "[" else _scan(text, at)
        at = _after(text, at)
        if text[at] == "}":
            return found, at + 1
        if text[at] != ",":
            raise ValueError
        at = _after(text, at + 1)
    raise ValueError


def _list(text: str, at: int, name: str) -> tuple[list[object], int]:
    found: list[object] = []
    before: Member | None = None
    at = _after(text, at)
    if text[at] == "]":
        return found, at + 1
    while True:
        item: Any
        if text[at] == "{" and (before is not None or not found):
            item = before = _member(text, at, name, before)
            at += item.size
        else:
            item, at = _scan(text, at)
            before = None
        found.append(item)
        mark = text[at]
        if mark not in ",]":
            at = _after(text, at)
            mark = text[at]
        if mark == "]":
            return found, at + 1
        if mark != ",":
            raise ValueError
        at += 1
        if text[at] <= " ":
            at = _after(text, at)


def _member(text: str, at: int, name: str, before: Member | None) -> Member:
    known = _known.first.get(name, []) if before is None else before._next
    for member in known:
        if text.startswith(member.text, at):
            return member
    value, end = _scan(text, at)
    made = Member(value, text[at:end])
    size = end - at
    if _SHORTEST <= size <= _LONGEST:
        if _known.held + size > _HELD:
            _known.first, _known.held = {}, 0
        _known.held += size
        more = [made, *known[: _ALTERNATIVES - 1]]
        if before is None:
            _known.first[name] = more
        else:
            before._next = more
    return made


def canonical(value: Mapping[str, object], levels: int = 1) -> str:
    """Return ``canonical_json(value)`` of a parsed body, or of what holds one.

    Args:
        value: it.
        levels: of objects in which a list of members may be, this one included.

    Raises:
        TypeError: as that does.
    """
    return "{" + ",".join([f"{quoted(name)}:{_canonical(value[name], levels - 1)}" for name in sorted(value)]) + "}"


def _canonical(value: object, levels: int) -> str:
    if type(value) is str:
        return quoted(value)
    if levels and type(value) is dict:
        return canonical(value, levels)
    if type(value) is list and value and type(value[0]) is Member:
        return "[" + ",".join([_of_member(item) if type(item) is Member else canonical_json(item) for item in value]) + "]"
    return canonical_json(value)


def _of_member(member: Member) -> str:
    text = member.canonical
    if text is None:
        text = member.canonical = canonical_json(member)
    return text
