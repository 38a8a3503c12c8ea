"""Anthropic Messages, on Anthropic's own API, on Bedrock and Vertex AI, and on every server that speaks it.

Wire format: <https://docs.anthropic.com/en/api/messages> and ``…/messages-streaming``. On Bedrock and Vertex AI the path names the model,
and says whether the answer is streamed; Bedrock streams each event in a message of its own framing.
"""

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final
from urllib.parse import unquote

from spanreplay.instrumentation import _eventstream, _parts, _sse
from spanreplay.instrumentation._codec import Codec, Said
from spanreplay.instrumentation._lenient import as_text, dumps, integer, items, loads, mapping, text
from spanreplay.instrumentation._outcomes import Assembled, answered, error_in, output, read
from spanreplay.instrumentation._parts import Message, Part, put, put_json, put_made
from spanreplay.instrumentation.provider import AttributeValue, ModelRequest, ModelResponse, trimmed
from spanreplay.semconv import attributes as names

_FINISH_BACK: Final[Mapping[str, str]] = {"stop": "end_turn", "length": "max_tokens", "tool_call": "tool_use", "content_filter": "refusal"}
_STREAMED: Final[Mapping[str, tuple[str, str]]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "compaction_delta": ("content", "content"),
}
"""Delta type to (its field, the block's field that it continues)."""
_HOSTED: Final = re.compile(
    r"/model/(?P<bedrock>[^/]+)/invoke(?P<streams>-with-response-stream)?$|/(?P<vertex>[^/:]+):(?P<method>rawPredict|streamRawPredict)$"
)
_FRAMES: Final = "frames"
"""Field that :meth:`AnthropicMessages.asked` adds where the events of a stream are framed as Bedrock frames them."""
_MODALITIES: Final[Mapping[str, str]] = {"image": "image", "document": "document"}


class AnthropicMessages(Codec):
    """Codec of ``POST …/messages``, and of where Claude is hosted; counting tokens and batches have other paths."""

    NAME: ClassVar[str] = "anthropic.messages"
    PATHS: ClassVar[tuple[str, ...]] = ("/messages", "/invoke", "/invoke-with-response-stream", ":rawPredict", ":streamRawPredict")
    LOCAL_IDS: ClassVar[tuple[str, ...]] = ("messages[*].content[*].id", "messages[*].content[*].tool_use_id")

    def matches(self, method: str, path: str, body: object) -> bool:
        """A POST with a model and messages; where the path names the model, with the version of the API."""
        found = mapping(body)
        place = trimmed(path)
        named = found.get("anthropic_version") if _HOSTED.search(place) else found.get("model") if place.endswith("/messages") else None
        return method.upper() == "POST" and isinstance(found.get("messages"), list) and isinstance(named, str)

    def asked(self, path: str, body: object) -> object:
        """The body; where the path names the model, with that, and for a stream ``stream`` (true) and how it is framed."""
        hosted = _HOSTED.search(trimmed(path))
        if hosted is None:
            return body
        told = {**mapping(body), "model": unquote(hosted["bedrock"] or hosted["vertex"])}
        if hosted["streams"]:
            return {**told, "stream": True, _FRAMES: "aws"}
        return {**told, "stream": True} if hosted["method"] == "streamRawPredict" else told

    def request(self, body: object) -> ModelRequest:
        """Tool results stay in the message of the role that the API gives them, ``user``."""
        found = mapping(body)
        view: dict[str, AttributeValue] = {names.GEN_AI_OPERATION_NAME: "chat", names.GEN_AI_PROVIDER_NAME: "anthropic"}
        model = text(found.get("model"))
        put(view, names.GEN_AI_REQUEST_MODEL, model)
        put(view, names.GEN_AI_REQUEST_MAX_TOKENS, integer(found.get("max_tokens")))
        _parts.put_settings(view, {key: found.get(key) for key in ("temperature", "top_p", "top_k", "stop_sequences")})
        config = mapping(found.get("output_config"))
        put(view, names.GEN_AI_REQUEST_REASONING_LEVEL, text(config.get("effort")))
        shape = mapping(config.get("format") or found.get("output_format")).get("type")
        put(view, names.GEN_AI_OUTPUT_TYPE, "json" if isinstance(shape, str) and shape.startswith("json") else None)
        stream = found.get("stream")
        put(view, names.GEN_AI_REQUEST_STREAM, stream if isinstance(stream, bool) else None)
        put_json(view, names.GEN_AI_SYSTEM_INSTRUCTIONS, _content_parts(found.get("system")))
        put_made(view, names.GEN_AI_INPUT_MESSAGES, items(found.get("messages")), _input_message)
        put_made(view, names.GEN_AI_TOOL_DEFINITIONS, items(found.get("tools")), _tool_definition)
        return ModelRequest(model=model, stream=stream is True, attributes=view)

    def response(self, status: int, content_type: str, body: bytes, request: object) -> ModelResponse:
        """One output message. Input tokens include the cached ones, as the conventions have it and the API does not."""
        return read(status, content_type, body, list_field="content", assemble=_assemble, whole=_whole, streamed=_streamed)

    def terminal(self, tail: bytes) -> bool:
        """``message_stop`` or ``error``."""
        if not {"message_stop", "error"}.isdisjoint(_sse.last_names(tail)):
            return True
        hosted = _eventstream.last(tail)
        return hosted is not None and (_eventstream.last_name(tail) == "error" or _ended(hosted[1]))

    def write(self, said: Said) -> tuple[str, bytes]:
        """All messages make one; a reason to finish that has no counterpart here is written as it is."""
        parts = _parts.all_parts(said.messages)
        reason = _parts.finish_of(said.messages, parts)
        response_id = said.response_id or _parts.made_id("msg_", parts)
        full: dict[str, object] = {
            "id": response_id,
            "type": "message",
            "role": "assistant",
            "model": said.model,
            "content": [_wire_block(part, f"{response_id}/{place}") for place, part in enumerate(parts)],
            "stop_reason": _FINISH_BACK.get(reason, reason),
            "stop_sequence": None,
            "usage": _wire_usage(said.usage),
        }
        if said.asked.get("stream") is True and said.asked.get(_FRAMES) == "aws":
            return _eventstream.CONTENT_TYPE, b"".join(_eventstream.wrapped(dumps(event).encode()) for event in _events(full))
        if said.asked.get("stream") is True:
            return _sse.CONTENT_TYPE, _sse.render((str(event["type"]), event) for event in _events(full))
        return "application/json", dumps(full).encode()


