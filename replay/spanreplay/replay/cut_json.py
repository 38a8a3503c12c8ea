"""What is whole of a JSON object that was cut: bodies of requests are long, and what logs them has limits."""

import json
from typing import Final

from spanreplay.replay.fields import too_deep
from spanreplay.replay.model import Json

_DECODER: Final = json.JSONDecoder()
_SPACE: Final = " \t\n\r"


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
