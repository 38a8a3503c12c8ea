import json
from typing import Any

import pytest

from fixtures.runs.spans import asking, said, span
from spanreplay.replay.dialects.openlit import DIALECT
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import Scope, SpanRecord, Value

GRAPH = Scope(name="openlit.instrumentation.langgraph")


def told(operation: str, attributes: dict[str, Value], **more: Any) -> SpanRecord:
    named = {a.GEN_AI_OPERATION_NAME: operation, "telemetry.sdk.name": "openlit"}
    return span(1, attributes={**named, **attributes}, **more)


def read(record: SpanRecord) -> StepDraft:
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, ())
    assert draft is not None
    return draft


def test_what_a_model_asks_for_is_not_its_own_call() -> None:
    asked = asking(("c1", "add", {"a": 1}), ("c2", "add", {}))
    attributes: dict[str, Value] = {
        a.GEN_AI_REQUEST_MODEL: "m",
        a.GEN_AI_TOOL_NAME: "add, add",
        a.GEN_AI_TOOL_CALL_ID: "c1, c2",
        "gen_ai.tool.args": '{"a":1}, {}',
        a.GEN_AI_INPUT_MESSAGES: said("q"),
        a.GEN_AI_OUTPUT_MESSAGES: asked,
    }
    draft = read(told("chat", attributes))
    assert (draft.kind, draft.name, draft.call_id, draft.grade) == ("model_call", "m", None, "semantic")


def test_instructions_that_are_there_twice_are_there_once() -> None:
    instructions = [{"type": "text", "content": "be brief"}]
    messages = [{"role": "system", "parts": instructions}, {"role": "user", "parts": [{"type": "text", "content": "q"}]}]
    attributes: dict[str, Value] = {
        a.GEN_AI_SYSTEM_INSTRUCTIONS: json.dumps(instructions),
        a.GEN_AI_INPUT_MESSAGES: json.dumps(messages),
        a.GEN_AI_OUTPUT_MESSAGES: said("a", "assistant"),
    }
    draft = read(told("chat", attributes))
    assert (draft.input["system"], [m["role"] for m in draft.input["messages"]]) == ([], ["system", "user"])
    other = read(told("chat", {**attributes, a.GEN_AI_INPUT_MESSAGES: said("q")}))
    assert other.input["system"] == instructions


def test_a_message_that_was_left_out_is_missed() -> None:
    given = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "2"}]}]
    attributes: dict[str, Value] = {a.GEN_AI_INPUT_MESSAGES: json.dumps(given), a.GEN_AI_OUTPUT_MESSAGES: said("a", "assistant")}
    draft = read(told("chat", attributes))
    assert draft.grade == "incomplete"
    assert any(reason.code == "message-absent" and "a call" in reason.detail for reason in draft.reasons)
    nameless = [{"role": "assistant", "parts": []}, {"role": "tool", "parts": [{"type": "text", "content": "2"}]}]
    assert read(told("chat", {**attributes, a.GEN_AI_INPUT_MESSAGES: json.dumps(nameless)})).grade == "incomplete"
    whole = [json.loads(asking(("c1", "add", {})))[0], *given]
    assert read(told("chat", {**attributes, a.GEN_AI_INPUT_MESSAGES: json.dumps(whole)})).grade == "semantic"


@pytest.mark.parametrize(
    ("written", "arguments"),
    [("{'city': 'Paris'}", {"city": "Paris"}), ('{"city": "Paris"}', {"city": "Paris"}), ("Paris", "Paris"), ("{Paris}", "{Paris}")],
)
def test_arguments_are_read_as_python_shows_them(written: str, arguments: Any) -> None:
    shown = "content='sunny' name='weather' tool_call_id='c1' status='error'"
    draft = read(
        told("execute_tool", {a.GEN_AI_TOOL_NAME: "weather", a.GEN_AI_TOOL_CALL_ARGUMENTS: written, a.GEN_AI_TOOL_CALL_RESULT: shown})
    )
    assert (draft.input, draft.output) == ({"arguments": arguments}, {"result": "sunny"})
    assert (draft.call_id, draft.outcome) == ("c1", "tool_error")


def test_the_nodes_of_a_graph_are_no_agents_and_building_it_is_no_step() -> None:
    agent = told("invoke_agent", {a.GEN_AI_AGENT_NAME: "model"}, scope=GRAPH)
    assert (read(agent).frame, read(agent).agent) == (True, None)
    assert not read(told("invoke_agent", {a.GEN_AI_AGENT_NAME: "weather"})).frame
    (run,) = build_runs([told("create_agent", {a.GEN_AI_AGENT_NAME: "default"}, scope=GRAPH)])
    assert (run.steps, run.unclassified_spans) == ((), 1)


def test_the_rest_is_left_to_the_conventions() -> None:
    assert not DIALECT.claims(told("embeddings", {}))
    assert not DIALECT.claims(span(1, attributes={a.GEN_AI_OPERATION_NAME: "chat"}))
    assert not DIALECT.claims(span(1, attributes={a.GEN_AI_OPERATION_NAME: ["chat"], "telemetry.sdk.name": "openlit"}))
