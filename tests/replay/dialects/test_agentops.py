"""AgentOps: what its decorators write, and what its instrumentation of a model writes beside that."""

import json
from typing import Any

import pytest

from fixtures.runs.spans import span
from spanreplay.replay.dialects.agentops import DIALECT, KIND, NAME
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.spans.record import SpanRecord, Value


def decorated(kind: str, name: str, number: int = 1, parent: int | None = None, **sides: str) -> SpanRecord:
    attributes: dict[str, Value] = {KIND: kind, NAME: name, **{f"agentops.{kind}.{side}": text for side, text in sides.items()}}
    return span(number, parent, name=f"{name}.{kind}", start=number, end=90 - number, attributes=attributes)


def read(record: SpanRecord) -> StepDraft:
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, ())
    assert draft is not None
    return draft


@pytest.mark.parametrize(
    ("given", "arguments"), [('{"args": [], "kwargs": {"a": 1}}', {"a": 1}), ('{"args": [1], "kwargs": {}}', {"args": [1], "kwargs": {}})]
)
def test_a_tool_has_its_arguments_and_its_result(given: str, arguments: Any) -> None:
    draft = read(decorated("tool", "add", input=given, output='{"sum": 2}'))
    assert (draft.kind, draft.name, draft.input, draft.output) == ("tool_call", "add", {"arguments": arguments}, {"result": {"sum": 2}})


def test_what_is_around_is_the_run_with_what_went_in_and_came_out() -> None:
    session = decorated("session", "job", input='{"args": ["q"], "kwargs": {}}', output="done")
    agent, ran = decorated("agent", "weather", 2, 1), decorated("tool", "add", 3, 2, input="{}")
    (run,) = build_runs([session, agent, ran])
    views: list[Any] = [run.input, run.output]
    assert [view["messages"][-1]["parts"][0]["content"] for view in views] == ["q", "done"]
    assert [(step.kind, step.name) for step in run.steps] == [("agent", "weather"), ("tool_call", "add")]


def test_what_a_model_only_asks_for_did_not_run() -> None:
    asks = span(1, name="tool_call.add", attributes={KIND: "AgentOpsSpanKindValues.TOOL", "tool.name": "add", "tool.call.id": "c1"})
    assert DIALECT.claims(asks)
    assert DIALECT.read(asks, ()) is None
    assert not DIALECT.claims(span(1, attributes={KIND: "llm"}))


def test_the_tools_that_a_model_was_offered_are_tools_and_no_settings() -> None:
    offered = {"name": "add", "description": "adds", "parameters": json.dumps({"type": "object"})}
    attributes: dict[str, Value] = {
        "gen_ai.request.model": "m",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "q",
        **{f"gen_ai.request.functions.0.{name}": value for name, value in offered.items()},
    }
    (run,) = build_runs([span(1, name="openai.chat.completion", attributes=attributes)])
    asked: Any = run.steps[0].input
    assert asked["tools"] == [{"type": "function", "name": "add", "description": "adds", "parameters": {"type": "object"}}]
    assert asked["params"] == {"model": "m"}
