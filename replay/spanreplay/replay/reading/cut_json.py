"""What is whole of JSON that was cut: bodies of requests are long, and what logs them has limits."""

import json
import re
from typing import Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import too_deep

_DECODER: Final = json.JSONDecoder()
_SPACE: Final = " \t\n\r"
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)
_WHOLE_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_PART_OF_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*(?P<part>(?:\\u[dD][89abAB][0-9a-fA-F]{2})?(?:\\(?:u[0-9a-fA-F]{0,3})?)?)\Z")


def whole_members(text: str) -> dict[str, Json]:
    """The members before the place where the text of a JSON object stops or stops being JSON, whole values only."""
    found: dict[str, Json] = {}
    place = _skip(text, 0)
    if text[place : place + 1] != "{":
        return found
    place += 1
    while True:
        place = _skip(text, place)
        try:
            name, place = _DECODER.raw_decode(text, place)
            place = _skip(text, place)
            if not isinstance(name, str) or text[place : place + 1] != ":":
                return found
            value, place = _DECODER.raw_decode(text, _skip(text, place + 1))
        except (ValueError, RecursionError):
            return found
        place = _skip(text, place)
        if text[place : place + 1] not in (",", "}"):  # a number may go on
            return found
        if not (isinstance(value, dict | list) and too_deep(value)):
            found[name] = value
        if text[place] == "}":
            return found
        place += 1


def _skip(text: str, place: int) -> int:
    while text[place : place + 1] and text[place] in _SPACE:
        place += 1
    return place


def closed(text: str) -> Json:
    """What is whole of a JSON value whose text stops in the middle, the last text as far as it goes; ``None`` where nothing is."""
    stack: list[str] = []
    awaits: list[str] = []
    """For each open container what comes next: ``value``, or of an object also ``name``."""
    whole, ends = 0, ""
    for token in _TOKEN.finditer(text):
        word, after = token[0], token.end()
        if word in "{[":
            stack.append("}" if word == "{" else "]")
            awaits.append("name" if word == "{" else "value")
            whole, ends = after, "".join(reversed(stack))
        elif word in "}]":
            if not stack or stack.pop() != word:
                break
            awaits.pop()
            whole, ends = after, "".join(reversed(stack))
        elif word == ":" or word == ",":
            if not stack or (word == ":" and stack[-1] != "}"):
                break
            awaits[-1] = "value" if word == ":" or stack[-1] == "]" else "name"
        elif awaits and awaits[-1] == "name":
            continue  # alone it is no member
        elif word[0] != '"':
            if text[after : after + 1]:  # a number may go on
                whole, ends = after, "".join(reversed(stack))
        elif len(word) > 1 and _WHOLE_TEXT.fullmatch(word):
            whole, ends = after, "".join(reversed(stack))
        else:
            part = _PART_OF_ESCAPE.search(word)
            kept = word if part is None else word[: part.start("part")]
            return _parsed(text[: token.start()] + kept + '"' + "".join(reversed(stack)))
    return _parsed(text[:whole] + ends) if whole else None


def _parsed(text: str) -> Json:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if isinstance(value, dict | list) and too_deep(value) else value
