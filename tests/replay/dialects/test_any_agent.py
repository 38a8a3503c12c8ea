import json

import pytest

from fixtures.runs.spans import span
from spanreplay.replay.dialects.any_agent import DIALECT
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, SpanRecord, Value


def read(record: SpanRecord) -> StepDraft:
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, ())
    assert draft is not None
    return draft


def model(output: str, kind: str = "text", **more: Value) -> SpanRecord:
    given: dict[str, Value] = {
        a.GEN_AI_OPERATION_NAME: "call_llm",
        a.GEN_AI_REQUEST_MODEL: "m",
        "gen_ai.output": output,
        a.GEN_AI_OUTPUT_TYPE: kind,
    }
    return span(1, name="call_llm m", attributes={**given, **more})


def tool(output: str, kind: str = "json", **more: Value) -> SpanRecord:
    given: dict[str, Value] = {
        a.GEN_AI_OPERATION_NAME: "execute_tool",
        a.GEN_AI_TOOL_NAME: "add",
        "gen_ai.tool.args": '{"n": 1}',
        "gen_ai.output": output,
        a.GEN_AI_OUTPUT_TYPE: kind,
    }
    return span(1, name="execute_tool add", attributes={**given, **more})


@pytest.mark.parametrize("arguments", ['{"n": 1}', {"n": 1}], ids=["text", "object"])
def test_calls_that_a_model_asks_for(arguments: object) -> None:
    draft = read(model(json.dumps([{"tool.name": "add", "tool.args": arguments}, {"tool.name": "end", "tool.args": "{}"}]), "json"))
    assert (draft.kind, draft.name) == ("model_call", "m")
    assert draft.output["messages"] == [
        {
            "role": "assistant",
            "parts": [
                {"type": "tool_call", "id": None, "name": "add", "arguments": {"n": 1}},
                {"type": "tool_call", "id": None, "name": "end", "arguments": {}},
            ],
        }
    ]


@pytest.mark.parametrize("said", ["two", '{"sum": 2}', "[1, 2]", "null", "[]"])
def test_what_a_model_says_is_its_text_even_if_it_is_json(said: str) -> None:
    draft = read(model(said, "json"))
    assert draft.output["messages"] == [{"role": "assistant", "parts": [{"type": "text", "content": said}]}]


def test_only_the_first_call_has_its_input() -> None:
    asked = json.dumps([{"role": "system", "content": "be kind"}, {"role": "user", "content": "q"}])
    first, second = read(model("a", **{a.GEN_AI_INPUT_MESSAGES: asked})), read(model("a"))
    assert [message["role"] for message in first.input["messages"]] == ["system", "user"]
    assert (first.grade, second.input, second.grade) == ("semantic", None, "structure")


@pytest.mark.parametrize(
    ("output", "kind", "value"),
    [("null", "json", None), ("true", "json", True), ("null", "text", "null"), ('{"a": 1}', "json", {"a": 1}), ("two", "text", "two")],
)
def test_results_of_tools(output: str, kind: str, value: object) -> None:
    draft = read(tool(output, kind))
    assert (draft.input, draft.output, draft.outcome) == ({"arguments": {"n": 1}}, {"result": value}, "ok")


def test_a_tool_that_failed() -> None:
    attributes = dict(tool("Error calling tool: no", "text").attributes)
    draft = read(span(1, attributes=attributes, status=STATUS_ERROR, status_message="Error calling tool: no"))
    assert (draft.outcome, draft.error) == ("error", {"type": None, "message": "Error calling tool: no"})


def test_the_agent_is_the_run_and_spans_of_others_are_not_claimed() -> None:
    agent = read(span(1, attributes={a.GEN_AI_OPERATION_NAME: "invoke_agent", a.GEN_AI_AGENT_NAME: "helper", "any_agent.version": "1"}))
    assert agent.run is not None
    assert (agent.kind, agent.name, agent.run.agent_name) == ("agent", "helper", "helper")
    assert not DIALECT.claims(span(1, name="call_llm", attributes={a.GEN_AI_REQUEST_MODEL: "m"}))
    assert not DIALECT.claims(span(1, attributes={a.GEN_AI_OPERATION_NAME: "chat"}))
