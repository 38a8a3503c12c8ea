"""Cohere's chat, version 2 of its API, on every server that speaks it.

Wire format: <https://docs.cohere.com/reference/chat>, and its stream <https://docs.cohere.com/reference/chat-stream>. The response does not
say which model answered.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from spanreplay.instrumentation import _parts, _sse
from spanreplay.instrumentation._codec import Codec, Said
from spanreplay.instrumentation._lenient import dumps, integer, items, mapping, text
from spanreplay.instrumentation._outcomes import Assembled, answered, error_in, output, read
from spanreplay.instrumentation._parts import MESSAGE, Message, Part, put, put_made
from spanreplay.instrumentation.provider import AttributeValue, ModelRequest, ModelResponse, trimmed
from spanreplay.semconv import attributes as names

_FINISH_BACK: Final[Mapping[str, str]] = {"stop": "COMPLETE", "length": "MAX_TOKENS", "tool_call": "TOOL_CALL", "error": "ERROR"}
_PLAN: Final = "tool_plan"
_BLOCKS: Final = ("text", "thinking")


class CohereChat(Codec):
    """Codec of ``POST …/v2/chat``."""

    NAME: ClassVar[str] = "cohere.chat"
    PATHS: ClassVar[tuple[str, ...]] = ("/v2/chat",)
    LOCAL_IDS: ClassVar[tuple[str, ...]] = ("messages[*].tool_calls[*].id", "messages[*].tool_call_id")

    def matches(self, method: str, path: str, body: object) -> bool:
        """A POST with messages and a model."""
        found = mapping(body)
        asks = isinstance(found.get("messages"), list) and isinstance(found.get("model"), str)
        return method.upper() == "POST" and trimmed(path).endswith(self.PATHS) and asks

    def request(self, body: object) -> ModelRequest:
        """System messages stay among the input messages, since that is where the API has them."""
        found = mapping(body)
        view: dict[str, AttributeValue] = {names.GEN_AI_OPERATION_NAME: "chat", names.GEN_AI_PROVIDER_NAME: "cohere"}
        model = text(found.get("model"))
        put(view, names.GEN_AI_REQUEST_MODEL, model)
        put(view, names.GEN_AI_REQUEST_MAX_TOKENS, integer(found.get("max_tokens")))
        _parts.put_settings(view, {**found, "top_p": found.get("p"), "top_k": found.get("k")})
        kind = text(mapping(found.get("response_format")).get("type"))
        put(view, names.GEN_AI_OUTPUT_TYPE, "json" if kind == "json_object" else kind)
        stream = found.get("stream")
        put(view, names.GEN_AI_REQUEST_STREAM, stream if isinstance(stream, bool) else None)
        put_made(view, names.GEN_AI_INPUT_MESSAGES, items(found.get("messages")), _message)
        put_made(view, names.GEN_AI_TOOL_DEFINITIONS, items(found.get("tools")), _parts.nested_definition)
        return ModelRequest(model=model, stream=stream is True, attributes=view)

    def response(self, status: int, content_type: str, body: bytes, request: object) -> ModelResponse:
        """One output message."""
        return read(status, content_type, body, list_field="message", assemble=_assemble, whole=_whole, is_own=_is_own)

    def terminal(self, tail: bytes) -> bool:
        """``message-end``, or an error."""
        return not {"message-end", "error"}.isdisjoint(_sse.last_names(tail))

    def write(self, said: Said) -> tuple[str, bytes]:
        """All messages make one; a model has no place here."""
        parts = _parts.all_parts(said.messages)
        reason = _parts.finish_of(said.messages, parts)
        message = _wire_message(parts)
        made_id = said.response_id or _parts.made_id("", message)
        end = {"finish_reason": _FINISH_BACK.get(reason, reason), "usage": _wire_usage(said.usage)}
        if said.asked.get("stream") is True:
            stream = _events(message, made_id, end)
            return _sse.CONTENT_TYPE, _sse.render((str(event["type"]), event) for event in stream)
        return "application/json", dumps({"id": made_id, "message": message, **end}).encode()


PROVIDER: Final = CohereChat()


# ---- the wire read -----------------------------------------------------------------------------------------------


def _message(message: object) -> Message:
    if not isinstance(message, dict):
        return {"role": "", "parts": [_parts.generic(message)]}
    role, content = text(message.get("role")) or "", message.get("content")
    if role == "tool":
        return {"role": role, "parts": [_parts.tool_response(message.get("tool_call_id"), content)]}
    return {"role": role, "parts": _message_parts(message)}


def _message_parts(message: Mapping[str, object]) -> list[Part]:
    parts: list[Part] = []
    plan, content = message.get(_PLAN), message.get("content")
    if isinstance(plan, str) and plan:
        parts.append({"type": "reasoning", "content": plan, "field": _PLAN})
    if isinstance(content, str) and content:
        parts.append(_parts.text_part(content))
    elif isinstance(content, list):
        parts.extend(map(_block_part, content))
    for call in items(message.get("tool_calls")):
        function = mapping(mapping(call).get("function"))
        made = _parts.tool_call(mapping(call).get("id"), function.get("name"), function.get("arguments"))
        parts.append(made if function else _parts.generic(call, MESSAGE + "tool_call"))
    if message.get("citations"):
        parts.append(_parts.generic(message["citations"], MESSAGE + "citations"))
    return parts


def _block_part(block: object) -> Part:
    found = mapping(block)
    kind = found.get("type")
    if kind in _BLOCKS and isinstance(found.get(str(kind)), str):
        part: Part = {"type": "text" if kind == "text" else "reasoning", "content": found[str(kind)]}
        return _parts.extras(found, part, (str(kind),))
    if kind == "image_url":
        image = mapping(found.get("image_url"))
        made = _parts.media(image.get("url"), "image")
        if made is not None:
            return _parts.extras(image, made, ("url",))
    return _parts.generic(block)


def _is_own(body: dict[str, object]) -> bool:
    return isinstance(body.get("message"), dict)


def _whole(body: dict[str, object]) -> ModelResponse:
    message = mapping(body.get("message"))
    said = output(message.get("role"), _message_parts(message), body.get("finish_reason"))
    usage = mapping(body.get("usage"))
    counted = mapping(usage.get("tokens")) or mapping(usage.get("billed_units"))
    counts = {
        names.GEN_AI_USAGE_INPUT_TOKENS: counted.get("input_tokens"),
        names.GEN_AI_USAGE_OUTPUT_TOKENS: counted.get("output_tokens"),
        names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: usage.get("cached_tokens"),
    }
    return answered([said] if message or said[1] else [], counts, response_id=body.get("id"))


def _assemble(frames: _sse.Frames) -> Assembled:
    body: dict[str, object] = {}
    message: dict[str, object] = {}
    blocks: dict[int, dict[str, object]] = {}
    calls: dict[int, dict[str, object]] = {}
    cited: list[object] = []
    error: tuple[str, str] | None = None
    ended = False
    growth = _sse.Growth()
    for name, event in frames.objects:
        delta = mapping(event.get("delta"))
        said, index = mapping(delta.get("message")), integer(event.get("index")) or 0
        if name == "message-start":
            body["id"] = event.get("id")
            message["role"] = said.get("role")
        elif name in ("content-start", "content-delta"):
            _continue(blocks.setdefault(index, {}), mapping(said.get("content")), growth, _BLOCKS)
        elif name == "tool-plan-delta" and isinstance(said.get(_PLAN), str):
            growth.add(message, _PLAN, str(said[_PLAN]))
        elif name in ("tool-call-start", "tool-call-delta"):
            given = mapping(said.get("tool_calls"))
            call = calls.setdefault(index, {"function": {}})
            _continue(call, {key: value for key, value in given.items() if key != "function"}, growth, ())
            _continue(mapping(call["function"]), mapping(given.get("function")), growth, ("arguments",))
        elif name == "citation-start":
            cited.append(said.get("citations"))
        elif name == "message-end":
            ended = True
            body.update({key: value for key, value in delta.items() if value is not None})
        else:
            error = error or error_in(event)
    growth.settle()
    message["content"] = [blocks[index] for index in sorted(blocks)]
    message["tool_calls"] = [calls[index] for index in sorted(calls)]
    message["citations"] = cited
    return Assembled(body={**body, **({"message": message} if frames.objects else {})}, complete=ended, error=error)


def _continue(into: dict[str, object], delta: Mapping[str, object], growth: _sse.Growth, grows: Sequence[str]) -> None:
    for key, value in delta.items():
        if isinstance(value, str) and key in grows:
            growth.add(into, key, value)
        elif value is not None:
            into[key] = value
    if grows == _BLOCKS and "type" not in into and "thinking" in into:
        into["type"] = "thinking"


# ---- the wire written --------------------------------------------------------------------------------------------


def _wire_message(parts: Sequence[Mapping[str, object]]) -> dict[str, object]:
    message: dict[str, object] = {"role": "assistant"}
    content: list[object] = []
    calls: list[object] = []
    for part in parts:
        kind, field = part.get("type"), _parts.field_of(part)
        if kind == "reasoning" and part.get("field") == _PLAN:
            message[_PLAN] = f"{message.get(_PLAN, '')}{_parts.content_of(part)}"
        elif kind in ("text", "reasoning"):
            block = _BLOCKS[kind == "reasoning"]
            content.append({"type": block, block: _parts.content_of(part), **_parts.others(part, "content", *_BLOCKS)})
        elif kind == "refusal":
            content.append({"type": "text", "text": _parts.content_of(part)})
        elif kind == "tool_call":
            name = text(part.get("name")) or ""
            call_id = text(part.get("id")) or _parts.made_id("call_", len(calls), name, part.get("arguments"))
            calls.append({"id": call_id, "type": "function", "function": {"name": name, "arguments": _parts.arguments_text(part)}})
        elif field == "tool_call":
            calls.append(part.get("value"))
        elif field is not None:
            message[field] = part.get("value")
        else:
            value = _parts.original(part)
            content.append(value if isinstance(value, dict) else {"type": "text", "text": dumps(value)})
    return {**message, **({"content": content} if content else {}), **({"tool_calls": calls} if calls else {})}


def _wire_usage(usage: Mapping[str, int]) -> dict[str, object]:
    counts = {"input_tokens": _parts.input_tokens(usage), "output_tokens": _parts.output_tokens(usage)}
    cached = _parts.count(usage, names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS)
    return {"billed_units": counts, "tokens": counts, **({"cached_tokens": cached} if cached else {})}


def _events(message: Mapping[str, object], made_id: str, end: Mapping[str, object]) -> Iterator[dict[str, object]]:
    empty = {"role": "assistant", "content": [], _PLAN: "", "tool_calls": [], "citations": []}
    yield {"type": "message-start", "id": made_id, "delta": {"message": empty}}
    if message.get(_PLAN):
        yield {"type": "tool-plan-delta", "delta": {"message": {_PLAN: message[_PLAN]}}}
    for index, block in enumerate(map(mapping, items(message.get("content")))):
        grown = {key: value for key, value in block.items() if key in _BLOCKS}
        begun = {**block, **dict.fromkeys(grown, "")} if grown else block
        yield {"type": "content-start", "index": index, "delta": {"message": {"content": begun}}}
        if grown:
            yield {"type": "content-delta", "index": index, "delta": {"message": {"content": grown}}}
        yield {"type": "content-end", "index": index}
    for index, call in enumerate(map(mapping, items(message.get("tool_calls")))):
        function = mapping(call.get("function"))
        begun = {**call, "function": {**function, "arguments": ""}}
        yield {"type": "tool-call-start", "index": index, "delta": {"message": {"tool_calls": begun}}}
        piece = {"function": {"arguments": function.get("arguments")}}
        yield {"type": "tool-call-delta", "index": index, "delta": {"message": {"tool_calls": piece}}}
        yield {"type": "tool-call-end", "index": index}
    for index, cited in enumerate(items(message.get("citations"))):
        yield {"type": "citation-start", "index": index, "delta": {"message": {"citations": cited}}}
        yield {"type": "citation-end", "index": index}
    yield {"type": "message-end", "id": made_id, "delta": dict(end)}
