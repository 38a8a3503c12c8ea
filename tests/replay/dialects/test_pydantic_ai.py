import json
from typing import Any

import pytest

from fixtures.runs.spans import event, span
from spanreplay.replay.dialects.pydantic_ai import DIALECT
from spanreplay.replay.reading.claimants import claimants
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, Scope, SpanRecord, Value

SCOPE = Scope(name="pydantic-ai", version="2.68.0")
USER = {"role": "user", "parts": [{"type": "text", "content": "q"}]}
SAYS = {"role": "assistant", "parts": [{"type": "text", "content": "a"}], "finish_reason": "stop"}
OFFERS = json.dumps(
    {"function_tools": [{"name": "add", "description": "adds", "parameters_json_schema": {"type": "object"}}], "output_tools": []}
)


def one(name: str, attributes: dict[str, Value], **more: Any) -> SpanRecord:
    more.setdefault("scope", SCOPE)
    return span(1, name=name, attributes=attributes, **more)


def read(record: SpanRecord) -> StepDraft:
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, ())
    assert draft is not None
    return draft


def chat(**attributes: Value) -> SpanRecord:
    given: dict[str, Value] = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_REQUEST_MODEL: "m", "model_request_parameters": OFFERS}
    return one("chat m", {**given, **attributes})


def tool(*, name: str = "add", **more: Any) -> SpanRecord:
    given: dict[str, Value] = {a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: name, a.GEN_AI_TOOL_CALL_ID: "c1"}
    return one(f"execute_tool {name}", {**given, **more.pop("attributes", {})}, **more)


# ---- model requests ----------------------------------------------------------------------------------------------


def test_messages_as_events_in_an_attribute_and_as_attributes() -> None:
    events = [
        {"content": "be kind", "role": "system", "gen_ai.message.index": 0, "event.name": "gen_ai.system.message"},
        {"content": "q", "role": "user", "gen_ai.message.index": 0, "event.name": "gen_ai.user.message"},
        {"index": 0, "message": {"role": "assistant", "content": "a"}, "event.name": "gen_ai.choice"},
    ]
    old = read(chat(events=json.dumps(events)))
    assert [message["role"] for message in old.input["messages"]] == ["system", "user"]
    assert old.output["messages"] == [{"role": "assistant", "parts": [{"type": "text", "content": "a"}]}]
    new = read(chat(**{a.GEN_AI_INPUT_MESSAGES: json.dumps([USER]), a.GEN_AI_OUTPUT_MESSAGES: json.dumps([SAYS])}))
    assert (new.input["messages"], new.output) == ([USER], {"messages": [SAYS], "finish": "stop"})
    for draft in (old, new):
        assert (draft.kind, draft.name, draft.grade) == ("model_call", "m", "semantic")
        assert draft.input["tools"] == [{"type": "function", "name": "add", "description": "adds", "parameters": {"type": "object"}}]
        assert [offered["name"] for offered in draft.versions["tools"]] == ["add"]


def test_cut_events_are_told() -> None:
    draft = read(chat(events='[{"content": "q", "event.na'))
    assert (draft.grade, draft.reasons[0].code) == ("incomplete", "input-absent")
    assert any(reason.code == "cut" for reason in draft.reasons)


def test_thinking_text_of_arguments_and_results_are_parts_of_the_conventions() -> None:
    said = [
        {
            "role": "assistant",
            "parts": [{"type": "thinking", "content": "hm"}, {"type": "tool_call", "id": "c", "name": "f", "arguments": '{"n":1}'}],
        },
        {"role": "user", "parts": [{"type": "tool_call_response", "id": "c", "name": "f", "result": {"n": 2}}]},
    ]
    draft = read(chat(**{a.GEN_AI_INPUT_MESSAGES: json.dumps(said)}))
    assert draft.input["messages"][0]["parts"] == [
        {"type": "reasoning", "content": "hm"},
        {"type": "tool_call", "id": "c", "name": "f", "arguments": {"n": 1}},
    ]
    assert draft.input["messages"][1]["parts"] == [{"type": "tool_call_response", "id": "c", "name": "f", "response": {"n": 2}}]


