"""Items and bodies of the OpenAI Responses API. Source: <https://platform.openai.com/docs/api-reference/responses>."""

from collections.abc import Mapping
from typing import Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.bodies import request_view, response_view

NAME: Final = "openai-responses"
PROVIDER: Final = "openai.responses"

_ITEMS: Final = frozenset(
    {
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "reasoning",
        "item_reference",
        "web_search_call",
        "file_search_call",
        "computer_call",
        "computer_call_output",
        "code_interpreter_call",
        "image_generation_call",
        "local_shell_call",
        "local_shell_call_output",
        "shell_call",
        "shell_call_output",
        "apply_patch_call",
        "apply_patch_call_output",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
        "tool_search_call",
        "tool_search_output",
        "compaction",
    }
)
_CONTENT: Final = frozenset({"input_text", "output_text", "input_image", "input_file", "refusal"})


def reads(item: Mapping[str, Json]) -> bool:
    """An item that stands among messages, or a message whose content has this API's types."""
    if "role" not in item:
        return _kind(item) in _ITEMS and "parts" not in item
    content = item.get("content")
    return isinstance(content, list) and any(isinstance(chunk, dict) and _kind(chunk) in _CONTENT for chunk in content)


def _kind(item: Mapping[str, Json]) -> str:
    kind = item.get("type")
    return kind if isinstance(kind, str) else ""


def messages(item: Mapping[str, Json], role: str) -> list[dict[str, Json]]:
    """The item as a message of its own."""
    del role
    view = request_view(PROVIDER, {"input": [dict(item)]})
    return list(view["messages"]) if view else []


def asked(body: Mapping[str, Json]) -> Json:
    """A request has ``input``, a text or items; a bare list only where an item of this API is in it."""
    given = body.get("input")
    known = isinstance(body.get("model"), str) or "instructions" in body
    if isinstance(given, list):
        items = [item for item in given if isinstance(item, dict)]
        if len(items) != len(given) or not (any(map(reads, items)) or (known and all("role" in item for item in items))):
            return None
    elif not (isinstance(given, str) and known):
        return None
    return request_view(PROVIDER, body)


def answered(body: Mapping[str, Json]) -> Json:
    """A response has ``output`` items, each with a type."""
    made = body.get("output")
    if not isinstance(made, list) or not (made or body.get("object") == "response"):
        return None
    if not all(isinstance(item, dict) and (_kind(item) == "message" or _kind(item) in _ITEMS) for item in made):
        return None
    return response_view(PROVIDER, body)
