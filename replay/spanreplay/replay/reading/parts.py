"""The parts of a message as the GenAI conventions write them, from whatever spelling they came in.

A part of an unknown type is kept as it is.
"""

from collections.abc import Mapping
from typing import Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import decoded_json
from spanreplay.replay.reading.media import KINDS, medium

_PART_TYPES: Final[Mapping[str, str]] = {
    "input_text": "text",
    "output_text": "text",
    "thinking": "reasoning",
    "tool-call": "tool_call",
    "tool_use": "tool_call",
    "function_call": "tool_call",
    "tool-result": "tool_call_response",
    "tool_result": "tool_call_response",
    "tool_response": "tool_call_response",
}
_RENAMED: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "text": {"content": ("text", "thinking")},
    "reasoning": {"content": ("text", "thinking")},
    "tool_call_response": {"response": ("result", "output", "content"), "id": ("tool_use_id", "tool_call_id", "call_id")},
    "tool_call": {"arguments": ("input", "args"), "name": ("function_name",)},
}
"""Fields by part type, and what else they are called."""
_THOUGHTS: Final = frozenset({"summary_text", "reasoning_text"})
_ROLES: Final[Mapping[str, str]] = {
    "model": "assistant",
    "ai": "assistant",
    "human": "user",
    "developer": "system",
    "tool-call": "assistant",  # smolagents', which sends them as these
    "tool-response": "user",
}


def role_of(given: Json, otherwise: str) -> str:
    """The role by its name in the conventions; another name is kept.

    Args:
        given: as recorded.
        otherwise: where none is given.
    """
    return _ROLES.get(given, given) if isinstance(given, str) and given else otherwise


def parts(value: Json) -> list[dict[str, Json]]:
    """The parts of a message, from a list of parts, one part, or bare text."""
    if isinstance(value, list):
        return [part(item) for item in value]
    return [part(value)]


def part(item: Json) -> dict[str, Json]:
    """One part, from any spelling; what is no object is text."""
    if not isinstance(item, dict):
        return {"type": "text", "content": item}
    function = item.get("function")
    if isinstance(function, dict):
        item = {**{k: v for k, v in item.items() if k != "function"}, **function, "type": "tool_call"}
    kind = item.get("type")
    if kind is None:
        kind = "text" if "text" in item or "content" in item else "generic"
    kind = _PART_TYPES.get(kind, kind) if isinstance(kind, str) else str(kind)
    made: dict[str, Json] = {**item, "type": kind}
    if kind in KINDS:
        return medium(made) or made
    for name, olds in _RENAMED.get(kind, {}).items():
        known = next((old for old in olds if old in made), None)
        if known is not None and name not in made:
            made[name] = made.pop(known)
    if kind == "reasoning" and is_summary(made.get("content")):
        made["content"] = _summed_up(str(made["content"]))
    if kind == "tool_call" and isinstance(made.get("call_id"), str):  # the Responses API: ``id`` is the item's there
        made["id"] = made.pop("call_id")
    if kind == "tool_call" and isinstance(made.get("arguments"), str):  # the APIs that have a text there have JSON in it
        decoded, _ = decoded_json(made["arguments"])
        if isinstance(decoded, dict | list):
            made["arguments"] = decoded
    return made


def is_summary(content: Json) -> bool:
    """Whether thoughts may be the summary of the Responses API as JSON, as OpenLLMetry writes them, and not a text."""
    return isinstance(content, str) and content.startswith("[{") and content.endswith("}]")


def _summed_up(content: str) -> Json:
    held, _ = decoded_json(content)
    texts = [one.get("text") for one in held if isinstance(one, dict) and one.get("type") in _THOUGHTS] if isinstance(held, list) else []
    return "\n\n".join(map(str, texts)) if texts and isinstance(held, list) and len(texts) == len(held) else content
