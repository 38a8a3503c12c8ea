"""How a response ended, told the same way for every provider: status, errors in bodies and events, bodies that are not this API's."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from spanreplay.instrumentation import _sse
from spanreplay.instrumentation._lenient import dumps, integer, loads, mapping, text
from spanreplay.instrumentation._parts import Message, Part, calls, finish, put, put_json
from spanreplay.instrumentation.provider import AttributeValue, ModelResponse
from spanreplay.semconv import attributes as names

_FEW = 2
"""Fields of an error that says its message at the top: a response that has a field of this name has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A stream put together to what the plain body would have been, as far as it came."""

    body: dict[str, object]
    complete: bool
    """It came to its end; one that an error ended did too, whatever this says."""
    error: tuple[str, str] | None = None

    def answer(self, whole: Callable[[dict[str, object]], ModelResponse]) -> ModelResponse:
        """What the plain body would have said, with the error that ended it."""
        found = replace(whole(self.body), complete=self.complete or self.error is not None)
        return found if self.error is None else failed(found, self.error)


def _events(content_type: str, body: bytes) -> _sse.Frames | None:
    return _sse.frames(body) if _sse.is_stream(content_type, body) else None


def read(
    status: int,
    content_type: str,
    body: bytes,
    *,
    list_field: str,
    whole: Callable[[dict[str, object]], ModelResponse],
    assemble: Callable[[_sse.Frames], Assembled] | None = None,
    streamed: Callable[[str, bytes], _sse.Frames | None] = _events,
    is_own: Callable[[dict[str, object]], bool] | None = None,
) -> ModelResponse:
    """Reads any response.

    Args:
        status: HTTP status.
        content_type: value of the header; may be empty.
        body: content-decoded bytes.
        list_field: the field without which a plain body is not this API's.
        whole: reads a plain body, or one put together.
        assemble: puts a stream together; ``None`` where the API has none.
        streamed: the frames of a body (by its content type), if it is a stream; server-sent events by default.
        is_own: tells a plain body of this API, where it has no such list.
    """
    if not 200 <= status < 300:
        return _http_error(status, body)
    frames = None if assemble is None else streamed(content_type, body)
    if assemble is not None and frames is not None:
        assembled = assemble(frames)
        answer = assembled.answer(whole)
        if frames.problem and assembled.error is None:
            return replace(answer, outcome="malformed", complete=False, error=("malformed", frames.problem))
        return answer
    try:
        parsed = loads(body)
    except ValueError as error:
        return malformed(f"the body is not JSON: {error}")
    if isinstance(parsed, dict) and (is_own(parsed) if is_own is not None else isinstance(parsed.get(list_field), list)):
        return whole(parsed)
    reported = error_in(parsed)
    if reported:
        return failed(ModelResponse(attributes={}, outcome="error", complete=True), reported)
    return malformed(f"the body has no {'list ' if is_own is None else ''}`{list_field}`")


def output(role: object, parts: list[Part], reason: object) -> tuple[Message, str | None]:
    """An output message, of the assistant unless the wire says otherwise, and why the model stopped, as :func:`answered` takes them."""
    return {"role": text(role) or "assistant", "parts": parts}, text(reason) or None


def answered(
    outputs: Iterable[tuple[Message, str | None]],
    usage: Mapping[str, object],
    *,
    response_id: object = None,
    model: object = None,
    status: str | None = None,
) -> ModelResponse:
    """What a body says that is this API's, with whatever of a wrong type left out.

    Args:
        outputs: each message, and the reason to finish as the wire has it; a message may have one of its own already.
        usage: token counts by attribute.
        response_id: ``gen_ai.response.id``.
        model: ``gen_ai.response.model``.
        status: ``gen_ai.response.status``.
    """
    view: dict[str, AttributeValue] = {}
    messages: list[Message] = []
    reasons: list[str] = []
    for message, reason in outputs:
        messages.append(message)
        if reason:
            reasons.append(reason)
            message.setdefault("finish_reason", finish(reason))
    put(view, names.GEN_AI_RESPONSE_ID, text(response_id))
    put(view, names.GEN_AI_RESPONSE_MODEL, text(model))
    put(view, names.GEN_AI_RESPONSE_STATUS, status)
    put(view, names.GEN_AI_RESPONSE_FINISH_REASONS, tuple(reasons))
    put_json(view, names.GEN_AI_OUTPUT_MESSAGES, messages)
    for name, counted in usage.items():
        put(view, name, integer(counted))
    return ModelResponse(attributes=view, outcome="ok", complete=True, tool_calls=calls(messages))


def malformed(problem: str) -> ModelResponse:
    """A 2xx response whose body is not this API's."""
    return ModelResponse(attributes={names.ERROR_TYPE: "malformed"}, outcome="malformed", complete=True, error=("malformed", problem))


def failed(answer: ModelResponse, error: tuple[str, str]) -> ModelResponse:
    """The answer, as far as it came, with the error that ended it."""
    kind = error[0].encode("utf-8", "replace").decode()
    return replace(answer, outcome="error", error=error, attributes={**answer.attributes, names.ERROR_TYPE: kind})


def error_in(body: object) -> tuple[str, str] | None:
    """(type, message) of the error that a body or an event reports, or ``None``.

    Known shapes: ``{"error": {type, code, message}}`` (OpenAI, Anthropic), ``{"type": "error", code, message}`` (event of OpenAI's
    Responses API), ``{"object": "error", …}`` (vLLM), ``{"error": "text"}`` (Ollama), each of them in a list (Gemini), and
    ``{"message": "text"}``, perhaps with ``__type`` or ``id`` (AWS, Cohere).
    """
    if isinstance(body, list) and body:
        body = body[0]
    top = mapping(body)
    error = top.get("error")
    if isinstance(error, str) and error:
        return "error", error
    if isinstance(error, dict) and error:
        record = error
    elif top.get("type") == "error" or top.get("object") == "error":
        record = top
    elif isinstance(top.get("message"), str) and len(top) <= _FEW:
        kind = text(top.get("__type")) or "error"
        return kind.rpartition("#")[2], str(top["message"])
    else:
        return None
    named = (record.get(key) for key in ("type", "code"))
    kind = next((str(value) for value in named if isinstance(value, (str, int)) and value not in ("", "error")), "error")
    message = text(record.get("message"))
    return kind, dumps(record) if message is None else message


def _http_error(status: int, body: bytes) -> ModelResponse:
    empty = ModelResponse(attributes={}, outcome="error", complete=True)
    try:
        parsed = loads(body)
    except ValueError:
        return failed(empty, (str(status), body.decode("utf-8", "replace")))
    kind, message = error_in(parsed) or ("error", dumps(parsed))
    return failed(empty, (str(status) if kind == "error" else kind, message))
