"""Haystack's messages in the text that ``repr`` shows of them, which instrumentations write; ``ChatMessage`` of 2.x and 3.x.

Source: ``haystack/dataclasses/chat_message.py``. The text of a picture has its first 100 characters only, so it is kept as it is.
"""

from typing import Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import whole
from spanreplay.replay.reading.python_objects import CLASS, python_object

OF_HAYSTACK: Final = "ChatMessage("
"""How begins what ``repr`` shows of a message of Haystack."""
_TOKENS: Final = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}


def shown_of_haystack(text: str) -> dict[str, Json]:
    """The message of Haystack that ``repr`` shows as this text, in the parts shape; empty of any other."""
    shown = python_object(text) if text.startswith(OF_HAYSTACK) else {}
    content = shown.get("_content", shown.get("content"))
    role = shown.get("_role", shown.get("role"))
    held = content if isinstance(content, list) else [content]
    if not isinstance(role, str) or not isinstance(content, list | str):
        return {}
    finish = meta.get("finish_reason") if isinstance(meta := shown.get("_meta", shown.get("meta")), dict) else None
    more = {"name": shown.get("_name", shown.get("name")), "finish_reason": finish}
    return {"role": role, "parts": [_of_haystack(one) for one in held], **{key: value for key, value in more.items() if value is not None}}


def _of_haystack(one: Json) -> Json:
    if not isinstance(one, dict):
        return {"type": "text", "content": one}
    origin = one.get("origin")
    made: dict[str, Json] | None = None
    match one.get(CLASS):
        case "TextContent":
            made = {"type": "text", "content": one.get("text")}
        case "ReasoningContent":
            made = {"type": "reasoning", "content": one.get("reasoning_text")}
        case "ToolCall":
            made = {"type": "tool_call", "id": one.get("id"), "name": one.get("tool_name"), "arguments": one.get("arguments")}
        case "ToolCallResult" if isinstance(origin, dict):
            result = one.get("result")
            result = [_of_haystack(part) if isinstance(part, dict) else part for part in result] if isinstance(result, list) else result
            made = {"type": "tool_call_response", "id": origin.get("id"), "response": result}
            made |= {"is_error": True} if one.get("error") is True else {}
    return made or {"type": str(one.get(CLASS, "generic")), **{name: value for name, value in one.items() if name != CLASS}}


def tokens_of_haystack(given: Json, made: Json) -> dict[str, int]:
    """The tokens that an agent used: what it counts itself (3.x), else what the new ones of its messages say."""
    if not isinstance(made, dict):
        return {}
    if isinstance(made.get("token_usage"), dict):
        return _counted([made["token_usage"]])
    before = given.get("messages") if isinstance(given, dict) else None
    said = made.get("messages")
    new = [text for text in said if isinstance(text, str) and text not in (before or ())] if isinstance(said, list) else []
    told = [python_object(text).get("_meta") for text in new]
    return _counted([meta["usage"] for meta in told if isinstance(meta, dict) and isinstance(meta.get("usage"), dict)])


def _counted(usages: list[dict[str, Json]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for usage in usages:
        for old, name in _TOKENS.items():
            if (count := whole(usage.get(old))) is not None:
                found[name] = found.get(name, 0) + count
    return found
