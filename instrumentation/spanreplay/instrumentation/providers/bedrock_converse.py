"""Converse and ConverseStream of Amazon Bedrock, for any model behind it.

Wire format: <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html>. The path names the model and says whether
the answer is streamed: then as an AWS event stream, which its ``metadata`` ends. Neither has an id; that is in a header.
"""

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final
from urllib.parse import unquote

from spanreplay.instrumentation import _eventstream, _parts, _sse
from spanreplay.instrumentation._codec import Codec, Said
from spanreplay.instrumentation._lenient import as_text, dumps, integer, items, mapping, text
from spanreplay.instrumentation._outcomes import Assembled, answered, error_in, output, read
from spanreplay.instrumentation._parts import Message, Part, put, put_made
from spanreplay.instrumentation.provider import AttributeValue, ModelRequest, ModelResponse, trimmed
from spanreplay.semconv import attributes as names

_METHOD: Final = re.compile(r"/model/([^/]+)/converse(-stream)?$")
_MEDIA: Final[Mapping[str, str]] = {"image": "image", "document": "application", "video": "video", "audio": "audio"}
"""Kind of a block to the family of its media types."""
_FINISH_BACK: Final[Mapping[str, str]] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_call": "tool_use",
    "content_filter": "content_filtered",
}


class BedrockConverse(Codec):
    """Codec of ``POST /model/{model}/converse`` and ``/converse-stream``."""

    NAME: ClassVar[str] = "aws.bedrock.converse"
    PATHS: ClassVar[tuple[str, ...]] = ("/converse", "/converse-stream")
    LOCAL_IDS: ClassVar[tuple[str, ...]] = (
        "messages[*].content[*].toolUse.toolUseId",
        "messages[*].content[*].toolResult.toolUseId",
        "requestMetadata.*",
    )

    def matches(self, method: str, path: str, body: object) -> bool:
        """A POST with messages, or with the variables of a managed prompt."""
        found = mapping(body)
        return (
            method.upper() == "POST"
            and _METHOD.search(trimmed(path)) is not None
            and (isinstance(found.get("messages"), list) or isinstance(found.get("promptVariables"), dict))
        )

    def asked(self, path: str, body: object) -> object:
        """The body with ``model``, and for a stream ``stream`` (true)."""
        found = _METHOD.search(trimmed(path))
        if found is None:
            return body
        return {**mapping(body), "model": unquote(found[1]), **({"stream": True} if found[2] else {})}

    def request(self, body: object) -> ModelRequest:
        """Results of tools stay in the message of the role that the API gives them, ``user``."""
        found = mapping(body)
        view: dict[str, AttributeValue] = {names.GEN_AI_OPERATION_NAME: "chat", names.GEN_AI_PROVIDER_NAME: "aws.bedrock"}
        model = text(found.get("model"))
        put(view, names.GEN_AI_REQUEST_MODEL, model)
        config, further = mapping(found.get("inferenceConfig")), mapping(found.get("additionalModelRequestFields"))
        put(view, names.GEN_AI_REQUEST_MAX_TOKENS, integer(config.get("maxTokens")))
        told = {"temperature": config.get("temperature"), "top_p": config.get("topP"), "top_k": further.get("top_k")}
        _parts.put_settings(view, {**told, "stop_sequences": config.get("stopSequences")})
        stream = found.get("stream") is True
        put(view, names.GEN_AI_REQUEST_STREAM, True if stream else None)
        put_made(view, names.GEN_AI_SYSTEM_INSTRUCTIONS, items(found.get("system")), _part)
        put_made(view, names.GEN_AI_INPUT_MESSAGES, items(found.get("messages")), _message)
        offered = items(mapping(found.get("toolConfig")).get("tools"))
        put_made(view, names.GEN_AI_TOOL_DEFINITIONS, offered, _tool_definition)
        return ModelRequest(model=model, stream=stream, attributes=view)

    def response(self, status: int, content_type: str, body: bytes, request: object) -> ModelResponse:
        """One output message; its model is not told."""
        return read(
            status, content_type, body, list_field="output.message", assemble=_assemble, whole=_whole, streamed=_streamed, is_own=_is_own
        )

    def terminal(self, tail: bytes) -> bool:
        """``metadata``, or an exception."""
        return _eventstream.last_name(tail) in ("metadata", "error")

    def write(self, said: Said) -> tuple[str, bytes]:
        """All messages make one; id and model have no place here."""
        parts = _parts.all_parts(said.messages)
        reason = _parts.finish_of(said.messages, parts)
        blocks = [_block(part, place) for place, part in enumerate(parts)]
        end = {"stopReason": _FINISH_BACK.get(reason, reason)}
        counted = {"usage": _wire_usage(said.usage), "metrics": {"latencyMs": 0}}
        if said.asked.get("stream") is not True:
            message = {"role": "assistant", "content": blocks}
            return "application/json", dumps({"output": {"message": message}, **end, **counted}).encode()
        stream = [("messageStart", {"role": "assistant"}), *_events(blocks), ("messageStop", end), ("metadata", counted)]
        return _eventstream.CONTENT_TYPE, b"".join(_eventstream.event(name, dumps(value).encode()) for name, value in stream)


