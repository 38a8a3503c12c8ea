"""Messages and their parts in the shape of the GenAI conventions, shared by all providers.

Shape: <https://github.com/open-telemetry/semantic-conventions-genai>, ``gen-ai-input-messages.json`` and its siblings. A message is
``{role, parts, name?, finish_reason?}``. What the wire holds beyond a part's standard fields stays on the part under the wire's own name
(citations, annotations, signatures); what has no standard part is a generic one that keeps the wire object.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from spanreplay.instrumentation._lenient import as_text, dumps, integer, items, mapping, number, strict_object, text
from spanreplay.instrumentation._written import written
from spanreplay.instrumentation.provider import AttributeValue, ToolCallRef
from spanreplay.semconv import attributes as names

Part: TypeAlias = dict[str, object]
Message: TypeAlias = dict[str, object]

_STANDARD: Final = frozenset({"text", "tool_call", "tool_call_response", "blob", "file", "uri", "reasoning", "generic"})
_FINISH: Final[Mapping[str, str]] = {
    **dict.fromkeys(("stop", "end_turn", "stop_sequence", "completed", "complete"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("tool_call", "tool_calls", "function_call", "tool_use"), "tool_call"),
    **dict.fromkeys(("content_filter", "content_filtered", "guardrail_intervened", "refusal"), "content_filter"),
    **dict.fromkeys(("safety", "recitation", "blocklist", "prohibited_content", "spii"), "content_filter"),
    **dict.fromkeys(("image_safety", "image_prohibited_content", "model_armor"), "content_filter"),
    "error": "error",
}
_USAGE_PREFIX: Final = "gen_ai.usage."
SETTINGS: Final[Mapping[str, str]] = {
    "temperature": names.GEN_AI_REQUEST_TEMPERATURE,
    "top_p": names.GEN_AI_REQUEST_TOP_P,
    "frequency_penalty": names.GEN_AI_REQUEST_FREQUENCY_PENALTY,
    "presence_penalty": names.GEN_AI_REQUEST_PRESENCE_PENALTY,
    "top_k": names.GEN_AI_REQUEST_TOP_K,
    "seed": names.GEN_AI_REQUEST_SEED,
    "stop_sequences": names.GEN_AI_REQUEST_STOP_SEQUENCES,
}
"""What is asked of the sampling, by the conventions' names of it."""
_WHOLE: Final = ("top_k", "seed")
MESSAGE: Final = "message."
"""Prefix of the generic type of a part that holds a field of the message itself, for example ``message.audio``."""


def finish(reason: object) -> str | None:
    """A provider's finish reason in the words of the conventions, however it is spelled (``FinishReason.STOP``); others as they are."""
    if not isinstance(reason, str):
        return None
    return _FINISH.get(reason.rpartition(".")[2].replace("-", "_").lower(), reason)


def extras(source: Mapping[str, object], part: Part, without: Collection[str] = ()) -> Part:
    """Adds to the part whatever else its wire object says; absent, empty and already used fields are left out."""
    for key, value in source.items():
        if key not in part and key not in without and key != "type" and value not in (None, "", [], {}):
            part[key] = value
    return part


def others(part: Mapping[str, object], *used: str) -> dict[str, object]:
    """The fields of a part that are not standard: the inverse of :func:`extras`."""
    return {key: value for key, value in part.items() if key != "type" and key not in used}


def text_part(content: str) -> Part:
    """A ``text`` part."""
    return {"type": "text", "content": content}


def tool_call(call_id: object, name: object, arguments: object) -> Part:
    """A ``tool_call`` part; its arguments :func:`parsed`."""
    return {"type": "tool_call", "id": text(call_id), "name": text(name) or "", "arguments": parsed(arguments)}


def parsed(arguments: object) -> object:
    """Arguments given as text become the object or array that they are; anything else, and other text, stays what it is."""
    found = strict_object(arguments) if isinstance(arguments, str) else None
    return arguments if found is None else found