def test_messages_without_what_they_say_are_not_captured() -> None:
    bare = [{"role": "user", "parts": [{"type": "text"}]}, {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "f"}]}]
    draft = read(
        chat(
            **{a.GEN_AI_INPUT_MESSAGES: json.dumps(bare), a.GEN_AI_OUTPUT_MESSAGES: '[{"role": "assistant", "parts": [{"type": "text"}]}]'}
        )
    )
    assert (draft.input, draft.output, draft.grade) == (None, None, "structure")


# ---- tools -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names", [("tool_arguments", "tool_response"), (a.GEN_AI_TOOL_CALL_ARGUMENTS, a.GEN_AI_TOOL_CALL_RESULT)], ids=["old", "new"]
)
def test_a_tool_under_either_names(names: tuple[str, str]) -> None:
    draft = read(one("running tool", {a.GEN_AI_TOOL_NAME: "add", a.GEN_AI_TOOL_CALL_ID: "c1", names[0]: '{"n":1}', names[1]: "two"}))
    assert (draft.kind, draft.name, draft.call_id, draft.input, draft.output) == (
        "tool_call",
        "add",
        "c1",
        {"arguments": {"n": 1}},
        {"result": "two"},
    )


@pytest.mark.parametrize(
    "record",
    [
        tool(name="final_result"),
        tool(name="report", attributes={"logfire.msg": "running output function: report"}),
        one("running output function", {a.GEN_AI_TOOL_NAME: "report"}),
    ],
    ids=["by tool", "by message", "by span"],
)
def test_an_output_function_is_no_tool(record: SpanRecord) -> None:
    assert DIALECT.claims(record)
    assert DIALECT.read(record, ()) is None


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (None, {"pydantic_ai.tool.deferral.name": "ApprovalRequired", "pydantic_ai.tool.deferral.metadata": '{"why":"x"}'}),
        ("pydantic_ai.exceptions.ApprovalRequired", {}),
    ],
    ids=["version 5", "before"],
)
def test_a_call_that_waits_for_approval_is_deferred(raised: str | None, told: dict[str, Value]) -> None:
    events = () if raised is None else (event("exception", {"exception.type": raised}),)
    draft = read(tool(attributes={a.GEN_AI_TOOL_CALL_ARGUMENTS: "{}", **told}, events=events, status=0 if raised is None else STATUS_ERROR))
    assert (draft.outcome, draft.error, draft.decision["outcome"], draft.grade) == ("deferred", None, "require_approval", "semantic")
    assert draft.decision.get("metadata") == ({"why": "x"} if told else None)


def test_a_call_that_the_model_has_to_make_again_is_a_failure_that_the_tool_reported() -> None:
    raised = event("exception", {"exception.type": "pydantic_ai.exceptions.ToolRetryError", "exception.message": ""})
    draft = read(
        tool(
            attributes={a.GEN_AI_TOOL_CALL_ARGUMENTS: "{}", a.GEN_AI_TOOL_CALL_RESULT: "no such city"},
            events=(raised,),
            status=STATUS_ERROR,
            status_message="ToolRetryError: ",
        )
    )
    assert draft.outcome == "tool_error"
    assert draft.error == {"type": "pydantic_ai.exceptions.ToolRetryError", "message": "no such city"}
    assert draft.output == {"result": "no such city"}


def test_a_call_with_wrong_arguments_never_ran() -> None:
    draft = read(
        tool(attributes={a.GEN_AI_TOOL_CALL_ARGUMENTS: '{"x":1}', "pydantic_ai.tool.failure_stage": "validation"}, status=STATUS_ERROR)
    )
    assert draft.outcome == "malformed"


# ---- agents ------------------------------------------------------------------------------------------------------