PROVIDER: Final = BedrockConverse()


# ---- the wire read -----------------------------------------------------------------------------------------------


def _message(message: object) -> Message:
    if not isinstance(message, dict):
        return {"role": "", "parts": [_parts.generic(message)]}
    return {"role": text(message.get("role")) or "", "parts": [_part(block) for block in items(message.get("content"))]}


def _part(block: object) -> Part:
    found = {key: value for key, value in mapping(block).items() if value is not None}
    if isinstance(found.get("text"), str):
        return _parts.extras(found, _parts.text_part(str(found["text"])), ("text",))
    if len(found) != 1:
        return _parts.generic(block)
    kind, value = next(iter(found.items()))
    inner = mapping(value)
    if kind == "toolUse":
        call = _parts.tool_call(inner.get("toolUseId"), inner.get("name"), None) | {"arguments": inner.get("input")}
        return _parts.extras({key: more for key, more in inner.items() if key != "type"}, call, ("toolUseId", "name", "input"))
    if kind == "toolResult":
        said = [_part(piece) for piece in items(inner.get("content"))]
        return _parts.extras(inner, _parts.tool_response(inner.get("toolUseId"), said), ("toolUseId", "content"))
    if kind == "json":
        return {"type": "json", "content": value}
    if kind == "reasoningContent":
        thought = mapping(inner.get("reasoningText"))
        if isinstance(thought.get("text"), str):
            return _parts.extras(thought, {"type": "reasoning", "content": thought["text"]}, ("text",))
        return _parts.generic(block)
    made = _media(kind, inner) if kind in _MEDIA else None
    return _parts.generic(block) if made is None else made


def _media(kind: str, value: Mapping[str, object]) -> Part | None:
    source, form = mapping(value.get("source")), text(value.get("format"))
    mime_type = f"{_MEDIA[kind]}/{form}" if form else None
    modality = kind if kind != "document" else "document"
    place = text(mapping(source.get("s3Location")).get("uri"))
    if isinstance(source.get("bytes"), str):
        made: Part = {"type": "blob", "mime_type": mime_type, "modality": modality, "content": source["bytes"]}
    elif place is not None:
        made = {"type": "uri", "mime_type": mime_type, "modality": modality, "uri": place}
    elif isinstance(source.get("text"), str):
        encoded = b64encode(str(source["text"]).encode("utf-8", "replace")).decode("ascii")
        made = {"type": "blob", "mime_type": "text/plain", "modality": modality, "content": encoded}
    else:
        return None
    return _parts.extras(value, made, ("source", "format"))


def _tool_definition(tool: object) -> object:
    found = mapping(mapping(tool).get("toolSpec"))
    if not found:
        return _parts.generic(tool)
    known = _parts.function(found.get("name"), found.get("description"), mapping(found.get("inputSchema")).get("json"))
    return _parts.extras(found, known, ("inputSchema",))


def _is_own(body: dict[str, object]) -> bool:
    return isinstance(mapping(mapping(body.get("output")).get("message")).get("content"), list)


def _streamed(content_type: str, body: bytes) -> _sse.Frames | None:
    named = "vnd.amazon.eventstream" in content_type.lower()
    plain = body.lstrip()[:1] in (b"{", b"[", b"<", b'"') or (not body and not named)
    return None if plain or (not named and "json" in content_type.lower()) else _eventstream.frames(body)


