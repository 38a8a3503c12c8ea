"""Messages of LlamaIndex, and what its agents give, as ``model_dump`` writes them: ``{"role", "blocks": [{"block_type", …}]}``.

Instrumentations leave out what has its default, ``block_type`` among it: a block with a ``text`` is one. Calls are blocks, or in
``additional_kwargs`` in the form of the API that was asked. What an agent gives (``AgentOutput``) lists under ``tool_calls`` what ran
before its ``response``. Source: ``llama_index.core.base.llms.types`` and ``.agent.workflow.workflow_events`` (0.14.25).
"""

from collections.abc import Mapping

from spanreplay.replay.model import Json
from spanreplay.replay.reading.parts import part, role_of

NAME = "llama-index"

_MEDIA = frozenset({"image", "audio", "video", "document"})


def reads(item: Mapping[str, Json]) -> bool:
    """A message with its content in ``blocks``."""
    return isinstance(item.get("role"), str) and isinstance(item.get("blocks"), list) and "content" not in item


def messages(item: Mapping[str, Json], role: str) -> list[dict[str, Json]]:
    """The message; a tool's is its result."""
    said, blocks, extra = role_of(item.get("role"), role), item.get("blocks"), item.get("additional_kwargs")
    extra = extra if isinstance(extra, dict) else {}
    made = [_part(block) for block in (blocks if isinstance(blocks, list) else ())]
    if said == "tool":
        texts = [one.get("content") for one in made if one["type"] == "text"]
        response: Json = texts[0] if len(made) == len(texts) == 1 else list[Json](made)
        return [{"role": said, "parts": [{"type": "tool_call_response", "id": extra.get("tool_call_id"), "response": response}]}]
    calls = extra.get("tool_calls")
    if isinstance(calls, list) and not any(one["type"] == "tool_call" for one in made):
        made = [one for one in made if one["type"] != "text" or one.get("content")]
        made += [part(call) for call in calls if isinstance(call, dict)]
    return [{"role": said, "parts": made}]


def asked(body: Mapping[str, Json]) -> Json:
    """Never: no request body is recorded."""
    del body


def answered(body: Mapping[str, Json]) -> Json:
    """What an agent gave, or a model (``ChatResponse``)."""
    for name in ("response", "message"):
        said = body.get(name)
        if isinstance(said, dict) and reads(said):
            return {"messages": [said], "finish": None}
    return None


def _part(block: Json) -> dict[str, Json]:
    if not isinstance(block, dict):
        return part(block)
    kind = block.get("block_type")
    if kind == "tool_call" or (kind is None and "tool_name" in block):
        arguments = block.get("tool_kwargs")
        return part({"type": "tool_call", "id": block.get("tool_call_id"), "name": block.get("tool_name"), "arguments": arguments})
    if kind in (None, "text") and "text" in block:
        return part({"type": "text", "text": block["text"]})
    if kind == "thinking":
        return {"type": "reasoning", "content": block.get("content")}
    url = block.get("url")
    if kind in _MEDIA and isinstance(url, str) and url:
        return {"type": "uri", "mime_type": block.get(f"{kind}_mimetype"), "modality": kind, "uri": url}
    return part(
        {**{key: value for key, value in block.items() if key != "block_type"}, "type": kind if isinstance(kind, str) else "generic"}
    )
