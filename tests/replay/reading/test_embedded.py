"""Calls for embeddings are answered with the vectors that others recorded, and what cannot be answered says why."""

from typing import Any

import httpx2
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.replay import Replayer, ReplayResult, build_runs
from spanreplay.replay.reading.embedded import alike_texts, embeds, given_texts, vectors, vectors_meaning
from spanreplay.spans.record import SpanRecord, Value
from support.handmade import step

MADE = ((0.5, -0.25), (1.0, 2.0))


def recorded(texts: list[str], made: Any = MADE, **more: Value) -> SpanRecord:
    """A span as OpenInference writes it."""
    attributes: dict[str, Value] = {"openinference.span.kind": "EMBEDDING", "embedding.model_name": "e", **more}
    for place, text in enumerate(texts):
        attributes[f"embedding.embeddings.{place}.embedding.text"] = text
    for place, vector in enumerate(made):
        attributes[f"embedding.embeddings.{place}.embedding.vector"] = vector
    return SpanRecord(
        trace_id="a" * 32, span_id="b" * 16, parent_span_id=None, name="CreateEmbeddings", kind=1, start_ns=10**9, end_ns=2 * 10**9,
        status=0, status_message="", attributes=attributes,
    )  # fmt: skip


def no_request(request: httpx2.Request) -> httpx2.Response:
    raise AssertionError(f"a request was sent: {request.url}")


def replayed(span: SpanRecord, texts: str | list[str], model: str = "e") -> ReplayResult:
    def agent() -> list[list[float]]:
        http = httpx2.Client(transport=httpx2.MockTransport(no_request), verify=False)
        client = openai.OpenAI(api_key="none", base_url="http://model.invalid/v1", http_client=http)
        return [item.embedding for item in client.embeddings.create(model=model, input=texts).data]

    return Replayer(list(build_runs([span]))).replay(agent)


def test_recorded_vectors_answer() -> None:
    result = replayed(recorded(["x", "y"]), ["x", "y"])
    assert (result.differences, result.value) == ((), [[0.5, -0.25], [1.0, 2.0]])
    assert (result.verdict.matched, result.verdict.exit_code) == (1, 0)
    assert replayed(recorded(["x"], MADE[:1]), "x").value == [[0.5, -0.25]]


def test_another_text_is_found() -> None:
    (difference,) = replayed(recorded(["x", "y"]), ["x", "z"]).differences
    assert (difference.kind, difference.field, difference.recorded, difference.actual) == ("input", "input[1]", '"y"', '"z"')


@pytest.mark.parametrize("texts", [["x", "y"], []])
def test_without_the_texts_or_the_vectors_it_is_a_fault_of_the_record(texts: list[str]) -> None:
    result = replayed(recorded(texts, MADE[:1] if texts else MADE), ["x", "y"])
    assert ([d.kind for d in result.differences], result.verdict.exit_code) == (["not_replayable"], 125)
    assert "vector" in result.differences[0].detail or "no input was captured" in result.differences[0].detail


def test_a_search_answers_no_call_for_embeddings() -> None:
    found = {"openinference.span.kind": "RETRIEVER", "input.value": "x", "retrieval.documents.0.document.content": "y"}
    (difference,) = replayed(recorded([], (), **found), "x").differences
    assert (difference.kind, difference.detail) == ("never_recorded", "the record has no call for embeddings")


@pytest.mark.parametrize(
    "body",
    [
        {"input": ["x", "y"]},
        {"texts": ["x", "y"]},
        {"requests": [{"content": {"parts": [{"text": "x"}]}}, {"content": {"parts": [{"text": "y"}]}}]},
        '{"input": ["x", "y"]}',
    ],
)
def test_texts_of_every_api(body: Any) -> None:
    assert given_texts(body) == ["x", "y"]


@pytest.mark.parametrize(
    "made", [[[1, 2], [3, 4]], {"data": [{"embedding": [1, 2]}, {"embedding": [3, 4]}]}, {"embeddings": "[[1, 2], [3, 4]]"}]
)
def test_vectors_of_every_api(made: Any) -> None:
    assert vectors(made) == [[1, 2], [3, 4]]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x", "[1]", '{"input": "x"}']),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["input", "values", "data", "embedding"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=80, deadline=None)
@given(JSON, JSON)
def test_nothing_that_was_recorded_makes_it_fail(asked: Any, made: Any) -> None:
    one = step(1, None, "", kind="retrieval", name="e", input={"arguments": asked}, output={"result": made})
    assert embeds(one) == (vectors(made) is not None)
    assert vectors_meaning(one) is None or embeds(one)
    alike_texts(one, ["x"], "e", str)
