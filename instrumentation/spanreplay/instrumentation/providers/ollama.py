"""Ollama's own API: chat and generate. Its OpenAI-compatible one is :mod:`~spanreplay.instrumentation.providers.openai_chat`'s.

Wire format: <https://docs.ollama.com/api>. An answer is streamed unless the request says ``"stream": false``: an object a line, the last
one ``"done": true``. Calls have no id in older versions.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from spanreplay.instrumentation import _ndjson, _parts, _sse
from spanreplay.instrumentation._codec import Codec, Said
from spanreplay.instrumentation._lenient import as_text, dumps, integer, items, mapping, text
from spanreplay.instrumentation._outcomes import Assembled, answered, error_in, output, read
from spanreplay.instrumentation._parts import MESSAGE, Message, Part, put, put_json, put_made
from spanreplay.instrumentation.provider import AttributeValue, ModelRequest, ModelResponse, trimmed
from spanreplay.semconv import attributes as names

_FINISH_BACK: Final[Mapping[str, str]] = {"tool_call": "stop"}
_NOW: Final = "1970-01-01T00:00:00Z"


class Ollama(Codec):
    """Codec of ``POST /api/chat`` and ``/api/generate``."""

    NAME: ClassVar[str] = "ollama"
    PATHS: ClassVar[tuple[str, ...]] = ("/api/chat", "/api/generate")
    LOCAL_IDS: ClassVar[tuple[str, ...]] = ("messages[*].tool_calls[*].id", "messages[*].tool_call_id")
    LOCAL_TIMES: ClassVar[tuple[str, ...]] = ("messages[*].created_at",)

    def matches(self, method: str, path: str, body: object) -> bool:
        """A POST with a model, and messages or a prompt."""
        found = mapping(body)
        asks = isinstance(found.get("messages"), list) if trimmed(path).endswith("/chat") else isinstance(found.get("prompt"), str)
        return method.upper() == "POST" and trimmed(path).endswith(self.PATHS) and asks and isinstance(found.get("model"), str)

    def request(self, body: object) -> ModelRequest:
        """A prompt is one message of the user."""
        found = mapping(body)
        generates = "messages" not in found
        view: dict[str, AttributeValue] = {names.GEN_AI_OPERATION_NAME: "text_completion" if generates else "chat"}
        view[names.GEN_AI_PROVIDER_NAME] = "ollama"
        model = text(found.get("model"))
        put(view, names.GEN_AI_REQUEST_MODEL, model)
        options = mapping(found.get("options"))
        limit = integer(options.get("num_predict"))
        put(view, names.GEN_AI_REQUEST_MAX_TOKENS, limit if limit is not None and limit >= 0 else None)
        _parts.put_settings(view, {**options, "stop_sequences": options.get("stop")})
        put(view, names.GEN_AI_REQUEST_REASONING_LEVEL, text(found.get("think")))
        put(view, names.GEN_AI_OUTPUT_TYPE, "json" if found.get("format") else None)
        stream = _streams(found)
        put(view, names.GEN_AI_REQUEST_STREAM, stream)
        system = text(found.get("system"))
        put_json(view, names.GEN_AI_SYSTEM_INSTRUCTIONS, [_parts.text_part(system)] if system else [])
        messages = [{"role": "user", "content": found.get("prompt"), "images": found.get("images")}]
        put_json(
            view, names.GEN_AI_INPUT_MESSAGES, [_message(message) for message in (messages if generates else items(found["messages"]))]
        )
        put_made(view, names.GEN_AI_TOOL_DEFINITIONS, items(found.get("tools")), _parts.nested_definition)
        return ModelRequest(model=model, stream=stream, attributes=view)

    def response(self, status: int, content_type: str, body: bytes, request: object) -> ModelResponse:
        """One output message."""
        return read(status, content_type, body, list_field="message", assemble=_assemble, whole=_whole, streamed=_streamed, is_own=_is_own)

    def terminal(self, tail: bytes) -> bool:
        """``"done": true``, or an error."""
        last = _ndjson.last(tail)
        return last.get("done") is True or ("error" in last and error_in(last) is not None)

    def write(self, said: Said) -> tuple[str, bytes]:
        """All messages make one; an id has no place here."""
        parts = _parts.all_parts(said.messages)
        reason = _parts.finish_of(said.messages, parts)
        message = _wire_message(parts)
        head = {"model": said.model, "created_at": _NOW}
        end = {"done": True, "done_reason": _FINISH_BACK.get(reason, reason), **_wire_usage(said.usage)}
        generates = "messages" not in said.asked and "prompt" in said.asked
        if not _streams(said.asked):
            return "application/json; charset=utf-8", dumps({**head, **_said(message, generates=generates), **end}).encode()
        chunks = [{**head, **_said(piece, generates=generates), "done": False} for piece in _pieces(message, generates=generates)]
        return _ndjson.CONTENT_TYPE, _ndjson.render([*chunks, {**head, **_said({"content": ""}, generates=generates), **end}])


PROVIDER: Final = Ollama()


def _streams(request: Mapping[str, object]) -> bool:
    return request.get("stream") is not False


# ---- the wire read -----------------------------------------------------------------------------------------------


def _message(message: object) -> Message:
    if not isinstance(message, dict):
        return {"role": "", "parts": [_parts.generic(message)]}
    role = text(message.get("role")) or ""
    if role == "tool":
        response = _parts.tool_response(message.get("tool_call_id"), message.get("content"))
        return {"role": role, "parts": [_parts.extras({"name": message.get("tool_name") or message.get("name")}, response)]}
    return {"role": role, "parts": _message_parts(message)}


def _message_parts(message: Mapping[str, object]) -> list[Part]:
    parts: list[Part] = []
    thought, content = message.get("thinking"), message.get("content")
    if isinstance(thought, str) and thought:
        parts.append({"type": "reasoning", "content": thought})
    if isinstance(content, str) and content:
        parts.append(_parts.text_part(content))
    elif content and not isinstance(content, str):
        parts.append(_parts.generic(content, MESSAGE + "content"))
    for image in items(message.get("images")):
        blob = {"type": "blob", "mime_type": None, "modality": "image", "content": image}
        parts.append(blob if isinstance(image, str) else _parts.generic(image, MESSAGE + "image"))
    for call in items(message.get("tool_calls")):
        function = mapping(call).get("function")
        if isinstance(function, dict):
            made = _parts.tool_call(mapping(call).get("id"), function.get("name"), None) | {"arguments": function.get("arguments")}
            parts.append(_parts.extras(function, made, ("name", "arguments")))
        else:
            parts.append(_parts.generic(call, MESSAGE + "tool_call"))
    return parts


def _is_own(body: dict[str, object]) -> bool:
    return isinstance(body.get("message"), dict) or isinstance(body.get("response"), str)


def _streamed(content_type: str, body: bytes) -> _sse.Frames | None:
    return _ndjson.frames(body) if _ndjson.is_stream(content_type, body) else None


def _whole(body: dict[str, object]) -> ModelResponse:
    message = mapping(body.get("message"))
    if "response" in body:
        message = {"content": body.get("response"), "thinking": body.get("thinking")}
    said = output(message.get("role"), _message_parts(message), body.get("done_reason"))
    usage = {names.GEN_AI_USAGE_INPUT_TOKENS: body.get("prompt_eval_count"), names.GEN_AI_USAGE_OUTPUT_TOKENS: body.get("eval_count")}
    return answered([said] if message or said[1] else [], usage, model=body.get("model"))


def _assemble(frames: _sse.Frames) -> Assembled:
    body: dict[str, object] = {}
    message: dict[str, object] = {}
    error: tuple[str, str] | None = None
    ended = False
    growth = _sse.Growth()
    for _, chunk in frames.objects:
        error = error or (error_in(chunk) if "error" in chunk else None)
        said = mapping(chunk.get("message"))
        if "response" in chunk:
            said = {"content": chunk.get("response"), "thinking": chunk.get("thinking")}
        for key, value in said.items():
            if isinstance(value, str) and key in ("content", "thinking"):
                growth.add(message, key, value)
            elif isinstance(value, list):
                have = message.setdefault(key, [])
                if isinstance(have, list):
                    have.extend(value)
            elif value is not None:
                message[key] = value
        body.update({key: value for key, value in chunk.items() if key not in ("message", "response", "thinking") and value is not None})
        ended = ended or chunk.get("done") is True
    growth.settle()
    if message:
        body["message"] = message
    return Assembled(body=body, complete=ended, error=error)


# ---- the wire written --------------------------------------------------------------------------------------------


def _wire_message(parts: Sequence[Mapping[str, object]]) -> dict[str, object]:
    message: dict[str, object] = {"role": "assistant", "content": ""}
    calls: list[object] = []
    for part in parts:
        kind, field = part.get("type"), _parts.field_of(part)
        if kind == "reasoning":
            message["thinking"] = f"{message.get('thinking', '')}{_parts.content_of(part)}"
        elif kind == "tool_call":
            calls.append(_wire_call(part))
        elif field == "tool_call":
            calls.append(part.get("value"))
        elif field is not None:
            message[field] = part.get("value")
        else:
            message["content"] = f"{message['content']}{_said_in(part)}"
    return {**message, **({"tool_calls": calls} if calls else {})}


def _said_in(part: Mapping[str, object]) -> str:
    return _parts.content_of(part) if part.get("type") in ("text", "refusal") else as_text(_parts.original(part))


def _wire_call(part: Mapping[str, object]) -> dict[str, object]:
    call_id = text(part.get("id"))
    more = _parts.others(part, "id", "name", "arguments")
    function = {"name": text(part.get("name")) or "", "arguments": _parts.arguments_object(part), **more}
    return {**({"id": call_id} if call_id else {}), "function": function}


def _wire_usage(usage: Mapping[str, int]) -> dict[str, object]:
    times = dict.fromkeys(("total_duration", "load_duration", "prompt_eval_duration", "eval_duration"), 0)
    return {**times, "prompt_eval_count": _parts.input_tokens(usage), "eval_count": _parts.output_tokens(usage)}


def _said(message: Mapping[str, object], *, generates: bool) -> dict[str, object]:
    if not generates:
        return {"message": {"role": "assistant", **message}}
    thought = message.get("thinking")
    return {"response": message.get("content") or "", **({"thinking": thought} if thought else {})}


def _pieces(message: Mapping[str, object], *, generates: bool) -> Iterator[dict[str, object]]:
    for key, value in sorted(message.items(), key=lambda item: item[0] != "thinking"):
        if key == "tool_calls":
            for call in items(value) if not generates else ():
                yield {"content": "", "tool_calls": [call]}
        elif key != "role" and value:
            yield {"content": "", key: value}
