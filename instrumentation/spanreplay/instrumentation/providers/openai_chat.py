"""OpenAI Chat Completions, and every server that speaks it.

Wire format: <https://platform.openai.com/docs/api-reference/chat>. Fields that compatible servers add (``reasoning_content`` of DeepSeek
and vLLM, ``reasoning`` of OpenRouter, content chunks of Mistral, legacy ``function_call``) are read too.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final
from urllib.parse import unquote

from spanreplay.instrumentation import _parts, _sse
from spanreplay.instrumentation._codec import Codec, Said
from spanreplay.instrumentation._lenient import dumps, integer, items, mapping, text
from spanreplay.instrumentation._outcomes import Assembled, answered, error_in, output, read
from spanreplay.instrumentation._parts import MESSAGE, Message, Part, put, put_made
from spanreplay.instrumentation.provider import AttributeValue, ModelRequest, ModelResponse, trimmed
from spanreplay.semconv import attributes as names

_REASONING: Final = ("reasoning_content", "reasoning")
_MESSAGE_FIELDS: Final = frozenset(
    {"role", "content", "name", "tool_calls", "function_call", "refusal", "annotations", "tool_call_id", *_REASONING}
)
_WHOLE: Final = frozenset({"id", "type", "role", "name", "index", "format"})
"""Delta fields that come once, or again in full, and are never continued."""
_FINISH_BACK: Final[Mapping[str, str]] = {"tool_call": "tool_calls"}


class OpenAIChat(Codec):
    """Codec of ``POST …/chat/completions``."""

    NAME: ClassVar[str] = "openai.chat"
    PATHS: ClassVar[tuple[str, ...]] = ("/chat/completions",)
    LOCAL_IDS: ClassVar[tuple[str, ...]] = (
        "messages[*].tool_calls[*].id",
        "messages[*].tool_call_id",
        "messages[*].id",
        "prompt_cache_key",
        "metadata.*",
    )
    LOCAL_TIMES: ClassVar[tuple[str, ...]] = ("created", "messages[*].created", "messages[*].created_at")

    def matches(self, method: str, path: str, body: object) -> bool:
        """A POST with messages and a model; on Azure the model may stand in the path as the deployment."""
        found = mapping(body)
        return (
            method.upper() == "POST"
            and trimmed(path).endswith(self.PATHS)
            and isinstance(found.get("messages"), list)
            and (isinstance(found.get("model"), str) or "/deployments/" in path)
        )

    def asked(self, path: str, body: object) -> object:
        """On Azure the path may name the model, as the deployment."""
        found = mapping(body)
        deployment = path.partition("/deployments/")[2].partition("/")[0]
        return {**found, "model": unquote(deployment)} if deployment and not isinstance(found.get("model"), str) else body

    def request(self, body: object) -> ModelRequest:
        """System and developer messages stay among the input messages, since that is where the API has them."""
        found = mapping(body)
        view: dict[str, AttributeValue] = {names.GEN_AI_OPERATION_NAME: "chat", names.GEN_AI_PROVIDER_NAME: "openai"}
        view[names.OPENAI_API_TYPE] = "chat_completions"
        model = text(found.get("model"))
        put(view, names.GEN_AI_REQUEST_MODEL, model)
        limit = integer(found.get("max_completion_tokens"))
        put(view, names.GEN_AI_REQUEST_MAX_TOKENS, integer(found.get("max_tokens")) if limit is None else limit)
        choices = integer(found.get("n"))
        put(view, names.GEN_AI_REQUEST_CHOICE_COUNT, None if choices == 1 else choices)
        _parts.put_settings(view, {**found, "stop_sequences": found.get("stop")})
        put(view, names.GEN_AI_REQUEST_REASONING_LEVEL, text(found.get("reasoning_effort")))
        put(view, names.GEN_AI_OUTPUT_TYPE, _output_type(found))
        stream = found.get("stream")
        put(view, names.GEN_AI_REQUEST_STREAM, stream if isinstance(stream, bool) else None)
        put_made(view, names.GEN_AI_INPUT_MESSAGES, items(found.get("messages")), _input_message)
        offered = [*items(found.get("tools")), *({"type": "function", "function": tool} for tool in items(found.get("functions")))]
        put_made(view, names.GEN_AI_TOOL_DEFINITIONS, offered, _tool_definition)
        return ModelRequest(model=model, stream=stream is True, attributes=view)

    def response(self, status: int, content_type: str, body: bytes, request: object) -> ModelResponse:
        """One output message per choice."""
        return read(status, content_type, body, list_field="choices", assemble=_assemble, whole=_whole)

    def terminal(self, tail: bytes) -> bool:
        """``[DONE]``, or an error in place of a chunk."""
        return not {_sse.DONE, "error"}.isdisjoint(_sse.last_names(tail))

    def write(self, said: Said) -> tuple[str, bytes]:
        """All messages make one choice, unless the request asks for several."""
        choices: list[tuple[dict[str, object], str]] = []
        for group in said.choices(said.asked.get("n")):
            parts = _parts.all_parts(group)
            reason = _parts.finish_of(group, parts)
            choices.append((_wire_message(parts), _FINISH_BACK.get(reason, reason)))
        head: dict[str, object] = {
            "id": said.response_id or _parts.made_id("chatcmpl-", [message for message, _ in choices]),
            "created": 0,
            "model": said.model,
        }
        counts = _wire_usage(said.usage) if said.usage else None
        if said.asked.get("stream") is True:
            wants_usage = mapping(said.asked.get("stream_options")).get("include_usage") is True
            return _sse.CONTENT_TYPE, _sse.render(_chunks(head, choices, counts if wants_usage else None))
        full: dict[str, object] = {
            **head,
            "object": "chat.completion",
            "choices": [
                {"index": index, "message": message, "logprobs": None, "finish_reason": reason}
                for index, (message, reason) in enumerate(choices)
            ],
        }
        if counts:
            full["usage"] = counts
        return "application/json", dumps(full).encode()


PROVIDER: Final = OpenAIChat()


# ---- the wire read -----------------------------------------------------------------------------------------------


def _output_type(body: Mapping[str, object]) -> str | None:
    kind = mapping(body.get("response_format")).get("type")
    if isinstance(kind, str):
        return "json" if kind.startswith("json") else kind
    return "speech" if "audio" in _parts.strings(body.get("modalities")) else None


def _tool_definition(tool: object) -> object:
    return _parts.nested_definition(tool, text(mapping(tool).get("type")) or "function")


def _input_message(message: object) -> Message:
    if not isinstance(message, dict):
        return {"role": "", "parts": [_parts.generic(message)]}
    role = text(message.get("role")) or ""
    if role in ("tool", "function"):
        parts = [_parts.tool_response(message.get("tool_call_id"), message.get("content"))]
    else:
        parts = _message_parts(message)
    made: Message = {"role": role, "parts": parts}
    if isinstance(message.get("name"), str):
        made["name"] = message["name"]
    return made


def _message_parts(message: Mapping[str, object]) -> list[Part]:
    parts: list[Part] = []
    for field in _REASONING:
        thought = message.get(field)
        if isinstance(thought, str) and thought and all(other.get("content") != thought for other in parts):
            part: Part = {"type": "reasoning", "content": thought}
            parts.append(part if field == _REASONING[0] else part | {"field": field})
        elif thought and not isinstance(thought, str):
            parts.append(_parts.generic(thought, MESSAGE + field))
    content, annotations = message.get("content"), message.get("annotations")
    if isinstance(content, str) and content:
        parts.append(_parts.extras({"annotations": annotations}, _parts.text_part(content)))
    else:
        if isinstance(content, list):
            parts.extend(map(_content_part, content))
        elif content:
            parts.append(_parts.generic(content, MESSAGE + "content"))
        if annotations:
            parts.append(_parts.generic(annotations, MESSAGE + "annotations"))
    refusal = message.get("refusal")
    if refusal:
        parts.append({"type": "refusal", "refusal": refusal})
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        parts.extend(map(_call_part, calls))
    elif calls:
        parts.append(_parts.generic(calls, MESSAGE + "tool_calls"))
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        parts.append(_parts.tool_call(None, legacy.get("name"), legacy.get("arguments")) | {"tool_type": "function_call"})
    parts.extend(
        _parts.generic(value, MESSAGE + field)
        for field, value in message.items()
        if field not in _MESSAGE_FIELDS and value not in (None, "", [], {})
    )
    return parts


def _content_part(chunk: object) -> Part:
    if isinstance(chunk, str):
        return _parts.text_part(chunk)
    found = mapping(chunk)
    kind = found.get("type")
    inner = mapping(found.get(kind)) if isinstance(kind, str) else {}
    part: Part | None = None
    if kind == "text" and isinstance(found.get("text"), str):
        return _parts.extras(found, _parts.text_part(str(found["text"])), ("text",))
    if kind == "image_url":
        part = _parts.media(inner.get("url") or found.get("image_url"), "image")
        if part and inner.get("detail"):
            part["detail"] = inner["detail"]
    elif kind == "input_audio":
        part = _parts.sound(inner)
    elif kind == "file":
        part = _parts.media(inner.get("file_data"), None) or _parts.file(inner.get("file_id"), "document")
        if part and inner.get("filename"):
            part["filename"] = inner["filename"]
    return _parts.generic(chunk) if part is None else part


def _call_part(call: object) -> Part:
    found = mapping(call)
    function, custom = found.get("function"), found.get("custom")
    if isinstance(function, dict):
        part = _parts.tool_call(found.get("id"), function.get("name"), function.get("arguments"))
    elif isinstance(custom, dict):
        part = _parts.tool_call(found.get("id"), custom.get("name"), None) | {"arguments": custom.get("input"), "tool_type": "custom"}
    else:
        return _parts.generic(call, MESSAGE + "tool_call")
    return _parts.extras(found, part, ("function", "custom", "index"))


def _whole(body: dict[str, object]) -> ModelResponse:
    outputs: list[tuple[Message, str | None]] = []
    for choice in map(mapping, items(body.get("choices"))):
        message = mapping(choice.get("message"))
        outputs.append(output(message.get("role"), _message_parts(message), choice.get("finish_reason")))
    usage = mapping(body.get("usage"))
    given, made_of = mapping(usage.get("prompt_tokens_details")), mapping(usage.get("completion_tokens_details"))
    cached = integer(given.get("cached_tokens"))
    counts = {
        names.GEN_AI_USAGE_INPUT_TOKENS: usage.get("prompt_tokens"),
        names.GEN_AI_USAGE_OUTPUT_TOKENS: usage.get("completion_tokens"),
        names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: usage.get("prompt_cache_hit_tokens") if cached is None else cached,
        names.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: given.get("cache_write_tokens"),
        names.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: made_of.get("reasoning_tokens"),
    }
    return answered(outputs, counts, response_id=body.get("id"), model=body.get("model"))


def _assemble(frames: _sse.Frames) -> Assembled:
    head: dict[str, object] = {}
    choices: dict[int, dict[str, object]] = {}
    error: tuple[str, str] | None = None
    growth = _sse.Growth()
    for _, chunk in frames.objects:
        error = error or error_in(chunk)
        head.update({key: value for key, value in chunk.items() if key != "choices" and value not in (None, "")})
        for place, delta in enumerate(map(mapping, items(chunk.get("choices")))):
            index = integer(delta.get("index"))
            choice = choices.setdefault(place if index is None else index, {"message": {}})
            _continue(mapping(choice["message"]), mapping(delta.get("delta") or delta.get("message")), growth)
            if delta.get("finish_reason"):
                choice["finish_reason"] = delta["finish_reason"]
    growth.settle()
    body = {**head, "choices": [choices[index] for index in sorted(choices)]}
    return Assembled(body=body, complete=frames.done, error=error)


def _continue(message: dict[str, object], delta: dict[str, object], growth: _sse.Growth) -> None:
    calls = delta.pop("tool_calls", None)
    _merge(message, delta, growth, 0)
    if not isinstance(calls, list):
        return
    have = message.setdefault("tool_calls", [])
    if isinstance(have, list):
        for call in calls:
            found = mapping(call)
            _merge(_call_meant(have, found), found, growth, 0)


def _call_meant(have: list[dict[str, object]], delta: Mapping[str, object]) -> dict[str, object]:
    """The call that a delta continues. Some servers give parallel calls no index, or all the same one: a new id is then a new call."""
    index, call_id = delta.get("index"), delta.get("id")
    same = [call for call in have if call.get("index") == index] if index is not None else have[-1:]
    if same and (not call_id or same[-1].get("id") in (call_id, None, "")):
        return same[-1]
    have.append({})
    return have[-1]


def _merge(into: dict[str, object], delta: Mapping[str, object], growth: _sse.Growth, depth: int) -> None:
    for key, value in delta.items():
        old = into.get(key)
        if isinstance(old, str) and isinstance(value, str) and key not in _WHOLE:
            growth.add(into, key, value)
        elif isinstance(old, list) and isinstance(value, list):
            old.extend(value)
        elif isinstance(old, dict) and isinstance(value, dict) and depth < 8:
            _merge(old, value, growth, depth + 1)
        elif old is None or value not in (None, ""):
            into[key] = value


# ---- the wire written --------------------------------------------------------------------------------------------


def _wire_message(parts: Sequence[dict[str, object]]) -> dict[str, object]:
    message: dict[str, object] = {"role": "assistant", "content": None, "refusal": None}
    chunks: list[object] = []
    calls: list[dict[str, object]] = []
    for part in parts:
        kind, field = part.get("type"), _parts.field_of(part)
        if kind == "reasoning":
            name = _REASONING[part.get("field") == _REASONING[1]]
            message[name] = f"{message.get(name, '')}{_parts.content_of(part)}"
        elif kind == "text":
            more = _parts.others(part, "content")
            if more.get("annotations"):
                message["annotations"] = more.pop("annotations")
            chunks.append({"type": "text", "text": _parts.content_of(part), **more})
        elif kind == "refusal":
            message["refusal"] = part.get("refusal", part.get("content"))
        elif kind == "tool_call":
            _wire_call(message, calls, part)
        elif field == "tool_call":
            calls.append(mapping(part.get("value")))
        elif field is not None:
            message[field] = part.get("value")
        else:
            chunks.append(_parts.original(part))
    if chunks and message["content"] is None:
        plain = all(mapping(chunk).get("type") == "text" for chunk in chunks)
        message["content"] = "".join(str(mapping(chunk)["text"]) for chunk in chunks) if plain else chunks
    if calls:
        message["tool_calls"] = calls
    return message


def _wire_call(message: dict[str, object], calls: list[dict[str, object]], part: Mapping[str, object]) -> None:
    name, kind = text(part.get("name")) or "", part.get("tool_type")
    more = _parts.others(part, "id", "name", "arguments", "tool_type")
    if kind == "function_call":
        message["function_call"] = {"name": name, "arguments": _parts.arguments_text(part)}
        return
    call: dict[str, object] = {"id": text(part.get("id")) or _parts.made_id("call_", len(calls), name, part.get("arguments"))}
    if kind == "custom":
        call |= {"type": "custom", "custom": {"name": name, "input": part.get("arguments")}}
    else:
        call |= {"type": "function", "function": {"name": name, "arguments": _parts.arguments_text(part)}}
    calls.append(call | more)


def _wire_usage(usage: Mapping[str, int]) -> dict[str, object]:
    given, made = _parts.input_tokens(usage), _parts.output_tokens(usage)
    return {
        "prompt_tokens": given,
        "completion_tokens": made,
        "total_tokens": given + made,
        "prompt_tokens_details": {
            "cached_tokens": _parts.count(usage, names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS),
            "cache_write_tokens": _parts.count(usage, names.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS),
        },
        "completion_tokens_details": {"reasoning_tokens": _parts.count(usage, names.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS)},
    }


def _chunks(
    head: Mapping[str, object], choices: Sequence[tuple[dict[str, object], str]], usage: dict[str, object] | None
) -> Iterator[tuple[str, object]]:
    def chunk(index: int, delta: object, reason: str | None) -> tuple[str, object]:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
        return "", {**head, "object": "chat.completion.chunk", "choices": [choice]}

    for index, (message, reason) in enumerate(choices):
        calls = items(message.pop("tool_calls", None))
        content = message.pop("content")
        yield chunk(index, {**message, "content": None if content is None else ""}, None)
        if content is not None:
            yield chunk(index, {"content": content}, None)
        for place, call in enumerate(map(mapping, calls)):
            yield chunk(index, {"tool_calls": [{"index": place, **call}]}, None)
        yield chunk(index, {}, reason)
    if usage:
        yield "", {**head, "object": "chat.completion.chunk", "choices": [], "usage": usage}
    yield "", _sse.DONE
