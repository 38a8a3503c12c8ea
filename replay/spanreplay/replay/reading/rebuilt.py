"""Messages that a back end put together from attributes of a span: as chat messages again.

Langfuse's server makes trees of numbered attributes (OpenInference's ``llm.input_messages.0.message.role``), with gaps where numbers are
missing, and one message of the texts and calls that the Vercel AI SDK has in attributes of their own.
"""

from typing import Any, Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import decoded_json

_CALL_NAMES: Final = {"toolCallId": "id", "toolName": "name", "input": "arguments", "args": "arguments"}


def chat_messages(value: Json) -> Json:
    """The same, with every message that was rebuilt as a chat message; anything else is itself.

    Args:
        value: decoded: a message, or a list in which some may be missing.
    """
    if isinstance(value, dict):
        return _message(value)
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return [_message(item) if isinstance(item, dict) else item for item in value if item is not None]
    return value


def _message(item: dict[str, Any]) -> dict[str, Json]:
    inner = item.get("message")
    if item.keys() == {"message"} and isinstance(inner, dict):
        return _openinference(inner)
    calls = item.get("tool_calls")
    if isinstance(calls, str) and isinstance(item.get("role"), str):
        listed, _ = decoded_json(calls)
        return {**item, "tool_calls": [_call(call) for call in listed] if isinstance(listed, list) else listed}
    return item


def _call(call: Json) -> Json:
    if not isinstance(call, dict) or "toolCallId" not in call:
        return call
    return {"type": "tool_call", **{to: call[name] for name, to in _CALL_NAMES.items() if name in call}}


def _openinference(message: dict[str, Any]) -> dict[str, Json]:
    made: dict[str, Json] = {key: value for key, value in message.items() if key not in ("contents", "tool_calls")}
    contents = _members(message.get("contents"), "message_content")
    if contents:
        made["content"] = contents
    calls = _members(message.get("tool_calls"), "tool_call")
    if calls:
        made["tool_calls"] = calls
    return made


def _members(listed: Json, name: str) -> list[dict[str, Any]]:
    found = listed if isinstance(listed, list) else []
    return [item[name] for item in found if isinstance(item, dict) and isinstance(item.get(name), dict)]
