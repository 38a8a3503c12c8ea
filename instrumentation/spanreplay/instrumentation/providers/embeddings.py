"""Embeddings: vectors of texts, as the APIs of OpenAI, Gemini, Cohere, Ollama and Bedrock (Titan, Cohere) give them.

Wire formats: <https://platform.openai.com/docs/api-reference/embeddings>, <https://ai.google.dev/api/embeddings>,
<https://docs.cohere.com/reference/embed>, <https://docs.ollama.com/api/embed>,
<https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html>. The vectors are in the body and in no
attribute: the conventions have none for them, and they are long.
"""

import re
import struct
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import ClassVar, Final
from urllib.parse import unquote

from spanreplay.instrumentation import _parts
from spanreplay.instrumentation._codec import Codec, Said
from spanreplay.instrumentation._lenient import dumps, integer, items, mapping, text
from spanreplay.instrumentation._outcomes import read
from spanreplay.instrumentation._parts import put
from spanreplay.instrumentation.provider import AttributeValue, ModelRequest, ModelResponse, ProviderKind, trimmed
from spanreplay.semconv import attributes as names

_GEMINI: Final = re.compile(r"/([^/:]+):(?:batchEmbedContents|embedContent)$")
_BEDROCK: Final = re.compile(r"/model/([^/]+)/invoke$")
_API: Final = "api"
"""Field that :meth:`Embeddings.asked` adds: whose shape the response has."""
_VENDORS: Final[Mapping[str, str]] = {
    "openai": "openai",
    "gemini": "gcp.gen_ai",
    "gemini.batch": "gcp.gen_ai",
    "cohere": "cohere",
    "ollama": "ollama",
    "ollama.one": "ollama",
    "titan": "aws.bedrock",
    "bedrock.cohere": "aws.bedrock",
}
"""Shape to ``gen_ai.provider.name``."""
VECTORS: Final = "embeddings"
"""Generic type of a part that holds vectors: lists of numbers."""


class Embeddings(Codec):
    """Codec of ``POST …/embeddings``, ``:embedContent``, ``/embed`` and, for models that embed, ``/model/{model}/invoke``."""

    NAME: ClassVar[str] = "embeddings"
    KIND: ClassVar[ProviderKind] = "retrieval"
    PATHS: ClassVar[tuple[str, ...]] = ("/embeddings", ":embedContent", ":batchEmbedContents", "/embed", "/invoke")

    def matches(self, method: str, path: str, body: object) -> bool:
        """A POST with something to embed."""
        return method.upper() == "POST" and _shape(path, mapping(body)) is not None

    def asked(self, path: str, body: object) -> object:
        """The body with the model that the path names, and with ``api`` where the response has not OpenAI's shape."""
        found = mapping(body)
        shape = _shape(path, found)
        if shape is None:
            return body
        named = _GEMINI.search(trimmed(path)) or _BEDROCK.search(trimmed(path))
        model = unquote(named[1]) if named else unquote(path.partition("/deployments/")[2].partition("/")[0])
        added: dict[str, object] = {"model": model} if model and (named or not isinstance(found.get("model"), str)) else {}
        return {**found, **added, **({_API: shape} if shape != "openai" else {})}

    def request(self, body: object) -> ModelRequest:
        """What is embedded is in the body, and in no attribute."""
        found = mapping(body)
        view: dict[str, AttributeValue] = {names.GEN_AI_OPERATION_NAME: "embeddings"}
        view[names.GEN_AI_PROVIDER_NAME] = _VENDORS.get(_api(found), "openai")
        model = text(found.get("model"))
        put(view, names.GEN_AI_REQUEST_MODEL, model)
        put(view, names.GEN_AI_REQUEST_ENCODING_FORMATS, _parts.strings(found.get("encoding_format") or found.get("embedding_types")))
        return ModelRequest(model=model, stream=False, attributes=view)

    def response(self, status: int, content_type: str, body: bytes, request: object) -> ModelResponse:
        """Of the vectors, their length."""
        return read(status, content_type, body, list_field="embedding", whole=_whole, is_own=_is_own)

    def terminal(self, tail: bytes) -> bool:
        """Never: nothing is streamed."""
        return False

    def write(self, said: Said) -> tuple[str, bytes]:
        """The vectors of all generic parts of the type ``embeddings``."""
        found = [part for part in _parts.all_parts(said.messages) if part.get("generic_type") == VECTORS]
        vectors = [vector for part in found for vector in items(part.get("value"))]
        made = _written(said, vectors)
        return "application/json", dumps(made).encode()


PROVIDER: Final = Embeddings()


# ---- the wire read -----------------------------------------------------------------------------------------------


