"""Contents and bodies of the Gemini API (Google AI, Vertex AI, google-genai, ADK), in its camel case and in Python's snake case.

A content is ``{"role": "user" | "model", "parts": […]}`` whose parts have no ``type``: the one field that is set says what a part is. What
frames it differs: the API's body has ``generationConfig`` and ``candidates``, Python's call a ``config``, ADK's response the ``content`` of
the only candidate. Source: <https://ai.google.dev/api/generate-content>.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.bodies import request_view, response_view
from spanreplay.replay.reading.parts import role_of

NAME: Final = "gemini"
PROVIDER: Final = "gemini"

_KINDS: Final = frozenset(
    {"text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode", "codeExecutionResult", "thoughtSignature"}
)
"""Fields that say what a part is; a signature can stand alone."""
_GROUPS: Final = ("config", "generationConfig")
"""Objects whose members are parameters."""
_NOT_PARAMS: Final = frozenset({"contents", "model", "systemInstruction", "tools", "httpOptions"})
_CAMEL: Final = re.compile(r"_([a-z])")


def reads(item: Mapping[str, Json]) -> bool:
    """A content, or a message whose ``content`` is one."""
    return _content(item) is not None


def messages(item: Mapping[str, Json], role: str) -> list[dict[str, Json]]:
    """The content; results of functions stay in the message of the role that the API gives them, ``user``."""
    content = _content(item)
    if content is None:
        return []
    said = role_of(content.get("role"), role_of(item.get("role"), role))
    view = request_view(PROVIDER, {"contents": [{"role": said, "parts": content.get("parts")}]})
    rest = {key: value for key, value in item.items() if key not in ("role", "content", "parts") and value is not None}
    return [{**message, **rest} for message in view["messages"]] if view else []


def asked(body: Mapping[str, Json]) -> Json:
    """A request has ``contents``; its settings stand in ``config`` or ``generationConfig``, or beside them."""
    if body.get("contents") is None:
        return None
    given = _fields(body)
    for group in _GROUPS:
        inner = given.pop(group, None)
        if isinstance(inner, dict):
            given = {**_fields(inner), **given}
    view = request_view(PROVIDER, given)
    return view and {**view, "params": {key: value for key, value in given.items() if key not in _NOT_PARAMS}}


def answered(body: Mapping[str, Json]) -> Json:
    """A response has ``candidates``, each with a ``content``."""
    given = _fields(body)
    if not isinstance(given.get("candidates"), list):
        if _content({"content": given.get("content")}) is None:
            return None
        given = {"candidates": [{"content": given["content"], "finishReason": given.get("finishReason")}]}
    view = response_view(PROVIDER, given)
    if not view or not view["messages"]:
        return None
    return {"messages": view["messages"], "finish": view["messages"][0].get("finish_reason")}


def _content(item: Mapping[str, Json]) -> Mapping[str, Any] | None:
    """The content that an object is, or that it has in ``content``."""
    inner = item.get("content")
    if isinstance(inner, Mapping) and "parts" in inner and "parts" not in item:
        item = inner
    parts = item.get("parts")
    if isinstance(parts, list) and parts and all(map(_is_part, parts)):
        return item
    return item if not parts and "parts" in item and item.get("role") == "model" else None


def _is_part(one: Json) -> bool:
    return isinstance(one, dict) and "type" not in one and any(_camel(key) in _KINDS for key, value in one.items() if value is not None)


def _fields(given: Mapping[str, Json]) -> dict[str, Any]:
    """The fields that are set, by their documented names."""
    return {_camel(key): value for key, value in given.items() if value is not None}


def _camel(name: str) -> str:
    return _CAMEL.sub(lambda found: found[1].upper(), name)