def tool_response(call_id: object, response: object) -> Part:
    """A ``tool_call_response`` part."""
    return {"type": "tool_call_response", "id": text(call_id), "response": response}


def function(name: object, description: object, parameters: object) -> Part:
    """The definition of a tool that is a function, without what is not told."""
    told = {"type": "function", "name": name, "description": description, "parameters": parameters}
    return {key: value for key, value in told.items() if value is not None}


def nested_definition(tool: object, kind: str = "function") -> object:
    """The definition of a tool that the wire has in a field named as its type."""
    found = mapping(tool)
    inner = found.get(kind)
    if not isinstance(inner, dict):
        return found or generic(tool)
    return {"type": kind, **{key: value for key, value in inner.items() if key != "type" and value is not None}}


def generic(value: object, kind: str | None = None) -> Part:
    """A part that keeps the wire object: the object itself where its type is no standard part's, else wrapped under ``value``."""
    own = value.get("type") if isinstance(value, dict) else None
    if kind is None and isinstance(value, dict) and isinstance(own, str) and own and own not in _STANDARD:
        return dict(value)
    return {"type": "generic", "generic_type": kind or (own if isinstance(own, str) and own else "unknown"), "value": value}


def original(part: Mapping[str, object]) -> object:
    """The wire object inside a generic part: the inverse of :func:`generic`."""
    return part["value"] if part.get("type") == "generic" and "value" in part else dict(part)


def field_of(part: Mapping[str, object], prefix: str = MESSAGE) -> str | None:
    """The field that a generic part of the type prefix + field holds; ``None`` for any other part."""
    kind = str(part.get("generic_type"))
    return kind.removeprefix(prefix) if part.get("type") == "generic" and kind.startswith(prefix) else None


def media(url: object, modality: str | None, mime_type: str | None = None) -> Part | None:
    """A ``blob`` part for a base64 data URL, a ``uri`` part for any other URL, ``None`` for what is none."""
    if not isinstance(url, str) or not url:
        return None
    head, comma, payload = url.partition(",")
    if head.startswith("data:") and comma and head.endswith(";base64"):
        found = head.removeprefix("data:").partition(";")[0] or mime_type
        return {"type": "blob", "mime_type": found, "modality": modality or modality_of(found), "content": payload}
    return {"type": "uri", "mime_type": mime_type, "modality": modality or modality_of(mime_type), "uri": url}


def sound(given: object) -> Part | None:
    """A ``blob`` part for ``{data, format}``, or ``None``."""
    found = mapping(given)
    if not isinstance(found.get("data"), str):
        return None
    return {"type": "blob", "mime_type": f"audio/{text(found.get('format')) or '*'}", "modality": "audio", "content": found["data"]}


def file(file_id: object, modality: str) -> Part | None:
    """A ``file`` part, or ``None``."""
    return {"type": "file", "mime_type": None, "modality": modality, "file_id": file_id} if isinstance(file_id, str) and file_id else None


def modality_of(mime_type: str | None) -> str:
    """``image``, ``audio`` or ``video``, else ``document``."""
    family = (mime_type or "").partition("/")[0]
    return family if family in ("image", "audio", "video") else "document"


def calls(messages: Iterable[Message]) -> tuple[ToolCallRef, ...]:
    """The tool calls in the messages, in order."""
    return tuple(
        ToolCallRef(id=text(part.get("id")), name=text(part.get("name")) or "", arguments=part.get("arguments"))
        for message in messages
        for part in map(mapping, items(message.get("parts")))
        if part.get("type") == "tool_call"
    )


def put(view: dict[str, AttributeValue], name: str, value: AttributeValue | None) -> None:
    """Sets an attribute unless there is nothing to set; what UTF-8 cannot write becomes ``?``."""
    if isinstance(value, str):
        view[name] = _writable(value)
    elif isinstance(value, tuple):
        if value:
            view[name] = tuple(_writable(item) for item in value)
    elif value is not None:
        view[name] = value