PROVIDER: Final = AnthropicMessages()


# ---- the wire read -----------------------------------------------------------------------------------------------


def _tool_definition(tool: object) -> object:
    found = {key: value for key, value in mapping(tool).items() if value is not None}
    if found.get("type", "custom") != "custom" or not found:
        return found or _parts.generic(tool)
    known = _parts.function(found.get("name"), found.get("description"), found.get("input_schema"))
    return _parts.extras(found, known, ("input_schema",))


def _input_message(message: object) -> Message:
    found = mapping(message)
    if not found:
        return {"role": "", "parts": [_parts.generic(message)]}
    return {"role": text(found.get("role")) or "", "parts": _content_parts(found.get("content"))}


def _content_parts(content: object) -> list[Part]:
    if isinstance(content, str):
        return [_parts.text_part(content)] if content else []
    return [_block_part(block) for block in items(content)]


def _block_part(block: object) -> Part:
    found = mapping(block)
    kind = found.get("type")
    if kind == "text" and isinstance(found.get("text"), str):
        return _parts.extras(found, _parts.text_part(str(found["text"])), ("text",))
    if kind == "thinking" and isinstance(found.get("thinking"), str):
        return _parts.extras(found, {"type": "reasoning", "content": found["thinking"]}, ("thinking",))
    if kind == "tool_use":
        made = found.get("input")
        call: Part = {"type": "tool_call", "id": text(found.get("id")), "name": text(found.get("name")) or "", "arguments": made}
        return _parts.extras(found, call, ("input",))
    if kind == "tool_result":
        return _parts.extras(found, _parts.tool_response(found.get("tool_use_id"), found.get("content")), ("tool_use_id", "content"))
    if isinstance(kind, str) and kind in _MODALITIES:
        part = _media_part(mapping(found.get("source")), _MODALITIES[kind])
        if part:
            return _parts.extras(found, part, ("source",))
    return _parts.generic(block)


def _media_part(source: Mapping[str, object], modality: str) -> Part | None:
    kind, mime_type = source.get("type"), text(source.get("media_type"))
    if kind == "base64" and isinstance(source.get("data"), str):
        return {"type": "blob", "mime_type": mime_type, "modality": modality, "content": source["data"]}
    if kind == "url":
        return _parts.media(source.get("url"), modality, mime_type)
    return _parts.file(source.get("file_id"), modality) if kind == "file" else None


def _whole(body: dict[str, object]) -> ModelResponse:
    parts = _content_parts(body.get("content"))
    said = output(body.get("role"), parts, body.get("stop_reason"))
    usage = mapping(body.get("usage"))
    cached, written = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    counts = {
        names.GEN_AI_USAGE_INPUT_TOKENS: _parts.total(usage.get("input_tokens"), cached, written),
        names.GEN_AI_USAGE_OUTPUT_TOKENS: usage.get("output_tokens"),
        names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: cached,
        names.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: written,
    }
    return answered([said] if parts or said[1] else [], counts, response_id=body.get("id"), model=body.get("model"))