def _shape(path: str, body: Mapping[str, object]) -> str | None:
    place = trimmed(path)
    model = isinstance(body.get("model"), str)
    if _GEMINI.search(place):
        return "gemini.batch" if isinstance(body.get("requests"), list) else "gemini" if isinstance(body.get("content"), dict) else None
    if _BEDROCK.search(place):
        if isinstance(body.get("inputText"), str) and not body.keys() & {"textGenerationConfig"}:
            return "titan"
        return "bedrock.cohere" if isinstance(body.get("texts"), list) and isinstance(body.get("input_type"), str) else None
    if place.endswith("/api/embed"):
        return "ollama" if model and body.get("input") is not None else None
    if place.endswith("/api/embeddings") and isinstance(body.get("prompt"), str):
        return "ollama.one" if model else None
    if place.endswith(("/v1/embed", "/v2/embed")):
        return "cohere" if model and body.keys() & {"texts", "images", "inputs"} else None
    if place.endswith("/embeddings"):
        return "openai" if body.get("input") is not None and (model or "/deployments/" in place) else None
    return None


def _api(asked: Mapping[str, object]) -> str:
    return text(asked.get(_API)) or "openai"


def _is_own(body: dict[str, object]) -> bool:
    return bool(_vectors(body)) or any(isinstance(body.get(key), list) for key in ("data", "embeddings"))


def _vectors(body: Mapping[str, object]) -> list[object]:
    """The vectors of any of the shapes, as they are written: lists, or base64 of 32-bit floats."""
    if isinstance(body.get("data"), list):
        return [mapping(item).get("embedding") for item in items(body["data"])]
    one, many = body.get("embedding"), body.get("embeddings")
    if isinstance(many, dict):
        return [vector for vectors in many.values() for vector in items(vectors)]
    if isinstance(many, list):
        return [mapping(item).get("values") if isinstance(item, dict) else item for item in many]
    return [] if one is None else [one.get("values") if isinstance(one, dict) else one]


def _length(vector: object) -> int | None:
    if isinstance(vector, list):
        return len(vector)
    if isinstance(vector, str):
        try:
            return len(b64decode(vector, validate=True)) // 4
        except ValueError:
            return None
    return None


def _whole(body: dict[str, object]) -> ModelResponse:
    view: dict[str, AttributeValue] = {}
    put(view, names.GEN_AI_RESPONSE_ID, text(body.get("id")))
    put(view, names.GEN_AI_RESPONSE_MODEL, text(body.get("model")))
    vectors = _vectors(body)
    put(view, names.GEN_AI_EMBEDDINGS_DIMENSION_COUNT, _length(vectors[0]) if vectors else None)
    counted = mapping(mapping(body.get("meta")).get("billed_units"))
    given = (
        mapping(body.get("usage")).get("prompt_tokens"),
        body.get("prompt_eval_count"),
        body.get("inputTextTokenCount"),
        counted.get("input_tokens"),
        mapping(body.get("usageMetadata")).get("promptTokenCount"),
    )
    put(view, names.GEN_AI_USAGE_INPUT_TOKENS, next((count for count in map(integer, given) if count is not None), None))
    return ModelResponse(attributes=view, outcome="ok", complete=True)


# ---- the wire written --------------------------------------------------------------------------------------------


def _written(said: Said, vectors: list[object]) -> dict[str, object]:
    asked, tokens = said.asked, _parts.input_tokens(said.usage)
    first = vectors[0] if vectors else []
    match _api(asked):
        case "gemini":
            return {"embedding": {"values": first}}
        case "gemini.batch":
            return {"embeddings": [{"values": vector} for vector in vectors]}
        case "cohere":
            texts = asked.get("texts") or []
            counted = {"billed_units": {"input_tokens": tokens}}
            made_id = said.response_id or _parts.made_id("", vectors)
            return {"id": made_id, "embeddings": {"float": vectors}, "texts": texts, "meta": counted, "response_type": "embeddings_by_type"}
        case "bedrock.cohere":
            made_id = said.response_id or _parts.made_id("", vectors)
            return {"id": made_id, "embeddings": vectors, "texts": asked.get("texts") or [], "response_type": "embeddings_floats"}
        case "ollama":
            return {"model": said.model, "embeddings": vectors, "total_duration": 0, "load_duration": 0, "prompt_eval_count": tokens}
        case "ollama.one":
            return {"embedding": first}
        case "titan":
            return {"embedding": first, "inputTextTokenCount": tokens}
    packed = asked.get("encoding_format") == "base64"
    data = [{"object": "embedding", "index": at, "embedding": _packed(vector) if packed else vector} for at, vector in enumerate(vectors)]
    return {"object": "list", "data": data, "model": said.model, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}


def _packed(vector: object) -> object:
    """The numbers as OpenAI's SDK asks for them: 32-bit floats, base64."""
    try:
        return b64encode(struct.pack(f"<{len(items(vector))}f", *items(vector))).decode("ascii") if isinstance(vector, list) else vector
    except (struct.error, OverflowError):
        return vector
