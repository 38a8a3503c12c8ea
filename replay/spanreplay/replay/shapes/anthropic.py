"""Content blocks and bodies of the Anthropic Messages API. Source: <https://docs.anthropic.com/en/api/messages>."""

from collections.abc import Mapping
from typing import Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.bodies import request_view, response_view

NAME: Final = "anthropic"
PROVIDER: Final = "anthropic.messages"

_BLOCKS: Final = frozenset(
    {"thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use", "mcp_tool_result", "web_search_tool_result"}
)


def reads(item: Mapping[str, Json]) -> bool:
    """A message with blocks that only this API has; one of another ``type`` is a framework's that carries them."""
    content = item.get("content")
    if item.get("type") not in (None, "message"):
        return False
    return "parts" not in item and isinstance(content, list) and any(isinstance(block, dict) and _is_block(block) for block in content)


def _is_block(block: Mapping[str, Json]) -> bool:
    kind = block.get("type")
    if kind == "tool_use":
        return "input" in block and "id" in block
    if kind == "tool_result":
        return "tool_use_id" in block
    if kind in ("image", "document"):
        return isinstance(block.get("source"), dict)
    return isinstance(kind, str) and kind in _BLOCKS


def _is_content(content: Json) -> bool:
    """A text, or blocks with a type: those of Bedrock have none."""
    return isinstance(content, str) or (isinstance(content, list) and all(isinstance(block, dict) and "type" in block for block in content))


def messages(item: Mapping[str, Json], role: str) -> list[dict[str, Json]]:
    """The message, with tool results where the API has them: in the message of the user."""
    view = request_view(PROVIDER, {"messages": [{"role": role, **item}]})
    return list(view["messages"]) if view else []


def asked(body: Mapping[str, Json]) -> Json:
    """A request has ``messages``, and what no other API with messages has: ``system``, its blocks, or tools with an ``input_schema``."""
    said = body.get("messages")
    if not isinstance(said, list) or not all(isinstance(message, dict) and _is_content(message.get("content")) for message in said):
        return None
    tools = body.get("tools")
    own_tools = isinstance(tools, list) and any(isinstance(tool, dict) and "input_schema" in tool for tool in tools)
    if not (isinstance(body.get("system"), str | list) or own_tools or any(map(reads, said))):
        return None
    return request_view(PROVIDER, body)


def answered(body: Mapping[str, Json]) -> Json:
    """A response is a ``message`` with a list of blocks."""
    blocks = body.get("content")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in blocks):
        return None
    if not ("stop_reason" in body or (body.get("type") == "message" and body.get("role") == "assistant")):
        return None
    return response_view(PROVIDER, body)
