import json
from typing import Any

import pytest

from fixtures.runs.spans import log, span
from spanreplay.replay.dialects.gemini_cli import DIALECT
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, Resource, Scope, SpanRecord, Value
from support.handmade import given

CLI = Scope(name="gemini-cli")
CONTENTS = [{"role": "user", "parts": [{"text": "q"}]}]
SAID = [{"role": "user", "parts": [{"type": "text", "content": "q"}]}]


def operation(name: str, told: dict[str, Value], number: int = 1, parent: int | None = None, **more: Any) -> SpanRecord:
    own: dict[str, Value] = {
        a.GEN_AI_OPERATION_NAME: name,
        a.GEN_AI_AGENT_NAME: "gemini-cli",
        a.GEN_AI_CONVERSATION_ID: "s1",
        "gen_ai.prompt.name": "an id",
        **told,
    }
    return span(number, parent, name=name, scope=CLI, attributes=own, resource=Resource(attributes={"service.version": "0.61.0"}), **more)


def request(given: Value = json.dumps(CONTENTS), made: Value = None, **told: Value) -> SpanRecord:
    attributes: dict[str, Value] = {a.GEN_AI_REQUEST_MODEL: "m", a.GEN_AI_INPUT_MESSAGES: given, a.GEN_AI_OUTPUT_MESSAGES: made, **told}
    return operation("llm_call", {name: value for name, value in attributes.items() if value is not None})


def read(record: SpanRecord, *logs: LogRecord) -> StepDraft:
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, logs)
    assert draft is not None
    return draft


def cut(text: str, at: int) -> str:
    return f"{text[:at]}...[TRUNCATED: original length {len(text)}]"


def test_a_request_is_read_as_what_the_api_was_asked() -> None:
    tools = [{"functionDeclarations": [{"name": "f", "description": "d", "parametersJsonSchema": {"type": "object"}}]}]
    record = request(
        made=json.dumps({"role": "model", "parts": [{"text": "a"}]}),
        **given({a.GEN_AI_SYSTEM_INSTRUCTIONS: '"be kind"', a.GEN_AI_TOOL_DEFINITIONS: json.dumps(tools), "gen_ai.request.temperature": 1}),
    )
    draft = read(record)
    assert (draft.input["messages"], draft.input["system"]) == (SAID, [{"type": "text", "content": "be kind"}])
    assert draft.input["tools"] == [{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}]
    assert draft.input["params"] == {"model": "m", "temperature": 1}
    assert draft.output["messages"] == [{"role": "assistant", "parts": [{"type": "text", "content": "a"}]}]
    assert (draft.name, draft.agent, draft.session_id, draft.grade) == ("m", "gemini-cli", "s1", "semantic")
    assert "prompt" not in draft.versions, "the id of what the user said is no name of a prompt"


def test_the_pieces_of_a_stream_are_put_together() -> None:
    pieces = [
        {"role": "model", "parts": [{"text": "hm", "thought": True}]},
        {"role": "model", "parts": [{"text": "Par"}]},
        {"role": "model", "parts": [{"text": "is"}, {"functionCall": {"id": "c", "name": "f", "args": {"n": 1}}}]},
    ]
    (message,) = read(request(made=json.dumps(pieces))).output["messages"]
    assert message["parts"] == [
        {"type": "reasoning", "content": "hm"},
        {"type": "text", "content": "Paris"},
        {"type": "tool_call", "id": "c", "name": "f", "arguments": {"n": 1}},
    ]


def test_of_a_request_that_was_cut_the_log_record_has_the_whole() -> None:
    long = json.dumps([{"role": "user", "parts": [{"text": "q" * 50}]}])
    whole = log(1, a.GEN_AI_INFERENCE_DETAILS_EVENT, {a.GEN_AI_INPUT_MESSAGES: json.dumps(SAID)})
    found = read(request(cut(long, 30), json.dumps({"role": "model", "parts": [{"text": "a"}]})), whole)
    assert (found.input["messages"], found.grade) == (SAID, "semantic")
    alone = read(request(cut(long, 30), json.dumps({"role": "model", "parts": [{"text": "a"}]})))
    assert (alone.input, alone.grade) == (None, "incomplete")
    assert any(str(len(long)) in reason.detail for reason in alone.reasons)


def test_without_traces_the_request_is_in_a_log_record() -> None:
    draft = read(request(given=None), log(1, "", {"event.name": "gemini_cli.api_request", "request_text": json.dumps(CONTENTS)}))
    assert (draft.input["messages"], draft.output, draft.grade) == (SAID, None, "structure")


