import json
from typing import Any

import pytest

from fixtures.runs.spans import chat, event, log, span
from spanreplay.replay.dialects.adk import DIALECT
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.events import with_content
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, Scope, SpanRecord, Value

SCOPE = Scope(name="gcp.vertex.agent", version="1.20.0")
PREFIX = "gcp.vertex.agent."
REQUEST = {
    "model": "gemini-2.5-flash",
    "config": {"system_instruction": "be kind", "tools": [{"function_declarations": [{"name": "add"}]}], "temperature": 0.5},
    "contents": [{"parts": [{"text": "q"}], "role": "user"}],
}
RESPONSE = {
    "model_version": "gemini-2.5-flash-001",
    "content": {"parts": [{"function_call": {"id": "c1", "args": {}, "name": "add"}}], "role": "model"},
    "finish_reason": "STOP",
    "usage_metadata": {"prompt_token_count": 3, "candidates_token_count": 2},
}


def one(name: str, attributes: dict[str, Value] | None = None, **more: Any) -> SpanRecord:
    return span(1, name=name, scope=SCOPE, attributes=attributes or {}, **more)


def read(record: SpanRecord) -> StepDraft:
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, ())
    assert draft is not None
    return draft


def call_llm(request: Value, response: Value, **more: Value) -> SpanRecord:
    given = {"gen_ai.system": "gcp.vertex.agent", a.GEN_AI_REQUEST_MODEL: "gemini-2.5-flash", PREFIX + "session_id": "s1"}
    return one("call_llm", {**given, PREFIX + "llm_request": request, PREFIX + "llm_response": response, **more})


def tool(args: Value, response: Value, *, name: str = "add", **more: Any) -> SpanRecord:
    given: dict[str, Value] = {
        a.GEN_AI_OPERATION_NAME: "execute_tool",
        a.GEN_AI_TOOL_NAME: name,
        a.GEN_AI_TOOL_CALL_ID: "c1",
        PREFIX + "llm_request": "{}",
        PREFIX + "llm_response": "{}",
        PREFIX + "tool_call_args": args,
        PREFIX + "tool_response": response,
    }
    return one(f"execute_tool {name}", {**given, **more.pop("attributes", {})}, **more)


