import json
from typing import Any

import pytest

from fixtures.runs.spans import event, span
from spanreplay.replay.dialects.strands import DIALECT
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.events import with_content
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, STATUS_OK, EventRecord, Scope, SpanRecord, Value

SCOPE = Scope(name="strands.telemetry.tracer")


def one(name: str, operation: str, attributes: dict[str, Value] | None = None, *events: EventRecord, **more: Any) -> SpanRecord:
    given: dict[str, Value] = {a.GEN_AI_OPERATION_NAME: operation, "gen_ai.system": "strands-agents", **(attributes or {})}
    more.setdefault("status", STATUS_OK)
    return span(1, name=name, scope=SCOPE, attributes=given, events=tuple(events), **more)


def read(record: SpanRecord) -> StepDraft:
    full, _ = with_content(record, ())
    assert DIALECT.claims(full)
    draft = DIALECT.read(full, ())
    assert draft is not None
    return draft


def tool(attributes: dict[str, Value] | None = None, *events: EventRecord, **more: Any) -> SpanRecord:
    named: dict[str, Value] = {a.GEN_AI_TOOL_NAME: "add", a.GEN_AI_TOOL_CALL_ID: "t1", **(attributes or {})}
    return one("execute_tool add", "execute_tool", named, *events, **more)


ASKED = event("gen_ai.tool.message", {"role": "tool", "content": '{"a": 1}', "id": "t1"})
ANSWERED = event("gen_ai.choice", {"message": '[{"text": "2"}]', "id": "t1"}, time=5)


def test_messages_are_blocks_in_span_events() -> None:
    draft = read(
        one(
            "chat",
            "chat",
            {a.GEN_AI_REQUEST_MODEL: "m", "gen_ai.usage.prompt_tokens": 3, "gen_ai.usage.input_tokens": 3},
            event("gen_ai.system.message", {"content": '[{"text": "be kind"}]'}),
            event("gen_ai.user.message", {"content": '[{"text": "hi"}]'}, time=1),
            event("gen_ai.tool.message", {"content": '[{"toolResult": {"toolUseId": "t1", "content": [{"text": "2"}]}}]'}, time=2),
            event(
                "gen_ai.choice", {"finish_reason": "tool_use", "message": '[{"toolUse": {"toolUseId": "t2", "name": "add", "input": {}}}]'}
            ),
        )
    )
    assert (draft.kind, draft.name, draft.grade, draft.usage) == ("model_call", "m", "semantic", {"input_tokens": 3})
    assert [message["role"] for message in draft.input["messages"]] == ["system", "user", "tool"]
    assert draft.input["messages"][2]["parts"] == [{"type": "tool_call_response", "id": "t1", "response": [{"text": "2"}]}]
    assert draft.output["messages"][0]["parts"] == [{"type": "tool_call", "id": "t2", "name": "add", "arguments": {}}]


def test_a_tool_in_each_mode() -> None:
    by_events = tool({"gen_ai.tool.status": "success"}, ASKED, ANSWERED)
    by_attributes = tool(
        {"gen_ai.tool.status": "success", a.GEN_AI_TOOL_CALL_ARGUMENTS: '{"a": 1}', a.GEN_AI_TOOL_CALL_RESULT: '[{"text": "2"}]'}
    )
    asked = json.dumps([{"role": "tool", "parts": [{"type": "tool_call", "name": "add", "id": "t1", "arguments": {"a": 1}}]}])
    answered = json.dumps([{"role": "tool", "parts": [{"type": "tool_call_response", "id": "t1", "response": [{"text": "2"}]}]}])
    by_details = tool(
        {"gen_ai.tool.status": "success"},
        event(a.GEN_AI_INFERENCE_DETAILS_EVENT, {a.GEN_AI_INPUT_MESSAGES: asked}),
        event(a.GEN_AI_INFERENCE_DETAILS_EVENT, {a.GEN_AI_OUTPUT_MESSAGES: answered}),
    )
    for record in (by_events, by_attributes, by_details):
        draft = read(record)
        assert (draft.kind, draft.name, draft.call_id, draft.outcome, draft.grade) == ("tool_call", "add", "t1", "ok", "semantic")
        assert (draft.input, draft.output) == ({"arguments": {"a": 1}}, {"result": [{"text": "2"}]})


