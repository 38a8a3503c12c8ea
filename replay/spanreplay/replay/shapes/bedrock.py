"""Messages and bodies of Amazon Bedrock's Converse API, which Strands keeps its messages in, too.

A message is ``{"role": "user" | "assistant", "content": [block…]}``; a block has no ``type``, its only field says what it is.
Source: <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html>.
"""

from collections.abc import Mapping
from typing import Any, Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.parts import part, role_of

NAME: Final = "bedrock"

_MEDIA: Final[Mapping[str, str]] = {"image": "image", "video": "video", "audio": "audio", "document": "document"}
_BLOCKS: Final = ("toolUse", "toolResult", "reasoningContent", "guardContent", "cachePoint", "citationsContent", *_MEDIA)
_NOT_PARAMS: Final = frozenset({"messages", "system", "toolConfig", "modelId", "inferenceConfig"})


def reads(item: Mapping[str, Json]) -> bool:
    """A message with a block that is more than text."""
    content = item.get("content")
    return isinstance(content, list) and any(_is_block(block) for block in content)


def messages(item: Mapping[str, Json], role: str) -> list[dict[str, Json]]:
    """The message; results of tools stay in the message of the role that the API gives them, ``user``."""
    content = item.get("content")
    rest = {key: value for key, value in item.items() if key not in ("role", "content")}
    blocks = content if isinstance(content, list) else []
    return [{"role": role_of(item.get("role"), role), "parts": [_part(block) for block in blocks], **rest}]


def asked(body: Mapping[str, Json]) -> Json:
    """A request names its model in ``modelId``, or sets one of the fields that only Converse has."""
    said = body.get("messages")
    if not isinstance(said, list) or not any(name in body for name in ("modelId", "toolConfig", "inferenceConfig")):
        return None
    config = body.get("toolConfig")
    offered = config.get("tools") if isinstance(config, dict) else None
    limits = body.get("inferenceConfig")
    system = body.get("system")
    return {
        "messages": said,
        "system": [_part(block) for block in system] if isinstance(system, list) else [],
        "tools": [_definition(tool) for tool in offered] if isinstance(offered, list) else [],
        "params": {
            **(limits if isinstance(limits, dict) else {}),
            **{key: value for key, value in body.items() if key not in _NOT_PARAMS and value is not None},
        },
    }


def answered(body: Mapping[str, Json]) -> Json:
    """A response has ``output.message`` and ``stopReason``."""
    output = body.get("output")
    message = output.get("message") if isinstance(output, dict) else None
    if not isinstance(message, dict):
        return None
    return {"messages": messages(message, "assistant"), "finish": stopped if isinstance(stopped := body.get("stopReason"), str) else None}


def _is_block(block: Json) -> bool:
    return isinstance(block, dict) and "type" not in block and any(isinstance(block.get(name), dict) for name in _BLOCKS)


def _part(block: Json) -> dict[str, Json]:
    if not isinstance(block, dict) or "type" in block:
        return part(block)
    use, result, thought = block.get("toolUse"), block.get("toolResult"), block.get("reasoningContent")
    if isinstance(use, dict):
        rest = {key: value for key, value in use.items() if key not in ("toolUseId", "name", "input")}
        return {"type": "tool_call", "id": use.get("toolUseId"), "name": use.get("name"), "arguments": use.get("input"), **rest}
    if isinstance(result, dict):
        rest = {key: value for key, value in result.items() if key not in ("toolUseId", "content")}
        return {"type": "tool_call_response", "id": result.get("toolUseId"), "response": result.get("content"), **rest}
    if isinstance(thought, dict):
        text = thought.get("reasoningText")
        if isinstance(text, dict):
            return {"type": "reasoning", "content": text.get("text"), **{k: v for k, v in text.items() if k != "text"}}
        return {"type": "reasoning", **thought}
    for kind, modality in _MEDIA.items():
        if isinstance(block.get(kind), dict):
            return _media(kind, modality, block[kind])
    if "text" not in block and len(block) == 1:
        ((kind, content),) = block.items()
        return {"type": kind, "content": content}
    return part(block)


def _media(kind: str, modality: str, given: Mapping[str, Any]) -> dict[str, Json]:
    source = given.get("source")
    source = source if isinstance(source, dict) else {}
    form = given.get("format")
    named: dict[str, Json] = {"modality": modality}
    if isinstance(form, str):
        named["mime_type"] = f"{modality}/{form}" if kind != "document" else f"application/{form}"
    rest = {key: value for key, value in given.items() if key not in ("source", "format")}
    place = source.get("s3Location") or source.get("location")
    if isinstance(place, dict):
        return {"type": "uri", **named, "uri": place.get("uri"), **rest}
    return {"type": "blob", **named, "content": source.get("bytes", source.get("text")), **rest}


def _definition(tool: Json) -> Json:
    spec = tool.get("toolSpec") if isinstance(tool, dict) else None
    if not isinstance(spec, dict):
        return tool
    schema = spec.get("inputSchema")
    rest = {key: value for key, value in spec.items() if key != "inputSchema"}
    return {"type": "function", **rest, "parameters": schema.get("json", schema) if isinstance(schema, dict) else schema}