def test_an_agent_of_either_age_is_the_run() -> None:
    events = [
        {"content": "q", "role": "user", "event.name": "gen_ai.user.message"},
        {"role": "assistant", "content": "a", "event.name": "gen_ai.assistant.message"},
    ]
    old = read(
        one("agent run", {"agent_name": "helper", "model_name": "m", "all_messages_events": json.dumps(events), "final_result": "a"})
    )
    new = read(
        one(
            "invoke_agent helper",
            {
                a.GEN_AI_OPERATION_NAME: "invoke_agent",
                a.GEN_AI_AGENT_NAME: "helper",
                "model_name": "m",
                "gen_ai.agent.call.id": "call",
                a.GEN_AI_CONVERSATION_ID: "talk",
                "pydantic_ai.all_messages": json.dumps([USER, SAYS]),
                "final_result": "a",
                "gen_ai.aggregated_usage.input_tokens": 7,
            },
        )
    )
    for draft in (old, new):
        assert (draft.kind, draft.name) == ("agent", "helper")
        assert draft.run is not None
        assert draft.run.input["messages"] == [USER]
        assert draft.run.output["messages"] == [{"role": "assistant", "parts": [{"type": "text", "content": "a"}]}]
        assert draft.versions["model"] == {"request": "m"}
    assert new.run is not None
    assert (new.run.run_id, new.run.session_id, new.usage) == ("call", "talk", {"input_tokens": 7})


def test_an_agent_that_goes_on_with_a_conversation_is_asked_all_of_it_and_answers_the_last() -> None:
    again = {"role": "user", "parts": [{"type": "text", "content": "and now?"}]}
    last = {"role": "assistant", "parts": [{"type": "text", "content": "now"}]}
    draft = read(
        one(
            "invoke_agent helper",
            {
                a.GEN_AI_OPERATION_NAME: "invoke_agent",
                "pydantic_ai.all_messages": json.dumps([USER, SAYS, again, last]),
                "pydantic_ai.new_message_index": 2,
                a.GEN_AI_SYSTEM_INSTRUCTIONS: '[{"type":"text","content":"be kind"}]',
            },
        )
    )
    assert draft.input["messages"] == [USER, SAYS, again]
    assert draft.input["system"] == [{"type": "text", "content": "be kind"}]
    assert draft.output["messages"] == [last]


# ---- whose spans -------------------------------------------------------------------------------------------------


def test_spans_are_known_by_scope_or_by_their_own_names() -> None:
    none = Scope()
    assert DIALECT.claims(one("chat m", {a.GEN_AI_OPERATION_NAME: "chat", "model_request_parameters": "{}"}, scope=none))
    assert DIALECT.claims(one("x run", {"agent_name": "x", "all_messages_events": "[]"}, scope=none))
    assert DIALECT.claims(one("running tool", {a.GEN_AI_TOOL_NAME: "add", "tool_arguments": "{}"}, scope=none))
    told: dict[str, Value] = {a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: "add", "logfire.msg": "running tool: add"}
    assert DIALECT.claims(one("execute_tool add", told, scope=none))
    assert not DIALECT.claims(one("execute_tool add", {**told, "logfire.msg": "adding"}, scope=none))
    assert not DIALECT.claims(one("chat m", {a.GEN_AI_OPERATION_NAME: "chat"}, scope=none))
    assert not DIALECT.claims(one("work", {"agent_name": "x"}, scope=none))
    assert claimants(one("running tools", {"tools": ["add"], "logfire.msg": "running 1 tool"})) == ()


def test_other_operations_are_left_to_the_conventions() -> None:
    assert [dialect.NAME for dialect in claimants(one("embeddings m", {a.GEN_AI_OPERATION_NAME: "embeddings"}))] == ["gen_ai"]


def test_tools_between_the_wrapper_spans_are_counted_once() -> None:
    spans = [
        span(1, name="agent run", scope=SCOPE, attributes={"agent_name": "helper", "model_name": "m"}, end=100),
        span(2, 1, name="running tools", scope=SCOPE, attributes={"tools": ["add"]}, start=10),
        span(
            3,
            2,
            name="running tool",
            scope=SCOPE,
            attributes={a.GEN_AI_TOOL_NAME: "add", "tool_arguments": "{}", "tool_response": "1"},
            start=11,
        ),
    ]
    (run,) = build_runs(spans)
    assert [(step.kind, step.name, step.parent_seq) for step in run.steps] == [("tool_call", "add", None)]
    assert run.unclassified_spans == 1


