"""Bodies of the OpenAI chat completions API; its messages are read by the common reader of messages.

Source: <https://platform.openai.com/docs/api-reference/chat>.
"""

from collections.abc import Mapping
from typing import Final

from spanreplay.replay.model import Json

NAME: Final = "openai-chat"

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
    """A request has a list of ``messages``."""
    said = body.get("messages")
    if not isinstance(said, list):
        return None
    tools = body.get("tools")
    return {
        "messages": said,
        "system": [],
        "tools": tools if isinstance(tools, list) else [],
        "params": {key: value for key, value in body.items() if key not in _NOT_PARAMS and value is not None},
    }


def answered(body: Mapping[str, Json]) -> Json:
    """A response has ``choices``, each with a ``message``."""
    choices = body.get("choices")
    if not isinstance(choices, list):
        return None
    said = [choice for choice in choices if isinstance(choice, dict) and isinstance(choice.get("message"), dict)]
    if not said:
        return None
    return {"messages": [choice["message"] for choice in said], "finish": said[0].get("finish_reason")}
