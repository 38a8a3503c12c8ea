"""OpenAI Responses, and every server that speaks it.

Wire format: <https://platform.openai.com/docs/api-reference/responses>.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from spanreplay.instrumentation import _parts, _sse
from spanreplay.instrumentation._codec import Codec, Said
from spanreplay.instrumentation._lenient import dumps, integer, items, mapping, number, text
from spanreplay.instrumentation._outcomes import Assembled, answered, error_in, failed, output, read
from spanreplay.instrumentation._parts import Message, Part, put, put_json, put_made
from spanreplay.instrumentation.provider import AttributeValue, ModelRequest, ModelResponse, trimmed
from spanreplay.semconv import attributes as names

_TERMINAL: Final = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
_STATUSES: Final = frozenset({"queued", "in_progress", "completed", "incomplete", "failed", "cancelled"})
_CALL_FIELDS: Final = ("id", "call_id", "name", "arguments", "input", "status")
_ECHOED: Final[Mapping[str, object]] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": None,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
}
"""Fields of a response that repeat the request, with their defaults."""
_STREAMED_TEXT: Final[Mapping[str, tuple[str, str, str]]] = {
    "response.output_text.delta": ("content", "content_index", "text"),
    "response.refusal.delta": ("content", "content_index", "refusal"),
    "response.reasoning_text.delta": ("content", "content_index", "text"),
    "response.reasoning_summary_text.delta": ("summary", "summary_index", "text"),
}
"""Delta event to (list of the item, its index in the event, field of the element)."""
_STREAMED_ARGUMENTS: Final[Mapping[str, str]] = {
    "response.function_call_arguments.delta": "arguments",
    "response.mcp_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}


class OpenAIResponses(Codec):
    """Codec of ``POST …/responses``; retrieving a stored response is no model call."""

    NAME: ClassVar[str] = "openai.responses"
    PATHS: ClassVar[tuple[str, ...]] = ("/responses",)
    LOCAL_IDS: ClassVar[tuple[str, ...]] = ("input[*].id", "input[*].call_id", "prompt_cache_key", "metadata.*")
    LOCAL_TIMES: ClassVar[tuple[str, ...]] = ("input[*].created_at",)

    def matches(self, method: str, path: str, body: object) -> bool:
        """A POST with a model and input; a stored prompt may bring either."""
        found = mapping(body)
        prompt = isinstance(found.get("prompt"), dict)
        return (
            method.upper() == "POST"
            and trimmed(path).endswith(self.PATHS)
            and (prompt or isinstance(found.get("input"), (str, list)))
            and (prompt or isinstance(found.get("model"), str))
        )

    def request(self, body: object) -> ModelRequest:
        """Items that the assistant made and that stand together become one message."""
        found = mapping(body)
        view: dict[str, AttributeValue] = {names.GEN_AI_OPERATION_NAME: "chat", names.GEN_AI_PROVIDER_NAME: "openai"}
        view[names.OPENAI_API_TYPE] = "responses"
        model = text(found.get("model"))
        put(view, names.GEN_AI_REQUEST_MODEL, model)
        put(view, names.GEN_AI_REQUEST_MAX_TOKENS, integer(found.get("max_output_tokens")))
        put(view, names.GEN_AI_REQUEST_TEMPERATURE, number(found.get("temperature")))
        put(view, names.GEN_AI_REQUEST_TOP_P, number(found.get("top_p")))
        put(view, names.GEN_AI_REQUEST_REASONING_LEVEL, text(mapping(found.get("reasoning")).get("effort")))
        put(view, names.GEN_AI_REQUEST_PREVIOUS_RESPONSE_ID, text(found.get("previous_response_id")))
        conversation = found.get("conversation")
        put(view, names.GEN_AI_CONVERSATION_ID, text(conversation) or text(mapping(conversation).get("id")))
        kind = text(mapping(mapping(found.get("text")).get("format")).get("type"))
        put(view, names.GEN_AI_OUTPUT_TYPE, "json" if kind and kind.startswith("json") else kind)
        prompt = mapping(found.get("prompt"))
        put(view, names.GEN_AI_PROMPT_NAME, text(prompt.get("id")))
        put(view, names.GEN_AI_PROMPT_VERSION, text(prompt.get("version")))
        stream = found.get("stream")
        put(view, names.GEN_AI_REQUEST_STREAM, stream if isinstance(stream, bool) else None)
        told = found.get("instructions")
        put_json(view, names.GEN_AI_SYSTEM_INSTRUCTIONS, [_parts.text_part(told)] if isinstance(told, str) else _instructions(told))
        put_json(view, names.GEN_AI_INPUT_MESSAGES, _input_messages(found.get("input")))
        put_made(view, names.GEN_AI_TOOL_DEFINITIONS, items(found.get("tools")), _tool_definition)
        return ModelRequest(model=model, stream=stream is True, attributes=view)

    def response(self, status: int, content_type: str, body: bytes, request: object) -> ModelResponse:
        """One output message with the parts of all items."""
        return read(status, content_type, body, list_field="output", assemble=_assemble, whole=_whole)

    def terminal(self, tail: bytes) -> bool:
        """``response.completed``, ``.incomplete``, ``.failed``, ``.cancelled``, ``error`` or ``[DONE]``."""
        return not (_TERMINAL | {_sse.DONE, "error"}).isdisjoint(_sse.last_names(tail))

    def write(self, said: Said) -> tuple[str, bytes]:
        """All messages make one response; adjacent text parts stand in one message item."""
        parts = _parts.all_parts(said.messages)
        reason = _parts.finish_of(said.messages, parts)
        response_id = said.response_id or _parts.made_id("resp_", parts)
        status = {"length": "incomplete", "content_filter": "incomplete", "error": "failed"}.get(reason, "completed")
        why = "max_output_tokens" if reason == "length" else reason
        full: dict[str, object] = {
            "id": response_id,
            "object": "response",
            "created_at": 0,
            "status": status,
            "error": {"code": "server_error", "message": "the recorded response failed"} if status == "failed" else None,
            "incomplete_details": {"reason": why} if status == "incomplete" else None,
            "model": said.model,
            "output": _wire_items(parts, response_id),
            "usage": _wire_usage(said.usage) if said.usage else None,
            **{key: default if said.asked.get(key) is None else said.asked[key] for key, default in _ECHOED.items()},
        }
        if said.asked.get("stream") is True:
            return _sse.CONTENT_TYPE, _sse.render(_numbered(_events(full)))
        return "application/json", dumps(full).encode()


PROVIDER: Final = OpenAIResponses()


# ---- the wire read -----------------------------------------------------------------------------------------------


def _tool_definition(tool: object) -> object:
    found = {key: value for key, value in mapping(tool).items() if value is not None}
    return found or _parts.generic(tool)


def _instructions(told: object) -> list[object]:
    return [part for message in _input_messages(told) for part in items(message["parts"])]


def _input_messages(given: object) -> list[Message]:
    if isinstance(given, str):
        return [{"role": "user", "parts": [_parts.text_part(given)]}]
    messages: list[Message] = []
    for item in items(given):
        role, parts = _role(item), _item_parts(item)
        if role == "assistant" and messages and messages[-1]["role"] == role:
            items(messages[-1]["parts"]).extend(parts)
        else:
            messages.append({"role": role, "parts": parts})
    return messages


def _role(item: object) -> str:
    found = mapping(item)
    if isinstance(found.get("role"), str):
        return str(found["role"])
    kind = text(found.get("type")) or ""
    return "tool" if kind.endswith(("_output", "_response")) else "assistant"


def _item_parts(item: object) -> list[Part]:
    found = mapping(item)
    kind = found.get("type")
    call_id = found.get("call_id") or found.get("id")
    if kind in ("message", None) and "content" in found:
        content = found["content"]
        parts = [_parts.text_part(content)] if isinstance(content, str) else [_content_part(chunk) for chunk in items(content)]
        phase = found.get("phase")
        return [part | {"phase": phase} for part in parts] if phase else parts
    if kind == "function_call":
        return [_parts.extras(found, _parts.tool_call(call_id, found.get("name"), found.get("arguments")), _CALL_FIELDS)]
    if kind == "custom_tool_call":
        part = _parts.tool_call(call_id, found.get("name"), None) | {"arguments": found.get("input"), "tool_type": "custom"}
        return [_parts.extras(found, part, _CALL_FIELDS)]
    if kind in ("function_call_output", "custom_tool_call_output"):
        return [_parts.tool_response(call_id, found.get("output"))]
    if kind == "reasoning":
        return [_reasoning_part(found)]
    return [_parts.generic(item)]


def _reasoning_part(item: Mapping[str, object]) -> Part:
    """The thoughts as text, and every field of the item, since the API wants it back as it was."""
    content = item.get("content")
    chunks = [*items(item.get("summary")), *items(content)]
    part: Part = {"type": "reasoning", "content": "\n\n".join(text(mapping(chunk).get("text")) or "" for chunk in chunks)}
    part |= {key: value for key, value in item.items() if key not in ("type", "content") and value is not None}
    return part if not content else part | {"content_parts": content}


def _content_part(chunk: object) -> Part:
    found = mapping(chunk)
    kind = found.get("type")
    part: Part | None = None
    used: tuple[str, ...] = ()
    if kind in ("output_text", "input_text", "text") and isinstance(found.get("text"), str):
        part, used = _parts.text_part(str(found["text"])), ("text",)
    elif kind == "input_image":
        part, used = _parts.media(found.get("image_url"), "image") or _parts.file(found.get("file_id"), "image"), ("image_url",)
    elif kind == "input_file":
        part = (
            _parts.media(found.get("file_data"), None)
            or _parts.media(found.get("file_url"), "document")
            or _parts.file(found.get("file_id"), "document")
        )
        used = ("file_data", "file_url")
    elif kind == "input_audio":
        return _parts.sound(found.get("input_audio")) or _parts.generic(chunk)
    return _parts.generic(chunk) if part is None else _parts.extras(found, part, used)


def _whole(body: dict[str, object]) -> ModelResponse:
    status = text(body.get("status"))
    parts = [part for item in items(body.get("output")) for part in _item_parts(item)]
    said = output("assistant", parts, _finish_reason(body, parts))
    usage = mapping(body.get("usage"))
    given, made = mapping(usage.get("input_tokens_details")), mapping(usage.get("output_tokens_details"))
    counts = {
        names.GEN_AI_USAGE_INPUT_TOKENS: usage.get("input_tokens"),
        names.GEN_AI_USAGE_OUTPUT_TOKENS: usage.get("output_tokens"),
        names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: given.get("cached_tokens"),
        names.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: given.get("cache_write_tokens"),
        names.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: made.get("reasoning_tokens"),
    }
    answer = answered(
        [said] if parts or said[1] else [],
        counts,
        response_id=body.get("id"),
        model=body.get("model"),
        status=status if status in _STATUSES else None,
    )
    if status == "failed":
        return failed(answer, error_in(body) or ("failed", "the response has status failed and names no error"))
    return failed(answer, ("cancelled", "the response was cancelled")) if status == "cancelled" else answer


def _finish_reason(body: Mapping[str, object], parts: Sequence[Part]) -> str | None:
    """The API has no finish reason; told from the status and the items."""
    status = body.get("status")
    if status == "incomplete":
        return _parts.finish(mapping(body.get("incomplete_details")).get("reason")) or "length"
    if status in ("failed", "cancelled"):
        return "error"
    if status in ("in_progress", "queued"):
        return None
    return "tool_call" if any(part.get("type") == "tool_call" for part in parts) else "stop"


def _assemble(frames: _sse.Frames) -> Assembled:
    head: dict[str, object] = {}
    made: dict[int, dict[str, object]] = {}
    error: tuple[str, str] | None = None
    ended = frames.done
    growth = _sse.Growth()
    for name, event in frames.objects:
        kind = text(event.get("type")) or name
        if isinstance(event.get("response"), dict):
            head.update(mapping(event["response"]))
        if kind == "error" or event.get("error"):
            error = error or error_in({**event, "type": "error"})
        ended = ended or kind in _TERMINAL
        index = integer(event.get("output_index"))
        if index is None:
            continue
        if kind in ("response.output_item.added", "response.output_item.done"):
            made[index] = mapping(event.get("item"))
        else:
            _continue(made.setdefault(index, {}), kind, event, growth)
    growth.settle()
    # Some servers end with an empty output: what was streamed is then the only evidence.
    output = items(head.get("output")) or [made[index] for index in sorted(made)]
    if not ended:
        head.setdefault("status", "in_progress")
    return Assembled(body={**head, "output": output}, complete=ended, error=error)


def _continue(item: dict[str, object], kind: str, event: Mapping[str, object], growth: _sse.Growth) -> None:
    delta = event.get("delta")
    if not isinstance(delta, str):
        return
    if kind in _STREAMED_ARGUMENTS:
        growth.add(item, _STREAMED_ARGUMENTS[kind], delta)
    elif kind in _STREAMED_TEXT:
        where, position, field = _STREAMED_TEXT[kind]
        item.setdefault("type", "message" if kind in ("response.output_text.delta", "response.refusal.delta") else "reasoning")
        chunks = item.get(where)
        if not isinstance(chunks, list):
            chunks = item[where] = []
        place = min(max(integer(event.get(position)) or 0, 0), len(chunks))
        if place == len(chunks):
            chunks.append({"type": kind.removeprefix("response.").removesuffix(".delta").replace("reasoning_summary", "summary")})
        growth.add(mapping(chunks[place]), field, delta)


# ---- the wire written --------------------------------------------------------------------------------------------


def _wire_items(parts: Sequence[dict[str, object]], response_id: str) -> list[dict[str, object]]:
    made: list[dict[str, object]] = []
    for place, part in enumerate(parts):
        kind = part.get("type")
        if kind in ("text", "refusal") or (kind == "generic" and not _is_item(part)):
            phase = part.get("phase")
            last = made[-1] if made else {}
            if last.get("type") != "message" or last.get("phase") != phase:
                last = {"id": _parts.made_id("msg_", response_id, place), "type": "message", "status": "completed", "role": "assistant"}
                made.append(last | {"content": []} | ({"phase": phase} if phase else {}))
            items(made[-1]["content"]).append(_wire_content(part))
        elif kind == "tool_call":
            made.append(_wire_call(part, response_id, place))
        elif kind == "reasoning":
            raw = _parts.others(part, "content", "content_parts")
            raw.setdefault("id", _parts.made_id("rs_", response_id, place))
            raw.setdefault("summary", [{"type": "summary_text", "text": _parts.content_of(part)}] if _parts.content_of(part) else [])
            made.append({"type": "reasoning", **raw} | ({"content": part["content_parts"]} if "content_parts" in part else {}))
        else:
            made.append(mapping(_parts.original(part)))
    return made


def _is_item(part: Mapping[str, object]) -> bool:
    return isinstance(part.get("value"), dict)


def _wire_content(part: Mapping[str, object]) -> object:
    more = _parts.others(part, "content", "phase", "refusal")
    if part.get("type") == "refusal":
        return {"type": "refusal", "refusal": part.get("refusal", part.get("content")), **more}
    if part.get("type") == "text":
        return {"type": "output_text", "annotations": [], "logprobs": [], **more, "text": _parts.content_of(part)}
    return _parts.original(part)


def _wire_call(part: Mapping[str, object], response_id: str, place: int) -> dict[str, object]:
    name = text(part.get("name")) or ""
    more = _parts.others(part, "id", "name", "arguments", "tool_type")
    call_id = text(part.get("id")) or _parts.made_id("call_", response_id, place)
    if part.get("tool_type") == "custom":
        head: dict[str, object] = {"type": "custom_tool_call", "id": _parts.made_id("ctc_", response_id, place)}
        return head | {"call_id": call_id, "name": name, "input": part.get("arguments"), "status": "completed"} | more
    head = {"type": "function_call", "id": _parts.made_id("fc_", response_id, place)}
    return head | {"call_id": call_id, "name": name, "arguments": _parts.arguments_text(part), "status": "completed"} | more


def _wire_usage(usage: Mapping[str, int]) -> dict[str, object]:
    given, made = _parts.input_tokens(usage), _parts.output_tokens(usage)
    return {
        "input_tokens": given,
        "input_tokens_details": {
            "cached_tokens": _parts.count(usage, names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS),
            "cache_write_tokens": _parts.count(usage, names.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS),
        },
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": _parts.count(usage, names.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS)},
        "total_tokens": given + made,
    }


def _numbered(stream: Iterator[dict[str, object]]) -> Iterator[tuple[str, object]]:
    for number_, event in enumerate(stream):
        yield str(event["type"]), {"type": event["type"], "sequence_number": number_, **event}


def _events(full: dict[str, object]) -> Iterator[dict[str, object]]:
    begun = {**full, "status": "in_progress", "output": [], "usage": None, "error": None, "incomplete_details": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(map(mapping, items(full["output"]))):
        where: dict[str, object] = {"output_index": index, "item_id": item.get("id")}
        kind = item.get("type")
        if kind == "message":
            yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "status": "in_progress", "content": []}}
            for place, chunk in enumerate(map(mapping, items(item.get("content")))):
                yield from _content_events({**where, "content_index": place}, chunk)
        elif kind == "function_call":
            yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "status": "in_progress", "arguments": ""}}
            yield {"type": "response.function_call_arguments.delta", **where, "delta": item["arguments"]}
            yield {"type": "response.function_call_arguments.done", **where, "name": item["name"], "arguments": item["arguments"]}
        else:
            bare = {**item, "summary": []} if kind == "reasoning" else item
            yield {"type": "response.output_item.added", "output_index": index, "item": bare}
            for place, chunk in enumerate(map(mapping, items(item.get("summary")) if kind == "reasoning" else [])):
                at = {**where, "summary_index": place}
                yield {"type": "response.reasoning_summary_part.added", **at, "part": {**chunk, "text": ""}}
                yield {"type": "response.reasoning_summary_text.delta", **at, "delta": chunk.get("text")}
                yield {"type": "response.reasoning_summary_text.done", **at, "text": chunk.get("text")}
                yield {"type": "response.reasoning_summary_part.done", **at, "part": chunk}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{full['status']}", "response": full}


def _content_events(where: Mapping[str, object], chunk: dict[str, object]) -> Iterator[dict[str, object]]:
    field = "refusal" if chunk.get("type") == "refusal" else "text"
    kind = "refusal" if field == "refusal" else "output_text"
    told = chunk.get(field)
    yield {"type": "response.content_part.added", **where, "part": {**chunk, field: ""}}
    if isinstance(told, str):
        more: dict[str, object] = {} if field == "refusal" else {"logprobs": []}
        yield {"type": f"response.{kind}.delta", **where, "delta": told, **more}
        yield {"type": f"response.{kind}.done", **where, field: told, **more}
    yield {"type": "response.content_part.done", **where, "part": chunk}