def test_a_model_call_of_the_first_schema() -> None:
    draft = read(call_llm(json.dumps(REQUEST), json.dumps(RESPONSE)))
    assert (draft.kind, draft.name, draft.session_id, draft.grade) == ("model_call", "gemini-2.5-flash", "s1", "semantic")
    assert draft.input["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "q"}]}]
    assert draft.input["system"] == [{"type": "text", "content": "be kind"}]
    assert draft.input["tools"] == [{"type": "function", "name": "add"}]
    assert draft.input["params"]["temperature"] == 0.5
    assert draft.output["messages"][0]["parts"] == [{"type": "tool_call", "id": "c1", "name": "add", "arguments": {}}]
    assert draft.usage == {"input_tokens": 3, "output_tokens": 2}
    assert (draft.versions["model"]["response"], draft.versions["tools"][0]["name"]) == ("gemini-2.5-flash-001", "add")


@pytest.mark.parametrize("nothing", ["{}", {}, None], ids=["text", "object", "absent"])
def test_content_that_is_left_out(nothing: Value) -> None:
    for record in (call_llm(nothing, nothing), tool(nothing, nothing)):
        draft = read(record)
        assert (draft.input, draft.output, draft.grade) == (None, None, "structure")


def test_no_arguments_are_arguments_where_the_result_is_there() -> None:
    draft = read(tool("{}", '{"greeting": "hi"}'))
    assert (draft.input, draft.output) == ({"arguments": {}}, {"result": {"greeting": "hi"}})
    empty = read(tool('{"n": 1}', "{}"))
    assert (empty.input, empty.output) == ({"arguments": {"n": 1}}, {"result": {}})


def test_words_for_nothing() -> None:
    draft = read(tool('{"n": 1}', '{"result": "<not specified>"}', attributes={a.GEN_AI_TOOL_CALL_ID: "<not specified>"}))
    assert (draft.call_id, draft.output, draft.outcome) == (None, None, "ok")
    waits = read(tool('{"n": 1}', '{"result": "<not specified>"}', attributes={a.GEN_AI_TOOL_TYPE: "LongRunningFunctionTool"}))
    assert (waits.outcome, waits.grade) == ("deferred", "semantic")


@pytest.mark.parametrize(
    "name", ["execute_tool (merged tools)", "execute_tool (merged)", "compact_events token", "create_cache", "invoke_node n"]
)
def test_what_is_no_step(name: str) -> None:
    named: dict[str, Value] = {a.GEN_AI_OPERATION_NAME: name.partition(" ")[0], PREFIX + "tool_call_args": "N/A"}
    assert DIALECT.read(one(name, named), ()) is None
    assert DIALECT.read(one("execute_tool x", {a.GEN_AI_TOOL_NAME: "(merged tools)", a.GEN_AI_OPERATION_NAME: "execute_tool"}), ()) is None


def test_a_failure_in_what_a_tool_gave_back_and_one_that_it_raised() -> None:
    told: dict[str, Value] = {a.ERROR_TYPE: "TOOL_ERROR"}
    reported = read(tool("{}", '{"error": "no"}', attributes=told, status=STATUS_ERROR, status_message="TOOL_ERROR"))
    assert (reported.outcome, reported.error) == ("tool_error", {"type": "TOOL_ERROR", "message": "no"})
    early = read(tool("{}", '{"error": "no"}'))
    assert (early.outcome, early.error) == ("tool_error", {"type": "tool_error", "message": "no"})
    assert read(tool("{}", '{"error": 0.5}')).outcome == "ok"
    raised = event("exception", {"exception.type": "ValueError", "exception.message": "no"})
    draft = read(tool('{"n": 1}', "{}", attributes={a.ERROR_TYPE: "ValueError"}, status=STATUS_ERROR, events=(raised,)))
    assert (draft.outcome, draft.error) == ("error", {"type": "ValueError", "message": "no"})


def test_an_error_instead_of_an_answer() -> None:
    draft = read(call_llm(json.dumps(REQUEST), '{"error_code": "SAFETY", "error_message": "blocked"}'))
    assert (draft.outcome, draft.error, draft.output) == ("error", {"type": "SAFETY", "message": "blocked"}, None)


def test_a_transfer_is_a_hand_over() -> None:
    draft = read(tool('{"agent_name": "other"}', '{"result": null}', name="transfer_to_agent"))
    assert (draft.kind, draft.name, draft.call_id) == ("handoff", "other", "c1")


@pytest.mark.parametrize("name", ["agent_run [helper]", "invoke_agent helper"])
def test_an_invocation_is_the_run_and_the_agent_in_it_names_it(name: str) -> None:
    spans = [
        span(1, name="invocation", scope=SCOPE, end=100),
        span(2, 1, name=name, scope=SCOPE, start=1, end=90),
        span(3, 2, name="call_llm", scope=SCOPE, start=2, attributes={PREFIX + "llm_request": json.dumps(REQUEST)}),
    ]
    (run,) = build_runs(spans)
    assert (run.agent_name, run.started_ns, run.ended_ns) == ("helper", 0, 100)
    assert [(step.kind, step.name, step.agent) for step in run.steps] == [
        ("agent", "helper", "helper"),
        ("model_call", "gemini-2.5-flash", "helper"),
    ]


def test_a_model_span_inside_call_llm_is_the_same_call() -> None:
    outer = call_llm(json.dumps(REQUEST), json.dumps(RESPONSE))
    inner = chat(2, 1, model="gemini-2.5-flash", content=False, start=1, attributes={a.GEN_AI_RESPONSE_ID: "r", PREFIX + "event_id": "e"})
    (run,) = build_runs([outer, inner])
    assert [(step.kind, step.grade, step.input is None) for step in run.steps] == [("model_call", "semantic", False)]


def test_contents_in_log_records_of_the_second_schema() -> None:
    record = one("generate_content m", {a.GEN_AI_OPERATION_NAME: "generate_content", a.GEN_AI_REQUEST_MODEL: "m"})
    logs = [
        log(1, "gen_ai.system.message", {}, body={"content": "be kind"}),
        log(1, "gen_ai.user.message", {}, body={"content": {"parts": [{"text": "q", "function_call": None}], "role": "user"}}, time=1),
        log(1, "gen_ai.user.message", {}, body={"content": {"parts": [{"text": "a"}], "role": "model"}}, time=2),
        log(
            1,
            "gen_ai.choice",
            {},
            body={"content": {"parts": [{"text": "b"}], "role": "model"}, "index": 0, "finish_reason": "STOP"},
            time=3,
        ),
    ]
    draft = read(with_content(record, logs).span)
    assert [(message["role"], message["parts"][0]["content"]) for message in draft.input["messages"]] == [
        ("system", "be kind"),
        ("user", "q"),
        ("assistant", "a"),
    ]
    assert draft.output["messages"][0]["parts"] == [{"type": "text", "content": "b"}]
    elided = [
        log(1, "gen_ai.user.message", {}, body={"content": "<elided>"}),
        log(1, "gen_ai.choice", {}, body={"content": "<elided>", "index": 0}),
    ]
    bare = read(with_content(record, elided).span)
    assert (bare.input, bare.output) == (None, None)
