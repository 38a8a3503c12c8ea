"""LiteLLM's two spans of a call, and what stands on the application's own."""

import json
from typing import Any

import pytest

from fixtures.runs.spans import said, span
from spanreplay.replay.dialects.litellm import DIALECT
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import Scope, SpanRecord, Value

SCOPE = Scope(name="litellm")
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
ASKS = {"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a": 1}}
TOLD = [
    {"role": "user", "parts": [{"type": "text", "content": "q"}]},
    {"role": "assistant", "parts": [{"type": "text", "content": ""}], "tool_calls": [CALL]},
    {"role": "tool", "parts": [{"type": "text", "content": "2"}], "tool_call_id": "c1"},
]


def request(more: dict[str, Value] | None = None) -> SpanRecord:
    attributes: dict[str, Value] = {
        a.GEN_AI_OPERATION_NAME: "chat",
        a.GEN_AI_REQUEST_MODEL: "m",
        a.GEN_AI_RESPONSE_ID: "r1",
        "llm.request.type": "completion",
        "llm.request.functions.0.name": "add",
        "llm.request.functions.0.description": "",
        "llm.request.functions.0.parameters": '{"type": "object"}',
        a.GEN_AI_INPUT_MESSAGES: json.dumps(TOLD),
        a.GEN_AI_OUTPUT_MESSAGES: '[{"role": "assistant", "parts": [], "finish_reason": "tool_calls"}]',
        "gen_ai.completion.0.function_call.name": "add",
        "gen_ai.completion.0.function_call.arguments": '{"a": 1}',
        **(more or {}),
    }
    return span(1, name="litellm_request", scope=SCOPE, start=0, end=100, attributes=attributes)


def raw(number: int = 2, parent: int | None = 1, **members: Any) -> SpanRecord:
    shown = {f"llm.openai.{name}": value if isinstance(value, int) else str(value) for name, value in members.items()}
    return span(number, parent, name="raw_gen_ai_request", scope=SCOPE, start=1, end=90, attributes=shown)


RAW = raw(
    messages=[{"role": "user", "content": "q"}],
    tools=[{"type": "function", "function": {"name": "add"}}],
    id="r1",
    model="m",
    choices=[{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": None, "tool_calls": [CALL]}}],
    usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    temperature="",
)


def read(record: SpanRecord) -> StepDraft:
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, ())
    assert draft is not None
    return draft


def test_calls_and_results_beside_the_parts_are_parts() -> None:
    draft = read(request())
    asked: Any = draft.input
    assert [message["parts"] for message in asked["messages"][1:]] == [
        [ASKS],
        [{"type": "tool_call_response", "id": "c1", "response": "2"}],
    ]
    assert asked["tools"] == [{"type": "function", "name": "add", "parameters": {"type": "object"}}]


def test_what_an_answer_asks_for_has_no_ids_without_the_raw_span() -> None:
    answered: Any = read(request()).output
    assert answered["messages"][0]["parts"] == [{**ASKS, "id": None}]
    kept: Any = read(request({a.GEN_AI_OUTPUT_MESSAGES: said("done", "assistant")})).output
    assert kept["messages"][0]["parts"] == [{"type": "text", "content": "done"}], "calls of an earlier answer may still stand there"


def test_the_raw_span_is_the_request_and_the_response_of_the_provider() -> None:
    draft = read(RAW)
    view: Any = draft.output
    assert (draft.name, draft.response_id, view["messages"][0]["parts"]) == ("m", "r1", [ASKS])
    assert draft.usage == {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    asked: Any = draft.input
    assert (asked["messages"][0]["parts"], asked["tools"][0]["name"]) == ([{"type": "text", "content": "q"}], "add")
    assert "temperature" not in asked["params"], "what was not set is written as an empty text"


def test_two_spans_of_one_call_are_one_step() -> None:
    (run,) = build_runs([request(), RAW])
    (step,) = run.steps
    answered: Any = step.output
    assert (step.kind, step.grade, answered["messages"][0]["parts"]) == ("model_call", "semantic", [ASKS])


@pytest.mark.parametrize(
    "record",
    [
        raw(),
        raw(messages="not what Python shows"),
        request({a.GEN_AI_OPERATION_NAME: "embeddings"}),
    ],
)
def test_what_is_no_call_for_an_answer_is_no_step(record: SpanRecord) -> None:
    assert DIALECT.read(record, ()) is None


def test_spans_of_others_are_left_to_them() -> None:
    assert not DIALECT.claims(span(1, name="raw_gen_ai_request"))
    assert not DIALECT.claims(span(1, name="auth", scope=SCOPE))