def test_calls_have_the_ids_that_the_api_gave_them() -> None:
    call = {"functionCall": {"id": "f__c", "name": "f", "args": {}}}
    answer = {"functionResponse": {"id": "f__c", "name": "f", "response": {"output": "one"}}}
    contents = [*CONTENTS, {"role": "model", "parts": [call]}, {"role": "user", "parts": [answer]}]
    draft = read(request(json.dumps(contents), json.dumps({"role": "model", "parts": [call]})))
    ids = [part["id"] for message in (*draft.input["messages"][1:], *draft.output["messages"]) for part in message["parts"]]
    assert ids == ["c", "c", "c"]
    assert read(called(None, call="f__c")).call_id == "c"


# ---- tools -----------------------------------------------------------------------------------------------------------


def called(state: dict[str, Any] | str | None, number: int = 2, call: str = "c", **told: Value) -> SpanRecord:
    made = json.dumps(state) if isinstance(state, dict) else state
    own: dict[str, Value] = {a.GEN_AI_TOOL_NAME: "f", "gen_ai.tool.call_id": call, **told}
    if made is not None:
        own |= {a.GEN_AI_INPUT_MESSAGES: json.dumps({"callId": call, "name": "f", "args": {"n": 1}}), a.GEN_AI_OUTPUT_MESSAGES: made}
    return operation("tool_call", own, number, 1)


def ended(status: str, response: Any, **more: Any) -> dict[str, Any]:
    return {
        "status": status,
        "request": {"callId": "c"},
        "response": {"responseParts": [{"functionResponse": {"id": "c", "name": "f", "response": response}}], **more},
    }


def test_a_tool_call_is_read_from_its_request_and_its_state() -> None:
    draft = read(called(ended("success", {"output": "one"})))
    assert (draft.name, draft.call_id, draft.input, draft.output) == ("f", "c", {"arguments": {"n": 1}}, {"result": {"output": "one"}})
    assert (draft.outcome, draft.grade) == ("ok", "semantic")


@pytest.mark.parametrize(
    ("state", "outcome", "error"),
    [
        (ended("error", {"error": "no"}, errorType="file_not_found"), "error", {"type": "file_not_found", "message": "no"}),
        (ended("error", {"error": "no"}, errorType="mcp_tool_error"), "tool_error", {"type": "mcp_tool_error", "message": "no"}),
        (ended("cancelled", {"error": "stopped"}), "cancelled", None),
    ],
)
def test_how_a_tool_call_ended_is_in_its_state(state: dict[str, Any], outcome: str, error: Any) -> None:
    draft = read(called(state))
    assert (draft.outcome, draft.error) == (outcome, error)


def test_of_a_state_that_was_cut_the_members_before_the_cut_are_read() -> None:
    state = {**ended("success", {"output": "one"}), "tool": {"description": "d" * 40}}
    text = json.dumps(state)
    draft = read(called(cut(text, len(text) - 20)))
    assert (draft.output, draft.grade) == ({"result": {"output": "one"}}, "incomplete")
    assert read(called(cut(text, 40))).output is None


def logged(**told: Value) -> LogRecord:
    return log(1, "", {"event.name": "gemini_cli.tool_call", "function_name": "f", "function_args": '{"n":1}', **told})


def test_what_is_logged_in_the_batch_is_about_the_only_call_of_the_tool() -> None:
    batch = operation("schedule_tool_calls", {})
    failed = logged(success=False, error="no", error_type="mcp_tool_error")
    (run,) = build_runs([batch, called(None), failed])
    (step,) = run.steps
    assert (step.input, step.outcome, step.error) == ({"arguments": {"n": 1}}, "tool_error", {"type": "mcp_tool_error", "message": "no"})
    (both,) = build_runs([batch, called(None), called(None, 3, "d"), failed])
    assert [step.input for step in both.steps] == [None, None], "which of the two it is about is not told"


def test_a_subagent_is_an_agent_and_a_batch_is_no_step() -> None:
    draft = read(operation("agent_call", {a.GEN_AI_INPUT_MESSAGES: '{"task":"look"}', a.GEN_AI_OUTPUT_MESSAGES: '{"llmContent":"done"}'}))
    assert (draft.kind, draft.input, draft.output) == ("agent", {"arguments": {"task": "look"}}, {"result": {"llmContent": "done"}})
    assert DIALECT.read(operation("schedule_tool_calls", {a.GEN_AI_INPUT_MESSAGES: "[]"}), ()) is None
    assert not DIALECT.claims(span(1, name="tool_call", attributes={a.GEN_AI_OPERATION_NAME: "tool_call"}))


@pytest.mark.parametrize(
    "text", ["", "[]", "7", "[7]", '[{"parts":[7]}]', '{"response":{"responseParts":7}}', "...[TRUNCATED: original length 9]"]
)
def test_content_of_no_shape_costs_nothing(text: str) -> None:
    for name in ("llm_call", "tool_call", "agent_call"):
        assert DIALECT.read(operation(name, {a.GEN_AI_INPUT_MESSAGES: text, a.GEN_AI_OUTPUT_MESSAGES: text}), ()) is not None
