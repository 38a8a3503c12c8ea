"""Gemini's generateContent, on the Gemini API, on Vertex AI and on every server that speaks it.

Wire format: <https://ai.google.dev/api/generate-content>. The path names the model and says whether the answer is streamed: as server-sent
events with ``alt=sse``, as one JSON array that arrives piece by piece without. A stream has no event that ends it; its last chunk says why
the model stopped. Fields are read in camelCase, as they are documented, and in snake_case, which the API takes too.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final
from urllib.parse import unquote

from spanreplay.instrumentation import _parts, _sse
from spanreplay.instrumentation._codec import Codec, Said
from spanreplay.instrumentation._lenient import as_text, dumps, integer, items, loads, mapping, text
from spanreplay.instrumentation._outcomes import Assembled, answered, error_in, malformed, output, read
from spanreplay.instrumentation._parts import Message, Part, put, put_json, put_made
from spanreplay.instrumentation.provider import AttributeValue, ModelRequest, ModelResponse, trimmed
from spanreplay.semconv import attributes as names

_METHOD: Final = re.compile(r"/([^/:]+):(?:generate|streamGenerate)Content$")
_CAMEL: Final = re.compile(r"_([a-z])")
_FINISH_BACK: Final[Mapping[str, str]] = {
    "stop": "STOP",
    "tool_call": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "error": "OTHER",
}
_BLOCKED: Final = "content_filter"
_CANDIDATE: Final = "candidate."
"""Generic type of a part that holds a field of the candidate itself, for example ``candidate.groundingMetadata``."""
_CANDIDATE_FIELDS: Final = ("citationMetadata", "groundingMetadata", "urlContextMetadata", "finishMessage")
_BESIDE: Final[tuple[str, ...]] = ("thoughtSignature", "videoMetadata", "partMetadata", "mediaResolution")
"""Fields that stand on a part beside what it is."""


class Gemini(Codec):
    """Codec of ``POST …/{model}:generateContent`` and ``:streamGenerateContent``; counting tokens and batches have other methods."""

    NAME: ClassVar[str] = "gemini"
    PATHS: ClassVar[tuple[str, ...]] = (":generateContent", ":streamGenerateContent")
    LOCAL_IDS: ClassVar[tuple[str, ...]] = ("contents[*].parts[*].functionCall.id", "contents[*].parts[*].functionResponse.id", "labels.*")

    def matches(self, method: str, path: str, body: object) -> bool:
        """A POST with contents."""
        found = mapping(body)
        return (
            method.upper() == "POST" and _METHOD.search(trimmed(path)) is not None and isinstance(found.get("contents"), (list, dict, str))
        )

    def asked(self, path: str, body: object) -> object:
        """The body with ``model``, and for a stream ``stream`` (true) and, where the query has it, ``alt``."""
        found = _METHOD.search(trimmed(path))
        if found is None:
            return body
        told: dict[str, object] = {**mapping(body), "model": unquote(found[1])}
        if ":stream" in found[0]:
            told["stream"] = True
            if "alt=sse" in path.partition("?")[2].split("&"):
                told["alt"] = "sse"
        return told

    def request(self, body: object) -> ModelRequest:
        """Results of tools stay in the message of the role that the API gives them, ``user``."""
        found = mapping(body)
        view: dict[str, AttributeValue] = {names.GEN_AI_OPERATION_NAME: "generate_content", names.GEN_AI_PROVIDER_NAME: "gcp.gen_ai"}
        model = text(found.get("model"))
        put(view, names.GEN_AI_REQUEST_MODEL, model)
        config = mapping(_field(found, "generationConfig"))
        put(view, names.GEN_AI_REQUEST_MAX_TOKENS, integer(_field(config, "maxOutputTokens")))
        choices = integer(_field(config, "candidateCount"))
        put(view, names.GEN_AI_REQUEST_CHOICE_COUNT, None if choices == 1 else choices)
        _parts.put_settings(view, {key: _field(config, _camel(key)) for key in _parts.SETTINGS})
        put(view, names.GEN_AI_REQUEST_REASONING_LEVEL, text(_field(mapping(_field(config, "thinkingConfig")), "thinkingLevel")))
        put(view, names.GEN_AI_OUTPUT_TYPE, "json" if _field(config, "responseMimeType") == "application/json" else None)
        stream = found.get("stream") is True
        put(view, names.GEN_AI_REQUEST_STREAM, True if stream else None)
        put_json(view, names.GEN_AI_SYSTEM_INSTRUCTIONS, _content_parts(_field(found, "systemInstruction")))
        given = found.get("contents")
        contents = given if isinstance(given, list) else [] if given is None else [given]
        put_made(view, names.GEN_AI_INPUT_MESSAGES, contents, _input_message)
        put_json(view, names.GEN_AI_TOOL_DEFINITIONS, [made for tool in items(found.get("tools")) for made in _tool_definitions(tool)])
        return ModelRequest(model=model, stream=stream, attributes=view)

    def response(self, status: int, content_type: str, body: bytes, request: object) -> ModelResponse:
        """One output message per candidate; a prompt that was blocked is one message without parts."""
        if 200 <= status < 300 and not _sse.is_stream(content_type, body):
            if body.lstrip()[:1] == b"[":
                return _array(body)
            blocked = _blocked_whole(body)
            if blocked is not None:
                return _whole(blocked)
        return read(status, content_type, body, list_field="candidates", assemble=_assemble, whole=_whole)

    def terminal(self, tail: bytes) -> bool:
        """A chunk that says why the model stopped, or an error; the bracket that ends an array of chunks."""
        events = _sse.last_events(tail)
        return _ends(events[-1].data) if events else tail.rstrip().endswith(b"]")

    def write(self, said: Said) -> tuple[str, bytes]:
        """All messages make one candidate, unless the request asks for several; ids of calls are written only where there are any."""
        config = mapping(_field(said.asked, "generationConfig"))
        candidates: list[dict[str, object]] = []
        for index, group in enumerate(said.choices(_field(config, "candidateCount"))):
            parts = _parts.all_parts(group)
            reason = _parts.finish_of(group, parts)
            content = {"parts": [_wire_part(part) for part in parts if _parts.field_of(part, _CANDIDATE) is None], "role": "model"}
            extra = {field: part.get("value") for part in parts if (field := _parts.field_of(part, _CANDIDATE)) is not None}
            candidates.append({"content": content, "finishReason": _FINISH_BACK.get(reason, reason), "index": index, **extra})
        head: dict[str, object] = {
            "modelVersion": said.model,
            "responseId": said.response_id or _parts.made_id("", candidates),
        }
        counts: dict[str, object] = {"usageMetadata": _wire_usage(said.usage)} if said.usage else {}
        if said.asked.get("stream") is not True:
            return "application/json", dumps({"candidates": candidates, **counts, **head}).encode()
        chunks = _chunks(candidates, counts, head)
        if said.asked.get("alt") == "sse":
            return _sse.CONTENT_TYPE, _sse.render(("", chunk) for chunk in chunks)
        return "application/json", ("[" + ",\n".join(map(dumps, chunks)) + "\n]").encode()


PROVIDER: Final = Gemini()


# ---- the wire read -----------------------------------------------------------------------------------------------


def _field(found: Mapping[str, object], name: str) -> object:
    """A field by its documented name, or in snake_case."""
    value = found.get(name)
    return found.get(_snake(name)) if value is None else value


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


def _camel(name: str) -> str:
    return _CAMEL.sub(lambda found: found[1].upper(), name)


def _tool_definitions(tool: object) -> Iterator[object]:
    """The functions that a tool declares, and every built-in tool by its name."""
    found = mapping(tool)
    if not found:
        yield _parts.generic(tool)
    for name, value in found.items():
        if _camel(name) != "functionDeclarations":
            yield {"type": _camel(name), **mapping(value)}
            continue
        for declared in map(mapping, items(value)):
            parameters = _field(declared, "parametersJsonSchema") or declared.get("parameters")
            known = _parts.function(declared.get("name"), declared.get("description"), parameters)
            yield _parts.extras(declared, known, ("parametersJsonSchema", "parameters_json_schema"))


def _input_message(content: object) -> Message:
    if isinstance(content, str):
        return {"role": "user", "parts": [_parts.text_part(content)]}
    found = mapping(content)
    if not found:
        return {"role": "", "parts": [_parts.generic(content)]}
    role = text(found.get("role")) or "user"
    return {"role": {"model": "assistant", "function": "tool"}.get(role, role), "parts": _content_parts(found)}


def _content_parts(content: object) -> list[Part]:
    if isinstance(content, str):
        return [_parts.text_part(content)] if content else []
    given = mapping(content).get("parts")
    return [_part(part) for part in (given if isinstance(given, list) else [] if given is None else [given])]


def _part(part: object) -> Part:
    if isinstance(part, str):
        return _parts.text_part(part)
    found = {_camel(key): value for key, value in mapping(part).items() if value is not None}
    beside = {key: found.pop(key) for key in _BESIDE if key in found}
    thought = found.pop("thought", None)
    if not found or set(found) == {"text"}:
        said = found.get("text", "" if beside else None)
        if isinstance(said, str):
            return {"type": "reasoning" if thought is True else "text", "content": said, **beside}
    if len(found) == 1:
        kind, value = next(iter(found.items()))
        made = _known_part(kind, {_camel(key): inner for key, inner in mapping(value).items()})
        if made is not None:
            return {**made, **beside}
    return _parts.generic(part)


def _known_part(kind: str, value: Mapping[str, object]) -> Part | None:
    mime_type = text(value.get("mimeType"))
    if kind == "functionCall":
        return {"type": "tool_call", "id": text(value.get("id")), "name": text(value.get("name")) or "", "arguments": value.get("args")}
    if kind == "functionResponse":
        made = _parts.tool_response(value.get("id"), value.get("response")) | {"name": text(value.get("name")) or ""}
        return _parts.extras(value, made, ("args",))
    if kind == "inlineData" and isinstance(value.get("data"), str):
        return {"type": "blob", "mime_type": mime_type, "modality": _parts.modality_of(mime_type), "content": value["data"]}
    if kind == "fileData" and isinstance(value.get("fileUri"), str):
        return {"type": "uri", "mime_type": mime_type, "modality": _parts.modality_of(mime_type), "uri": value["fileUri"]}
    return None


def _whole(body: dict[str, object]) -> ModelResponse:
    outputs: list[tuple[Message, str | None]] = []
    for candidate in map(mapping, items(body.get("candidates"))):
        parts = _content_parts(candidate.get("content"))
        parts += [_parts.generic(told, _CANDIDATE + key) for key in _CANDIDATE_FIELDS if (told := _field(candidate, key))]
        said = output("assistant", parts, _field(candidate, "finishReason"))
        if parts or said[1]:
            outputs.append(said)
    blocked = _block_reason(body)
    if blocked is not None and not outputs:
        outputs.append(({"role": "assistant", "parts": [], "finish_reason": _BLOCKED}, blocked))
    usage = mapping(_field(body, "usageMetadata"))
    made_of, thought = _field(usage, "candidatesTokenCount"), _field(usage, "thoughtsTokenCount")
    counts = {
        names.GEN_AI_USAGE_INPUT_TOKENS: _parts.total(_field(usage, "promptTokenCount"), _field(usage, "toolUsePromptTokenCount")),
        names.GEN_AI_USAGE_OUTPUT_TOKENS: thought if integer(made_of) is None else _parts.total(made_of, thought),
        names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: _field(usage, "cachedContentTokenCount"),
        names.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: thought,
    }
    return answered(outputs, counts, response_id=_field(body, "responseId"), model=_field(body, "modelVersion"))


def _block_reason(body: Mapping[str, object]) -> str | None:
    return text(_field(mapping(_field(body, "promptFeedback")), "blockReason"))


def _blocked_whole(body: bytes) -> dict[str, object] | None:
    """The answer to a prompt that was blocked: it has no candidates."""
    if b"lock" not in body:
        return None
    try:
        parsed = mapping(loads(body))
    except ValueError:
        return None
    return parsed if "candidates" not in parsed and _block_reason(parsed) is not None else None


def _assemble(frames: _sse.Frames) -> Assembled:
    return _joined([chunk for _, chunk in frames.objects])


def _joined(chunks: Sequence[dict[str, object]]) -> Assembled:
    head: dict[str, object] = {}
    candidates: dict[int, dict[str, object]] = {}
    error: tuple[str, str] | None = None
    ended = False
    growth = _sse.Growth()
    for chunk in chunks:
        error = error or error_in(chunk)
        head.update({_camel(key): value for key, value in chunk.items() if key != "candidates" and value is not None})
        for place, piece in enumerate(map(mapping, items(chunk.get("candidates")))):
            index = integer(piece.get("index"))
            candidate = candidates.setdefault(place if index is None else index, {"content": {"parts": []}})
            candidate.update({_camel(key): value for key, value in piece.items() if key != "content" and value is not None})
            _continue(items(mapping(candidate["content"])["parts"]), items(mapping(piece.get("content")).get("parts")), growth)
        ended = ended or _says_the_end(chunk)
    growth.settle()
    body = {**head, "candidates": [candidates[index] for index in sorted(candidates)]}
    return Assembled(body=body, complete=ended, error=error)


def _continue(have: list[object], pieces: Sequence[object], growth: _sse.Growth) -> None:
    """The first part of a chunk continues the last one of the chunk before where both are plain text of the same sort."""
    for place, piece in enumerate(pieces):
        last, found = mapping(have[-1]) if have else {}, mapping(piece)
        said = found.get("text")
        if place == 0 and isinstance(said, str) and _is_plain(last) and _is_plain(found) and last.get("thought") == found.get("thought"):
            growth.add(last, "text", said)
        else:
            have.append(dict(found) if found else piece)


def _is_plain(part: Mapping[str, object]) -> bool:
    return isinstance(part.get("text"), str) and part.keys() <= {"text", "thought"}


def _says_the_end(chunk: Mapping[str, object]) -> bool:
    candidates = map(mapping, items(chunk.get("candidates")))
    return _block_reason(chunk) is not None or any(_field(candidate, "finishReason") for candidate in candidates)


def _ends(data: str) -> bool:
    try:
        chunk = loads(data)
    except ValueError:
        return False
    return error_in(chunk) is not None or _says_the_end(mapping(chunk))


def _array(body: bytes) -> ModelResponse:
    """A stream that is one JSON array, as far as it came."""
    chunks, whole = _elements(body.decode("utf-8", "replace"))
    if not chunks:
        return malformed("the body is an array without a chunk of an answer")
    answer = _joined(chunks).answer(_whole)
    return answer if whole else replace(answer, complete=False)


def _elements(array: str) -> tuple[list[dict[str, object]], bool]:
    """The objects of a JSON array that may be cut, and whether it is whole."""
    decoder = json.JSONDecoder()
    found: list[dict[str, object]] = []
    place = array.find("[") + 1
    while True:
        place += len(array[place:]) - len(array[place:].lstrip(" \t\r\n,"))
        if place >= len(array) or array[place] != "{":
            return found, array[place : place + 1] == "]"
        try:
            value, place = decoder.raw_decode(array, place)
        except (ValueError, RecursionError):
            return found, False
        found.append(mapping(value))


# ---- the wire written --------------------------------------------------------------------------------------------


def _wire_part(part: Mapping[str, object]) -> dict[str, object]:
    kind = part.get("type")
    beside = {key: part[key] for key in _BESIDE if key in part}
    if kind in ("text", "reasoning"):
        thought: dict[str, object] = {"thought": True} if kind == "reasoning" else {}
        return {"text": _parts.content_of(part), **thought, **beside}
    if kind == "tool_call":
        call = {"id": text(part.get("id")), "name": text(part.get("name")) or "", "args": _parts.parsed(part.get("arguments"))}
        return {"functionCall": {key: value for key, value in call.items() if value is not None}, **beside}
    if kind == "blob":
        return {"inlineData": _media(part, "data", "content", "data"), **beside}
    if kind in ("uri", "file"):
        return {"fileData": _media(part, "fileUri", "uri", "file_id"), **beside}
    if kind == "refusal":
        return {"text": _parts.content_of(part)}
    value = _parts.original(part)
    if isinstance(value, dict) and kind == "generic":
        return value
    return {"text": as_text(value)}


def _media(part: Mapping[str, object], field: str, *sources: str) -> dict[str, object]:
    made = {"mimeType": text(part.get("mime_type")), field: next((part[key] for key in sources if part.get(key) is not None), None)}
    return {key: value for key, value in made.items() if value is not None}


def _wire_usage(usage: Mapping[str, int]) -> dict[str, object]:
    given, made = _parts.input_tokens(usage), _parts.output_tokens(usage)
    thought = _parts.count(usage, names.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS)
    cached = _parts.count(usage, names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS)
    counts: dict[str, object] = {"promptTokenCount": given, "candidatesTokenCount": max(made - thought, 0), "totalTokenCount": given + made}
    return counts | ({"cachedContentTokenCount": cached} if cached else {}) | ({"thoughtsTokenCount": thought} if thought else {})


def _chunks(
    candidates: Sequence[dict[str, object]], counts: Mapping[str, object], head: Mapping[str, object]
) -> Iterator[dict[str, object]]:
    """A chunk for each part of each candidate; the last of a candidate says why it ended, the very last what was counted."""
    for place, candidate in enumerate(candidates):
        parts = items(mapping(candidate["content"]).get("parts"))
        last = place == len(candidates) - 1
        for part in parts[:-1]:
            yield {"candidates": [{"content": {"parts": [part], "role": "model"}, "index": candidate["index"]}], **head}
        ended = {**candidate, "content": {"parts": parts[-1:], "role": "model"}}
        yield {"candidates": [ended], **(counts if last else {}), **head}
