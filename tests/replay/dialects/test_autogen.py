import json

from fixtures.runs.spans import asking, chat, span
from spanreplay.replay.dialects.autogen import DIALECT
from spanreplay.replay.reading.claimants import claimants
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, SpanRecord, Value
from support.handmade import given


def operation(
    name: str, number: int, parent: int | None = None, *, start: int = 0, end: int = 100, status: int = 0, **told: Value
) -> SpanRecord:
    own: dict[str, Value] = {a.GEN_AI_OPERATION_NAME: name, "gen_ai.system": "autogen", **told}
    return span(number, parent, name=f"{name} it", attributes=own, start=start, end=end, status=status)


def called(number: int, **more: Value) -> SpanRecord:
    told: dict[str, Value] = {a.GEN_AI_TOOL_NAME: "search", a.GEN_AI_TOOL_CALL_ID: "c", **more}
    return operation("execute_tool", number, 2, start=30, end=40, **given(told))


def spans() -> list[SpanRecord]:
    return [
        operation("create_agent", 1, end=5, **given({a.GEN_AI_AGENT_NAME: "helper"})),
        operation("invoke_agent", 2, start=10, **given({a.GEN_AI_AGENT_NAME: "helper"})),
        called(3),
        span(4, 2, name="autogen create output_topic", attributes={"messaging.operation": "create"}),
    ]


def test_agents_and_tools_are_seen_without_content() -> None:
    (run,) = build_runs(spans())
    assert (run.agent_name, run.outcome) == ("helper", "ok")
    agent, tool = run.steps
    assert (agent.kind, agent.name) == ("agent", "helper")
    assert (tool.kind, tool.name, tool.call_id, tool.agent) == ("tool_call", "search", "c", "helper")
    assert (tool.input, tool.output, tool.grade, tool.dialect) == (None, None, "structure", "autogen")
    assert all("instrument the client of the model too" in reason.detail for reason in tool.reasons)


def test_a_tool_that_failed_says_how() -> None:
    failed = operation("execute_tool", 3, status=STATUS_ERROR, **given({a.GEN_AI_TOOL_NAME: "search", a.ERROR_TYPE: "ValueError"}))
    draft = DIALECT.read(failed, ())
    assert draft is not None
    assert (draft.outcome, draft.error) == ("error", {"type": "ValueError", "message": None})


def test_an_instrumented_client_of_the_model_tells_the_rest() -> None:
    history = [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "search", "arguments": {"q": 1}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "found"}]},
    ]
    before = chat(5, 2, start=20, end=25, attributes={a.GEN_AI_OUTPUT_MESSAGES: asking(("c", "search", {"q": 1}))})
    after = chat(6, 2, start=50, end=60, attributes={a.GEN_AI_INPUT_MESSAGES: json.dumps(history)})
    (run,) = build_runs([*spans(), before, after])
    tool = next(step for step in run.steps if step.kind == "tool_call")
    assert (tool.input, tool.output, tool.grade) == ({"arguments": {"q": 1}}, {"result": "found"}, "semantic")


def test_the_spans_of_the_runtime_are_no_steps() -> None:
    assert claimants(spans()[-1]) == ()
    assert claimants(spans()[2])[0].NAME == "autogen"
