"""Bodies of the OpenAI chat completions API; its messages are read by the common reader of messages.

Source: <https://platform.openai.com/docs/api-reference/chat>.
"""

from collections.abc import Mapping
from typing import Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.bodies import request_view, response_view

NAME: Final = "openai-chat"
PROVIDER: Final = "openai.chat"

_NOT_PARAMS: Final = frozenset({"messages", "tools", "functions", "model", "stream"})


def reads(item: Mapping[str, Json]) -> bool:
    """Never: its messages are what a message is if nothing says otherwise."""
    del item
    return False


def messages(item: Mapping[str, Json], role: str) -> list[dict[str, Json]]:
    """Nothing; see :func:`reads`."""
    del item, role
    return []


def asked(body: Mapping[str, Json]) -> Json:
    """A request has a list of ``messages``; one with a ``model`` whose messages are all of this API is read as a live one."""
    said = body.get("messages")
    if not isinstance(said, list):
        return None
    if isinstance(body.get("model"), str) and said and all(map(_is_message, said)):
        return request_view(PROVIDER, body)
    tools = body.get("tools")
    return {
        "messages": said,
        "system": [],
        "tools": tools if isinstance(tools, list) else [],
        "params": {key: value for key, value in body.items() if key not in _NOT_PARAMS and value is not None},
    }


def _is_message(message: Json) -> bool:
    return isinstance(message, dict) and isinstance(message.get("role"), str) and "parts" not in message and _is_content(message)


def _is_content(message: Mapping[str, Json]) -> bool:
    content = message.get("content")
    if isinstance(content, list):
        return all(isinstance(chunk, dict) and isinstance(chunk.get("type"), str) for chunk in content)
    return content is None or isinstance(content, str)


def answered(body: Mapping[str, Json]) -> Json:
    """A response has ``choices``, each with a ``message``."""
    choices = body.get("choices")
    if not isinstance(choices, list):
        return None
    said = [choice for choice in choices if isinstance(choice, dict) and isinstance(choice.get("message"), dict)]
    if not said:
        return None
    return response_view(PROVIDER, {**body, "choices": said})
