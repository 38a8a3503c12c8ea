"""Embeddings of every API: recognised, read, written."""

import base64
import json
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.instrumentation.provider import recognise
from spanreplay.instrumentation.providers.embeddings import PROVIDER
from spanreplay.semconv import attributes as names

VECTORS = [[0.5, -1.0, 2.0], [0.25, 2.0, 0.0]]
APIS: list[tuple[str, dict[str, Any], str, str, dict[str, Any]]] = [
    (
        "/v1/embeddings",
        {"model": "m", "input": ["a", "b"]},
        "m",
        "openai",
        {"data": [{"embedding": v} for v in VECTORS], "usage": {"prompt_tokens": 3}},
    ),
    (
        "/openai/deployments/m/embeddings?api-version=1",
        {"input": "a"},
        "m",
        "openai",
        {"data": [{"embedding": base64.b64encode(struct.pack("<3f", *v)).decode()} for v in VECTORS], "usage": {"prompt_tokens": 3}},
    ),
    ("/v1beta/models/m:embedContent", {"content": {"parts": [{"text": "a"}]}}, "m", "gcp.gen_ai", {"embedding": {"values": VECTORS[0]}}),
    (
        "/v1beta/models/m:batchEmbedContents",
        {"requests": [{"content": {"parts": [{"text": "a"}]}}]},
        "m",
        "gcp.gen_ai",
        {"embeddings": [{"values": v} for v in VECTORS]},
    ),
    (
        "/v2/embed",
        {"model": "m", "texts": ["a"], "input_type": "search_query", "embedding_types": ["float"]},
        "m",
        "cohere",
        {"id": "e", "embeddings": {"float": VECTORS}, "meta": {"billed_units": {"input_tokens": 3}}},
    ),
    ("/api/embed", {"model": "m", "input": "a"}, "m", "ollama", {"model": "m", "embeddings": VECTORS, "prompt_eval_count": 3}),
    ("/api/embeddings", {"model": "m", "prompt": "a"}, "m", "ollama", {"embedding": VECTORS[0]}),
    ("/model/a.m%3A0/invoke", {"inputText": "a"}, "a.m:0", "aws.bedrock", {"embedding": VECTORS[0], "inputTextTokenCount": 3}),
    ("/model/c/invoke", {"texts": ["a"], "input_type": "search_query"}, "c", "aws.bedrock", {"embeddings": VECTORS, "id": "e"}),
]


@pytest.mark.parametrize(("path", "body", "model", "vendor", "answer"), APIS, ids=[api[0] for api in APIS])
def test_recognised_read_and_written(path: str, body: dict[str, Any], model: str, vendor: str, answer: dict[str, Any]) -> None:
    found = recognise("POST", path, "application/json", json.dumps(body).encode())
    assert found is not None
    assert found[0] is PROVIDER
    view = PROVIDER.request(found[1])
    assert (view.model, view.stream) == (model, False)
    assert view.attributes[names.GEN_AI_OPERATION_NAME] == "embeddings"
    assert view.attributes[names.GEN_AI_PROVIDER_NAME] == vendor
    read = PROVIDER.response(200, "application/json", json.dumps(answer).encode(), found[1])
    assert (read.outcome, read.complete) == ("ok", True)
    assert read.attributes[names.GEN_AI_EMBEDDINGS_DIMENSION_COUNT] == 3
    assert read.attributes.get(names.GEN_AI_USAGE_INPUT_TOKENS) == (3 if "3" in json.dumps({**answer, "data": 0}) else None)
    said = [{"parts": [{"type": "generic", "generic_type": "embeddings", "value": VECTORS}]}]
    kind, made = PROVIDER.render(said, request=found[1], response_id="e", model=None, usage={})
    again = PROVIDER.response(200, kind, made, found[1])
    assert again.attributes[names.GEN_AI_EMBEDDINGS_DIMENSION_COUNT] == 3
    assert json.loads(made).keys() >= answer.keys() - {"meta", "usage"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/agent/invoke", {"input": {"q": "a"}}),
        ("/model/titan-text/invoke", {"inputText": "a", "textGenerationConfig": {}}),
        ("/model/claude/invoke", {"anthropic_version": "x", "messages": []}),
        ("/v1/embeddings", {"model": "m"}),
        ("/api/embed", {"model": "m"}),
        ("/v1beta/models/m:embedContent", {}),
    ],
)
def test_what_embeds_nothing(path: str, body: dict[str, Any]) -> None:
    assert not PROVIDER.matches("POST", path, body)


def test_failures() -> None:
    read = PROVIDER.response(400, "application/json", b'{"error": {"message": "no such model", "type": "invalid"}}', {})
    assert (read.outcome, read.error) == ("error", ("invalid", "no such model"))
    assert PROVIDER.response(200, "application/json", b'{"message": "no such model"}', {}).error == ("error", "no such model")
    for body in (b"", b"{}", b"[]", b"<html>"):
        assert PROVIDER.response(200, "application/json", body, {}).outcome == "malformed"
    assert not PROVIDER.terminal(b"{}")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["data", "embedding", "embeddings", "values", "x"]), inner),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(body=JSON, api=st.sampled_from([None, "gemini", "gemini.batch", "cohere", "ollama", "ollama.one", "titan", "bedrock.cohere", 7]))
def test_nothing_raises(body: Any, api: Any) -> None:
    read = PROVIDER.response(200, "application/json", json.dumps(body).encode(), body)
    assert read.outcome in ("ok", "malformed", "error")
    PROVIDER.request(PROVIDER.asked("/v1/embeddings", body))
    messages = [{"parts": [{"type": "generic", "generic_type": "embeddings", "value": body}]}]
    PROVIDER.render(messages, request={"api": api, "texts": body, "encoding_format": "base64"}, response_id=None, model=None, usage={})