def test_a_stream_that_failed_at_once_ended_as_its_agent_did() -> None:
    silent: dict[str, Value] = {
        a.GEN_AI_OPERATION_NAME: "chat",
        a.GEN_AI_INPUT_MESSAGES: json.dumps([USER]),
        a.GEN_AI_OUTPUT_MESSAGES: json.dumps([{"role": "assistant", "parts": []}]),
    }
    raised = event("exception", {"exception.type": "Refused", "exception.message": "no"})
    failed: dict[str, Any] = {"status": STATUS_ERROR, "events": (raised,), "end": 100}
    agent: dict[str, Value] = {a.GEN_AI_OPERATION_NAME: "invoke_agent", a.GEN_AI_AGENT_NAME: "helper"}

    def ended(attributes: dict[str, Value], **around: Any) -> Any:
        (run,) = build_runs([span(1, attributes=agent, scope=SCOPE, **around), span(2, 1, attributes=attributes, scope=SCOPE)])
        return run.steps[0]

    step = ended(silent, **failed)
    assert (step.outcome, step.error, step.grade) == ("error", {"type": "Refused", "message": "no"}, "semantic")
    assert [reason.code for reason in step.reasons] == ["error-of-agent"]
    assert (ended(silent, end=100).outcome, ended(silent, end=100).grade) == ("unknown", "structure")
    answered = ended({**silent, "gen_ai.usage.output_tokens": 1}, **failed)
    assert (answered.outcome, answered.error) == ("ok", None), "it is the agent's own failure"


HISTORY = [
    USER,
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "add", "arguments": {"x": 1}}]},
    {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "name": "add", "result": 2}]},
]
EVENTS = [
    {"content": "q", "role": "user", "gen_ai.message.index": 0, "event.name": "gen_ai.user.message"},
    {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": {"x": 1}}}]}
    | {"gen_ai.message.index": 1, "event.name": "gen_ai.assistant.message"},
    {"content": "2", "role": "tool", "id": "c1", "name": "add", "gen_ai.message.index": 2, "event.name": "gen_ai.tool.message"},
]


def failing(history: dict[str, Value], **more: Any) -> list[SpanRecord]:
    """An agent whose last request failed, and the request."""
    root = span(1, name="agent run", end=90, status=STATUS_ERROR, scope=SCOPE, attributes={"agent_name": "w", **history})
    given: dict[str, Value] = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_REQUEST_MODEL: "m", "model_request_parameters": OFFERS}
    return [root, span(2, 1, name="chat m", start=20, end=80, status=STATUS_ERROR, scope=SCOPE, attributes={**given, **more})]


@pytest.mark.parametrize("history", [{"pydantic_ai.all_messages": json.dumps(HISTORY)}, {"all_messages_events": json.dumps(EVENTS)}])
def test_a_request_that_failed_was_asked_what_the_history_of_its_agent_ends_with(history: dict[str, Value]) -> None:
    (run,) = build_runs(failing({**history, a.GEN_AI_SYSTEM_INSTRUCTIONS: json.dumps([{"type": "text", "content": "be kind"}])}))
    (step,) = run.steps
    assert [part["type"] for message in step.input["messages"] for part in message["parts"]] == ["text", "tool_call", "tool_call_response"]
    assert step.input["system"] == [{"type": "text", "content": "be kind"}]
    assert [tool["name"] for tool in step.input["tools"]] == ["add"]
    assert (step.outcome, step.grade, [reason.code for reason in step.reasons]) == ("error", "semantic", ["as-told"])


def test_a_request_keeps_its_own_messages_and_a_history_that_ends_with_an_answer_tells_nothing() -> None:
    (kept,) = build_runs(failing({"pydantic_ai.all_messages": json.dumps(HISTORY)}, **{a.GEN_AI_INPUT_MESSAGES: json.dumps([USER])}))
    assert kept.steps[0].input["messages"] == [USER]
    assert kept.steps[0].reasons == ()
    for history in (HISTORY[:2], [{"role": "user", "parts": [{"type": "text"}]}], []):
        (run,) = build_runs(failing({"pydantic_ai.all_messages": json.dumps(history)}))
        assert run.steps[0].input is None
        assert [reason.code for reason in run.steps[0].reasons] == ["input-absent"]
