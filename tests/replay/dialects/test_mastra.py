import json
from collections.abc import Mapping

import pytest

from fixtures.runs.spans import span
from spanreplay.replay.dialects.mastra import DIALECT
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord, Value

ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Add."}]}]
CALLED = {"text": "", "toolCalls": [{"toolCallId": "c1", "toolName": "add", "args": {"n": 1}}]}


def made(number: int, parent: int | None, kind: str, attributes: Mapping[str, Value], start: int = 10) -> SpanRecord:
    return span(number, parent, name=f"{kind} x", start=start, attributes={"mastra.span.type": kind, **attributes})


def step(number: int, given: object, answer: object, start: int = 10) -> SpanRecord:
    said: dict[str, Value] = {"mastra.model_step.input": json.dumps(given), "mastra.model_step.output": json.dumps(answer)}
    return made(number, None, "model_step", {a.GEN_AI_OPERATION_NAME: "agent_step", **said}, start)


def inference(number: int, parent: int) -> SpanRecord:
    told: dict[str, Value] = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_REQUEST_MODEL: "m", a.GEN_AI_USAGE_INPUT_TOKENS: 3}
    return made(number, parent, "model_inference", {**told, a.GEN_AI_RESPONSE_FINISH_REASONS: '["tool-calls"]'}, 11)


def read(record: SpanRecord) -> StepDraft:
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, ())
    assert draft is not None
    return draft


def test_a_turn_and_the_inference_in_it_are_one_call() -> None:
    (run,) = build_runs([step(1, ASKED, CALLED), inference(2, 1)])
    (call,) = run.steps
    assert (call.name, call.grade, call.usage["input_tokens"]) == ("m", "semantic", 3)
    assert [m["role"] for m in call.input["messages"]] == ["system", "user"]
    assert call.output == {
        "messages": [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "add", "arguments": {"n": 1}}]}],
        "finish": "tool-calls",
    }


@pytest.mark.parametrize("said", ["[tool: add][tool: add]", "I add. [tool: add]"])
def test_placeholders_are_no_messages(said: str) -> None:
    later = [*ASKED, {"role": "assistant", "content": said}, {"role": "tool", "content": "[tool-result: add]"}]
    draft = read(step(1, later, {"text": "2"}))
    assert draft.grade == "structure"
    assert [reason.code for reason in draft.reasons] == ["input-absent"]
    assert draft.output["messages"] == [{"role": "assistant", "parts": [{"type": "text", "content": "2"}]}]


def test_what_a_user_writes_in_brackets_is_no_placeholder() -> None:
    assert read(step(1, [{"role": "user", "content": "[tool: add]"}], {"text": "2"})).reasons == ()


def test_the_loop_is_no_call_but_in_older_versions_the_only_one() -> None:
    assert DIALECT.read(made(1, None, "model_generation", {"mastra.model_generation.input": "[]"}), ()) is None
    said: dict[str, Value] = {
        a.GEN_AI_REQUEST_MODEL: "m",
        a.GEN_AI_INPUT_MESSAGES: json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Add."}]}]),
        a.GEN_AI_OUTPUT_MESSAGES: json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "2"}]}]),
    }
    assert read(made(1, None, "model_generation", said)).grade == "semantic"


@pytest.mark.parametrize("answer", ['{"text": "2"}', "2", '[{"role": "assistant", "content": "2"}]'])
def test_agents(answer: str) -> None:
    draft = read(made(1, None, "agent_run", {a.GEN_AI_AGENT_NAME: "adder", "mastra.agent_run.output": answer}))
    assert (draft.kind, draft.name) == ("agent", "adder")
    assert draft.output["messages"][0]["parts"] == [{"type": "text", "content": "2"}]


def test_tools_workflows_and_lookups() -> None:
    tool = read(made(1, None, "mcp_tool_call", {a.GEN_AI_TOOL_NAME: "add", a.GEN_AI_TOOL_CALL_ARGUMENTS: '{"n": 1}'}))
    assert (tool.kind, tool.name, tool.input, tool.output) == ("tool_call", "add", {"arguments": {"n": 1}}, None)
    flow = read(made(1, None, "workflow_run", {"mastra.workflow_run.input": '{"n": 1}', "mastra.workflow_run.output": "2"}))
    assert (flow.kind, flow.input, flow.output) == ("agent", {"arguments": {"n": 1}}, {"result": "2"})
    found = read(made(1, None, "rag_embedding", {"mastra.rag_embedding.input": '["a"]'}))
    assert (found.kind, found.input) == ("retrieval", {"arguments": ["a"]})


@pytest.mark.parametrize("kind", ["workflow_step", "model_chunk", "processor_run", "generic"])
def test_the_rest_is_no_step(kind: str) -> None:
    assert DIALECT.read(made(1, None, kind, {}), ()) is None


@pytest.mark.parametrize("odd", ["", "{", "7", "[]", "null", '{"toolCalls": 7}', '{"toolCalls": [7, {}]}', '"\\ud800"'])
def test_odd_content_is_read(odd: str) -> None:
    for kind in ("model_step", "agent_run", "workflow_run"):
        read(made(1, None, kind, {f"mastra.{kind}.input": odd, f"mastra.{kind}.output": odd}))