def put_settings(view: dict[str, AttributeValue], given: Mapping[str, object]) -> None:
    """Sets the attributes of the :data:`SETTINGS` that are given."""
    for key, name in SETTINGS.items():
        value = given.get(key)
        if value is None:
            continue
        put(view, name, strings(value) if key == "stop_sequences" else integer(value) if key in _WHOLE else number(value))


def put_json(view: dict[str, AttributeValue], name: str, value: Sequence[object]) -> None:
    """Sets an attribute to the JSON of the list unless it is empty."""
    if value:
        view[name] = dumps(value)


def put_made(view: dict[str, AttributeValue], name: str, given: Sequence[object], make: Callable[[object], object]) -> None:
    """Sets an attribute to the JSON of what is made of each item of a list unless it is empty; see :func:`._written.written`."""
    if given:
        view[name] = written(given, make)


def total(*counts: object) -> int | None:
    """The sum of what is counted apart (fresh and cached tokens); ``None`` unless the first is a count."""
    found = list(map(integer, counts))
    return None if not found or found[0] is None else sum(count or 0 for count in found)


def strings(value: object) -> tuple[str, ...]:
    """The strings of a list, or a lone string."""
    return (value,) if isinstance(value, str) else tuple(item for item in items(value) if isinstance(item, str))


def _writable(value: str) -> str:
    return value.encode("utf-8", "replace").decode()


# ---- from messages back to the wire ------------------------------------------------------------------------------


def all_parts(messages: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    """The parts of all messages, as one choice holds them; what is no object is left out."""
    return [part for message in messages for part in items(message.get("parts")) if isinstance(part, dict)]


def finish_of(messages: Sequence[Mapping[str, object]], parts: Sequence[Mapping[str, object]]) -> str:
    """The finish reason of the messages in the words of the conventions; told from the parts where none is given."""
    given = [reason for message in messages if (reason := finish(message.get("finish_reason")))]
    asks = any(part.get("type") == "tool_call" for part in parts)
    return given[-1] if given else "tool_call" if asks else "stop"


def content_of(part: Mapping[str, object]) -> str:
    """The text of a ``text``, ``reasoning`` or ``refusal`` part, also as older instrumentations name it."""
    if part.get("type") == "refusal":
        part = {"content": part.get("refusal", part.get("content"))}
    for key in ("content", "thinking", "text"):
        value = part.get(key)
        if isinstance(value, str):
            return value
    return dumps(part["content"]) if part.get("content") is not None else ""


def arguments_text(part: Mapping[str, object]) -> str:
    """The arguments of a ``tool_call`` part as the text that a model writes."""
    arguments = part.get("arguments")
    return as_text({} if arguments is None else arguments)


def arguments_object(part: Mapping[str, object]) -> object:
    """The arguments of a ``tool_call`` part :func:`parsed`; none at all are an empty object."""
    arguments = parsed(part.get("arguments"))
    return {} if arguments is None else arguments


def made_id(prefix: str, *content: object) -> str:
    """An id for what has none: always the same one for the same content."""
    return prefix + hashlib.sha256(dumps(content).encode("utf-8", "replace")).hexdigest()[:24]


def count(usage: Mapping[str, int], name: str) -> int:
    """A token count by its attribute name, or as a step names it (no common prefix, underscores for dots); 0 if absent."""
    return integer(usage.get(name, usage.get(name.removeprefix(_USAGE_PREFIX).replace(".", "_")))) or 0


def input_tokens(usage: Mapping[str, int]) -> int:
    """All input tokens, cached ones included."""
    return count(usage, names.GEN_AI_USAGE_INPUT_TOKENS)


def output_tokens(usage: Mapping[str, int]) -> int:
    """All output tokens, reasoning included."""
    return count(usage, names.GEN_AI_USAGE_OUTPUT_TOKENS)
