"""Results of tools that were recorded as what a user says: Gemini's API gives them that role, and some tracers keep the texts alone.

OpenInference's instrumentation of google-genai wrote, up to 1.4.4, all results of a turn into one message, without the names and with the
id of the last at most: as one text with an empty line between them (0.1), or as a text each. Later ones write a message of the role
``tool`` each. Source: ``openinference/instrumentation/google_genai/_request_attributes_extractor.py``.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import decoded_json

_BETWEEN: Final = "\n\n"
_DECODER: Final = json.JSONDecoder()


def told_apart(said: Sequence[dict[str, Json]]) -> list[dict[str, Json]]:
    """Messages in which what a user says right after calls is their results, where it is a JSON object for each of them, in their order.

    Args:
        said: in the parts shape, in order.
    """
    made = list(said)
    for place in range(1, len(made)):
        calls = [part for part in _parts(made[place - 1]) if part.get("type") == "tool_call"]
        if not calls or made[place - 1].get("role") != "assistant" or made[place].get("role") != "user":
            continue
        results = _objects(_parts(made[place]), len(calls))
        if len(results) == len(calls):
            parts = [
                {"type": "tool_call_response", "id": call.get("id"), "response": one} for call, one in zip(calls, results, strict=True)
            ]
            made[place] = {**made[place], "parts": parts}
    return made


def _parts(message: dict[str, Json]) -> list[dict[str, Any]]:
    parts = message.get("parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _objects(parts: Sequence[dict[str, Any]], count: int) -> list[Json]:
    """The JSON objects that texts are, one each, or one text all of them; none where something else is among them."""
    texts: list[Any] = [part.get("content") for part in parts if part.get("type") == "text"]
    if len(texts) != len(parts) or not all(isinstance(text, str) for text in texts):
        return []
    if len(texts) == 1 and count > 1:
        texts = [*_joined(texts[0], count)]
    return _all_objects(decoded_json(text)[0] for text in texts)


def _joined(text: str, count: int) -> list[str]:
    """The JSON values, each as it stands there, of a text that has that many, one after the other."""
    found: list[str] = []
    place = 0
    while len(found) < count and place < len(text):
        try:
            _, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            return []
        found.append(text[place:end])
        if end < len(text) and not text.startswith(_BETWEEN, end):
            return []
        place = end + len(_BETWEEN)
    return found if place >= len(text) else []


def _all_objects(values: Iterable[Json]) -> list[Json]:
    found = list(values)
    return found if all(isinstance(value, dict) for value in found) else []