def test_a_failure_that_a_tool_reports_and_one_that_it_raises() -> None:
    status: dict[str, Value] = {"gen_ai.tool.status": "error"}
    reported = read(tool(status, ASKED, ANSWERED, status=STATUS_ERROR, status_message="no"))
    assert (reported.outcome, reported.error) == ("tool_error", {"type": "tool_error", "message": "no"})
    raised = event("exception", {"exception.type": "RuntimeError", "exception.message": "no"})
    draft = read(tool(status, ASKED, ANSWERED, raised, status=STATUS_ERROR, status_message="no"))
    assert (draft.outcome, draft.error) == ("error", {"type": "RuntimeError", "message": "no"})
    assert read(tool({"tool.status": "error"}, ASKED, ANSWERED)).outcome == "tool_error", "as up to 1.25, with a span that went well"


def test_a_call_that_was_interrupted_or_cancelled() -> None:
    assert read(tool(None, ASKED)).outcome == "interrupted"
    assert read(tool({"strands.cancellation.type": "CancelledError"}, ASKED, status=0)).outcome == "cancelled"
    assert read(tool(None, ASKED, end=None)).outcome == "unknown"


def test_content_that_is_withheld_is_none() -> None:
    draft = read(
        tool(
            {"gen_ai.tool.status": "success"},
            event("gen_ai.tool.message", {"content": "[REDACTED]", "id": "t1"}),
            event("gen_ai.choice", {"message": "[REDACTED]"}),
        )
    )
    assert (draft.input, draft.output, draft.grade) == (None, None, "structure")


def test_cut_arguments_are_told() -> None:
    draft = read(tool({"gen_ai.tool.status": "success"}, event("gen_ai.tool.message", {"content": '{"a": "xy'}), ANSWERED))
    assert (draft.grade, [reason.code for reason in draft.reasons]) == ("incomplete", ["cut"])


@pytest.mark.parametrize("operation", ["execute_event_loop_cycle", "memory.inject", "something.else"])
def test_what_only_frames_others_is_no_step(operation: str) -> None:
    assert DIALECT.read(one(operation, operation), ()) is None


def test_a_swarm_is_the_run_of_its_agents_and_a_hand_over_is_no_tool() -> None:
    told: dict[str, Value] = {a.GEN_AI_TOOL_NAME: "handoff_to_agent", a.GEN_AI_TOOL_CALL_ARGUMENTS: '{"agent_name": "b"}'}
    spans = [
        one("invoke_swarm", "invoke_swarm", None, event("gen_ai.user.message", {"content": "do"}), end=100),
        span(
            2,
            1,
            name="invoke_agent a",
            start=1,
            scope=SCOPE,
            attributes={a.GEN_AI_OPERATION_NAME: "invoke_agent", a.GEN_AI_AGENT_NAME: "a"},
        ),
        span(3, 2, name="execute_tool", start=2, scope=SCOPE, attributes={a.GEN_AI_OPERATION_NAME: "execute_tool", **told}),
    ]
    (run,) = build_runs(spans)
    assert [(step.kind, step.name) for step in run.steps] == [("agent", "a"), ("handoff", "b")]
    assert run.input["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "do"}]}]


def test_memory_is_read_from_events_and_from_attributes() -> None:
    stores: dict[str, Value] = {"memory.store.names": '["notes"]'}
    query, results = event("memory.query", {"content": "[who] am I?"}), event("memory.results", {"content": '[{"content": "Ann"}]'})
    draft = read(one("memory.search", "memory.search", {**stores, "memory.result.count": 1}, query, results))
    assert (draft.kind, draft.name, draft.grade) == ("memory", "memory.search", "semantic")
    assert draft.input == {"arguments": {"stores": ["notes"], "query": "[who] am I?"}}
    assert draft.output == {"result": [{"content": "Ann"}]}
    # In attributes only, the results take the place of the query.
    last = read(one("memory.search", "memory.search", {**stores, "memory.result.count": 1, "content": '[{"content": "Ann"}]'}))
    assert (last.input, last.output) == (None, {"result": [{"content": "Ann"}]})
    added = read(one("memory.add", "memory.add", {**stores, "content": "I am Ann."}))
    assert (added.input, added.output) == ({"arguments": {"stores": ["notes"], "content": "I am Ann."}}, None)


@pytest.mark.parametrize(("name", "kind"), [("chat", "model_call"), ("execute_tool add", "tool_call"), ("invoke_agent helper", "agent")])
def test_where_a_limit_dropped_the_operation_the_name_tells_it(name: str, kind: str) -> None:
    whole = one(name, name.partition(" ")[0])
    bare = span(1, name=name, scope=SCOPE, attributes={"gen_ai.system": "strands-agents"}, dropped_attributes=1)
    assert (read(bare).kind, read(bare).name) == (read(whole).kind, read(whole).name)
    assert read(bare).kind == kind
    assert not DIALECT.claims(span(1, name="execute_event_loop_cycle", scope=SCOPE))