def _whole(body: dict[str, object]) -> ModelResponse:
    message = mapping(mapping(body.get("output")).get("message"))
    said = output(message.get("role"), [_part(block) for block in items(message.get("content"))], body.get("stopReason"))
    usage = mapping(body.get("usage"))
    given, cached, kept = (usage.get(key) for key in ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"))
    counts = {
        names.GEN_AI_USAGE_INPUT_TOKENS: _parts.total(given, cached, kept),
        names.GEN_AI_USAGE_OUTPUT_TOKENS: usage.get("outputTokens"),
        names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: cached,
        names.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: kept,
    }
    return answered([said] if message or said[1] else [], counts)


def _assemble(frames: _sse.Frames) -> Assembled:
    message: dict[str, object] = {}
    body: dict[str, object] = {}
    blocks: dict[int, dict[str, object]] = {}
    error: tuple[str, str] | None = None
    ended = False
    growth = _sse.Growth()
    for name, event in frames.objects:
        if name == "error":
            error = error or error_in(event)
        elif name == "messageStart":
            message["role"] = event.get("role")
        elif name == "contentBlockStart":
            started = mapping(event.get("start"))
            block = blocks.setdefault(integer(event.get("contentBlockIndex")) or 0, {})
            block.update({key: {**mapping(value), "input": ""} if key == "toolUse" else value for key, value in started.items()})
        elif name == "contentBlockDelta":
            _continue(blocks.setdefault(integer(event.get("contentBlockIndex")) or 0, {}), mapping(event.get("delta")), growth)
        elif name == "messageStop":
            body.update(event)
        elif name == "metadata":
            body.update(event)
            ended = True
    growth.settle()
    content = [_closed(blocks[index]) for index in sorted(blocks)]
    if message or content:
        body["output"] = {"message": {**message, "content": content}}
    return Assembled(body=body, complete=ended, error=error)


def _continue(block: dict[str, object], delta: Mapping[str, object], growth: _sse.Growth) -> None:
    said = delta.get("text")
    if isinstance(said, str):
        growth.add(block, "text", said)
    thought = mapping(delta.get("reasoningContent"))
    if thought:
        inner = block.setdefault("reasoningContent", {})
        target = inner if "redactedContent" in thought else mapping(inner).setdefault("reasoningText", {})
        for key, value in thought.items():
            if isinstance(value, str) and isinstance(target, dict):
                growth.add(target, key, value)
    piece = mapping(delta.get("toolUse")).get("input")
    if isinstance(piece, str):
        call = block.setdefault("toolUse", {})
        if isinstance(call, dict):
            growth.add(call, "input", piece)
    if isinstance(delta.get("citation"), dict):
        cited = block.setdefault("citations", [])
        if isinstance(cited, list):
            cited.append(delta["citation"])


def _closed(block: dict[str, object]) -> dict[str, object]:
    call = mapping(block.get("toolUse"))
    given = call.get("input")
    if isinstance(given, str):
        call["input"] = _parts.parsed(given) if given else {}
    return block


# ---- the wire written --------------------------------------------------------------------------------------------


def _block(part: Mapping[str, object], place: int) -> dict[str, object]:
    kind = part.get("type")
    if kind == "text":
        return {"text": _parts.content_of(part), **_parts.others(part, "content")}
    if kind == "reasoning":
        thought = {"text": _parts.content_of(part), **_parts.others(part, "content", "thinking", "text")}
        return {"reasoningContent": {"reasoningText": thought}}
    if kind == "tool_call":
        name = text(part.get("name")) or ""
        call_id = text(part.get("id")) or _parts.made_id("tooluse_", place, name, part.get("arguments"))
        more = _parts.others(part, "id", "name", "arguments")
        return {"toolUse": {"toolUseId": call_id, "name": name, "input": _parts.arguments_object(part), **more}}
    if kind == "refusal":
        return {"text": _parts.content_of(part)}
    value = _parts.original(part)
    if isinstance(value, dict) and kind == "generic":
        return value
    return {"text": as_text(value)}


def _wire_usage(usage: Mapping[str, int]) -> dict[str, object]:
    given, made = _parts.input_tokens(usage), _parts.output_tokens(usage)
    cached = _parts.count(usage, names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS)
    kept = _parts.count(usage, names.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS)
    counts: dict[str, object] = {"inputTokens": max(given - cached - kept, 0), "outputTokens": made, "totalTokens": given + made}
    more: dict[str, object] = {"cacheReadInputTokens": cached} if cached else {}
    return counts | more | ({"cacheWriteInputTokens": kept} if kept else {})


def _events(blocks: Sequence[dict[str, object]]) -> Iterator[tuple[str, dict[str, object]]]:
    for index, block in enumerate(blocks):
        place: dict[str, object] = {"contentBlockIndex": index}
        call = block.get("toolUse")
        if isinstance(call, dict):
            rest = {key: value for key, value in call.items() if key != "input"}
            yield "contentBlockStart", {"start": {"toolUse": rest}, **place}
            yield "contentBlockDelta", {"delta": {"toolUse": {"input": as_text(call.get("input"))}}, **place}
        elif "reasoningContent" in block:
            inner = mapping(block["reasoningContent"])
            for key, value in (mapping(inner.get("reasoningText")) or inner).items():
                yield "contentBlockDelta", {"delta": {"reasoningContent": {key: value}}, **place}
        elif "text" in block:
            yield "contentBlockDelta", {"delta": {"text": block["text"]}, **place}
            for cited in items(block.get("citations")):
                yield "contentBlockDelta", {"delta": {"citation": cited}, **place}
        else:  # what no stream has; nothing of it is lost
            yield "contentBlockStart", {"start": block, **place}
        yield "contentBlockStop", place
