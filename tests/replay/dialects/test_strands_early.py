from typing import Any

from fixtures.runs.spans import span
from spanreplay.replay.dialects.strands_early import DIALECT
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_OK, Scope, SpanRecord, Value

SCOPE = Scope(name="strands-agents")


def one(number: int, parent: int | None, name: str, attributes: dict[str, Value], **more: Any) -> SpanRecord:
    return span(number, parent, name=name, scope=more.pop("scope", SCOPE), attributes=attributes, status=STATUS_OK, start=number, **more)


def test_an_agent_its_cycles_and_their_calls() -> None:
    named: dict[str, Value] = {"gen_ai.system": "strands-agents", a.GEN_AI_AGENT_NAME: "helper", a.GEN_AI_REQUEST_MODEL: "m"}
    prompt = '[{"role": "user", "content": [{"text": "q"}]}]'
    call = '[{"toolUse": {"toolUseId": "t1", "name": "add", "input": {"a": 1}}}]'
    told: dict[str, Value] = {"tool.name": "add", "tool.id": "t1", "tool.parameters": '{"a": 1}', "tool.result": '[{"text": "no"}]'}
    spans = [
        one(1, None, "helper", {**named, "gen_ai.prompt": "q", "gen_ai.completion": "a\n", "system_prompt": "be kind"}, end=100),
        one(2, 1, "Cycle x", {"event_loop.cycle_id": "x", "gen_ai.prompt": prompt}, end=90),
        one(3, 2, "Model invoke", {**named, "gen_ai.prompt": prompt, "gen_ai.completion": call, "gen_ai.usage.prompt_tokens": 3}),
        one(4, 2, "Tool: add", {**told, "tool.status": "error"}),
    ]
    (run,) = build_runs(spans)
    assert (run.agent_name, run.input["messages"][0]["parts"], run.output["messages"][0]["parts"]) == (
        "helper",
        [{"type": "text", "content": "q"}],
        [{"type": "text", "content": "a\n"}],
    )
    assert run.input["system"] == [{"type": "text", "content": "be kind"}]
    model, tool = run.steps
    assert (model.kind, model.name, model.usage) == ("model_call", "m", {"input_tokens": 3})
    assert model.output["messages"][0]["parts"] == [{"type": "tool_call", "id": "t1", "name": "add", "arguments": {"a": 1}}]
    assert (tool.kind, tool.name, tool.call_id, tool.outcome, tool.error) == (
        "tool_call",
        "add",
        "t1",
        "tool_error",
        {"type": "tool_error", "message": "no"},
    )
    assert (tool.input, tool.output, tool.requested_by) == ({"arguments": {"a": 1}}, {"result": [{"text": "no"}]}, 1)


def test_later_spans_are_not_its() -> None:
    assert not DIALECT.claims(one(1, None, "chat", {"gen_ai.system": "strands-agents", a.GEN_AI_OPERATION_NAME: "chat"}))
    assert not DIALECT.claims(one(1, None, "Tool: add", {"tool.name": "add"}, scope=Scope()))