def _streamed(content_type: str, body: bytes) -> _sse.Frames | None:
    if _eventstream.CONTENT_TYPE in content_type.lower():
        return _eventstream.unwrapped(_eventstream.frames(body))
    return _sse.frames(body) if _sse.is_stream(content_type, body) else None


def _ended(payload: bytes) -> bool:
    try:
        event = _eventstream.inner(loads(payload))
    except ValueError:
        return False
    return event is not None and event.get("type") in ("message_stop", "error")


def _assemble(frames: _sse.Frames) -> Assembled:
    head: dict[str, object] = {}
    blocks: dict[int, dict[str, object]] = {}
    written: dict[int, list[str]] = {}
    error: tuple[str, str] | None = None
    ended = False
    growth = _sse.Growth()
    for name, event in frames.objects:
        kind = text(event.get("type")) or name
        index = integer(event.get("index"))
        if kind == "message_start":
            head = mapping(event.get("message"))
        elif kind == "content_block_start" and index is not None:
            blocks[index] = mapping(event.get("content_block"))
        elif kind == "content_block_delta" and index is not None:
            _continue(blocks.setdefault(index, {}), written.setdefault(index, []), mapping(event.get("delta")), growth)
        elif kind == "message_delta":
            head |= {key: value for key, value in mapping(event.get("delta")).items() if value is not None}
            counted = {key: value for key, value in mapping(event.get("usage")).items() if value is not None}
            head["usage"] = {**mapping(head.get("usage")), **counted}
        elif kind == "message_stop":
            ended = True
        elif kind == "error":
            error = error or error_in({**event, "type": "error"})
    growth.settle()
    for index, pieces in written.items():
        if pieces:
            blocks[index]["input"] = _parts.parsed("".join(pieces))
    content = [blocks[index] for index in sorted(blocks)]
    return Assembled(body={**head, "content": content}, complete=ended, error=error)


def _continue(block: dict[str, object], written: list[str], delta: Mapping[str, object], growth: _sse.Growth) -> None:
    kind = delta.get("type")
    if kind == "input_json_delta":
        piece = delta.get("partial_json")
        if isinstance(piece, str) and piece:
            written.append(piece)
    elif kind == "citations_delta":
        block["citations"] = [*items(block.get("citations")), delta.get("citation")]
    elif isinstance(kind, str) and kind in _STREAMED:
        source, field = _STREAMED[kind]
        piece = delta.get(source)
        if isinstance(piece, str):
            block.setdefault("type", kind.removesuffix("_delta"))
            growth.add(block, field, piece)


# ---- the wire written --------------------------------------------------------------------------------------------


def _wire_block(part: Mapping[str, object], place: str) -> dict[str, object]:
    kind = part.get("type")
    if kind == "text":
        return {"type": "text", "text": _parts.content_of(part), **_parts.others(part, "content")}
    if kind == "reasoning":
        return {"type": "thinking", "thinking": _parts.content_of(part), "signature": "", **_parts.others(part, "content")}
    if kind == "tool_call":
        call_id = text(part.get("id")) or _parts.made_id("toolu_", place, part.get("name"))
        head = {"type": "tool_use", "id": call_id, "name": text(part.get("name")) or "", "input": _parts.arguments_object(part)}
        return head | _parts.others(part, "id", "name", "arguments")
    value = part.get("refusal", part.get("content")) if kind == "refusal" else _parts.original(part)
    return value if isinstance(value, dict) else {"type": "text", "text": as_text(value)}


def _wire_usage(usage: Mapping[str, int]) -> dict[str, object]:
    cached = _parts.count(usage, names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS)
    written = _parts.count(usage, names.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS)
    return {
        "input_tokens": max(_parts.input_tokens(usage) - cached - written, 0),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": cached,
        "output_tokens": _parts.output_tokens(usage),
    }


def _events(full: Mapping[str, object]) -> Iterator[dict[str, object]]:
    usage = mapping(full["usage"])
    begun = {**full, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 0}}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(map(mapping, items(full["content"]))):
        start, deltas = _split(block)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": full["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}


def _split(block: dict[str, object]) -> tuple[dict[str, object], list[dict[str, object]]]:
    """A block as its first event announces it, and the deltas that fill it."""
    kind = block.get("type")
    if kind == "text":
        start = {**block, "text": ""}
        cited: list[dict[str, object]] = [{"type": "citations_delta", "citation": value} for value in items(start.pop("citations", None))]
        return start, [{"type": "text_delta", "text": block["text"]}, *cited]
    if kind == "thinking":
        deltas: list[dict[str, object]] = [{"type": "thinking_delta", "thinking": block.get("thinking")}]
        if block.get("signature"):
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {**block, "thinking": "", "signature": ""}, deltas
    if kind == "tool_use":
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": as_text(block["input"])}]
    return block, []
