import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.runs.spans import asking, event, log, said, span
from spanreplay.replay.dialects.openllmetry import DIALECT
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.grouping import read_spans
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.rebuilding.tree import build
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, SpanRecord, Value


def told(kind: str | None, attributes: Mapping[str, Value] | None = None, **more: Any) -> SpanRecord:
    return span(1, attributes={**({} if kind is None else {"traceloop.span.kind": kind}), **(attributes or {})}, **more)


def read(record: SpanRecord) -> StepDraft:
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, ())
    assert draft is not None
    return draft


OLD: dict[str, Value] = {
    "llm.request.type": "chat",
    "gen_ai.system": "openai",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.request.temperature": 0,
    "gen_ai.request.reasoning_effort": [],
    "llm.top_k": 3,
    "gen_ai.prompt.0.role": "system",
    "gen_ai.prompt.0.content": "be brief",
    "gen_ai.prompt.1.role": "user",
    "gen_ai.prompt.1.content": '[{"type": "text", "text": "1+1?"}]',
    "gen_ai.prompt.2.role": "assistant",
    "gen_ai.prompt.2.tool_calls.0.id": "c1",
    "gen_ai.prompt.2.tool_calls.0.name": "add",
    "gen_ai.prompt.2.tool_calls.0.arguments": '{"a": 1}',
    "gen_ai.prompt.10.role": "tool",
    "gen_ai.prompt.10.content": "2",
    "gen_ai.prompt.10.tool_call_id": "c1",
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.content": "2",
    "gen_ai.completion.0.finish_reason": "stop",
    "llm.request.functions.0.name": "add",
    "llm.request.functions.0.description": "adds",
    "llm.request.functions.0.parameters": '{"type": "object"}',
    "gen_ai.response.model": "gpt-4o-2024",
    "gen_ai.response.id": "resp_1",
    "gen_ai.usage.prompt_tokens": 5,
    "gen_ai.usage.completion_tokens": 7,
    "gen_ai.usage.reasoning_tokens": 1,
    "traceloop.association.properties.session_id": "s1",
}


def test_the_numbered_form() -> None:
    draft = read(told(None, OLD))
    assert [(m["role"], m["parts"]) for m in draft.input["messages"]] == [
        ("system", [{"type": "text", "content": "be brief"}]),
        ("user", [{"type": "text", "content": "1+1?"}]),
        ("assistant", [{"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a": 1}}]),
        ("tool", [{"type": "tool_call_response", "id": "c1", "response": "2"}]),
    ]
    assert draft.input["tools"] == [{"type": "function", "name": "add", "description": "adds", "parameters": {"type": "object"}}]
    assert draft.input["params"] == {"temperature": 0, "top_k": 3, "model": "gpt-4o"}
    assert draft.output["messages"] == [{"role": "assistant", "parts": [{"type": "text", "content": "2"}], "finish_reason": "stop"}]
    assert (draft.output["finish"], draft.name, draft.response_id, draft.session_id) == ("stop", "gpt-4o", "resp_1", "s1")
    assert draft.usage == {"input_tokens": 5, "output_tokens": 7, "reasoning_output_tokens": 1}
    assert draft.versions["tools"][0]["name"] == "add"
    assert draft.grade == "semantic"


@pytest.mark.parametrize("text", ['[{"a": 1}]', "[1, 2]", '[{"function": {"name": "f"}, "type": "function"}]', "null", '"x"'])
def test_content_that_only_looks_like_blocks_is_what_was_said(text: str) -> None:  # Koog writes tool calls as such a text
    draft = read(told(None, {"gen_ai.prompt.0.content": text, "gen_ai.completion.0.content": text}))
    assert draft.input["messages"][0]["parts"] == [{"type": "text", "content": text}]
    assert draft.output["messages"][0]["parts"] == [{"type": "text", "content": text}]


def test_a_cut_block_is_said_to_be_cut() -> None:
    draft = read(told(None, {"gen_ai.prompt.0.content": '[{"type": "text", "text": "a lo', "gen_ai.completion.0.content": "x"}))
    assert draft.grade == "incomplete"
    assert any(reason.code == "cut" and "gen_ai.prompt.0.content" in reason.detail for reason in draft.reasons)


def test_prompts_by_name_are_no_numbered_prompts() -> None:
    for name in ("gen_ai.prompt", "gen_ai.prompt.name", "gen_ai.prompt.variable.0.x", "gen_ai.completion", "traceloop.workflow.name"):
        assert not DIALECT.claims(span(1, attributes={name: "x"}))


@pytest.mark.parametrize(
    ("request_type", "kind"), [("chat", "model_call"), ("completion", "model_call"), ("embedding", "retrieval"), ("rerank", "retrieval")]
)
def test_kinds_of_requests(request_type: str, kind: str) -> None:
    attributes = {"llm.request.type": request_type, "gen_ai.prompt.0.content": "q", "gen_ai.completion.0.content": "a"}
    assert read(told(None, attributes)).kind == kind


def test_log_events_of_the_old_form() -> None:
    record = told(None, {"llm.request.type": "chat", "gen_ai.request.model": "m", "gen_ai.response.finish_reasons": ["stop"]})
    asked = {"content": "q"}
    answered = {"index": 0, "finish_reason": "tool_calls", "message": {"content": ""}, "tool_calls": [
        {"id": "c1", "function": {"function_name": "add", "arguments": "{}"}, "type": "function"}
    ]}  # fmt: skip
    (run,) = build_runs([record, log(1, "gen_ai.user.message", {}, body=asked), log(1, "gen_ai.choice", {}, body=answered)])
    (step,) = run.steps
    assert step.input["messages"][0]["parts"][0]["content"] == "q"
    assert step.output["messages"][0]["parts"][-1] == {"id": "c1", "type": "tool_call", "name": "add", "arguments": {}}
    assert (step.dialect, step.grade) == ("openllmetry", "semantic")


# ---- decorators and frameworks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "arguments", "result", "call_id"),
    [
        (
            {
                "traceloop.entity.input": '{"args": [], "kwargs": {"city": "Paris"}}',
                "traceloop.entity.output": '{"sky": "sunny"}',
            },
            {"city": "Paris"},
            {"sky": "sunny"},
            None,
        ),
        (
            {
                "traceloop.entity.input": json.dumps(
                    {"input_str": "{'city': 'Paris'}", "inputs": {"city": "Paris"}, "kwargs": {"tool_call_id": "c1"}, "metadata": {}}
                ),
                "traceloop.entity.output": json.dumps(
                    {"output": {"lc": 1, "kwargs": {"content": "sunny", "tool_call_id": "c1", "status": "success"}}, "kwargs": {}}
                ),
            },
            {"city": "Paris"},
            "sunny",
            "c1",
        ),
        (
            {"gen_ai.tool.name": "weather", "gen_ai.tool.call.arguments": '{"city":"Paris"}', "gen_ai.tool.call.result": "sunny"},
            {"city": "Paris"},
            "sunny",
            None,
        ),
        (
            {
                "traceloop.entity.input": '{"tool_name": "weather", "arguments": {"city": "Paris"}}',
                "traceloop.entity.output": '{"result": "sunny"}',
            },
            {"city": "Paris"},
            "sunny",
            None,
        ),
        (
            {"traceloop.entity.input": '{"args": ["Paris"], "kwargs": {}}', "traceloop.entity.output": '"sunny"'},
            {"args": ["Paris"], "kwargs": {}},
            "sunny",
            None,
        ),
    ],
    ids=["decorator", "langchain", "agents", "mcp", "positional"],
)
def test_tools(attributes: dict[str, Value], arguments: Any, result: Any, call_id: str | None) -> None:
    draft = read(told("tool", {"traceloop.entity.name": "weather", **attributes}, name="weather.tool"))
    assert (draft.name, draft.input, draft.output, draft.call_id) == ("weather", {"arguments": arguments}, {"result": result}, call_id)
    assert draft.grade == "semantic"


@pytest.mark.parametrize("value", [{"a": 1}, "text", '{"a": 1}', '"quoted"', 0, False, None, "", [], [1]])
def test_results_come_back_with_their_type(value: Any) -> None:  # B17: written as JSON once, so read once
    draft = read(told("tool", {"traceloop.entity.input": "{}", "traceloop.entity.output": json.dumps(value)}))
    assert draft.output == {"result": value}
    assert type(draft.output["result"]) is type(value)


@pytest.mark.parametrize("text", ["[1,2,3]", "null", "{broken", "plain"])
def test_any_arguments_are_kept(text: str) -> None:  # B25
    draft = read(told("tool", {"traceloop.entity.input": text, "traceloop.entity.output": '"x"'}))
    assert draft.input == {"arguments": [1, 2, 3] if text == "[1,2,3]" else None if text == "null" else text}


def test_cut_values_are_said_to_be_cut() -> None:
    draft = read(told("tool", {"traceloop.entity.input": '{"args": [], "kwargs": {"text": "a lo', "traceloop.entity.output": '"x"'}))
    assert (draft.grade, draft.input["arguments"][:8]) == ("incomplete", '{"args":')


def test_a_failure_that_mcp_reports() -> None:  # B35
    output = {
        "traceloop.entity.input": '{"tool_name": "t", "arguments": {}}',
        "traceloop.entity.output": '{"result": "no", "is_error": true}',
    }
    draft = read(told("tool", output))
    assert (draft.outcome, draft.transport) == ("tool_error", True)
    assert read(told("tool", {**output, "error.type": "tool_error"}, status=STATUS_ERROR)).outcome == "tool_error"


def test_a_tool_has_a_version() -> None:
    (run,) = build_runs([told("tool", {"traceloop.entity.name": "t", "traceloop.entity.version": 2, "traceloop.entity.input": "{}"})])
    assert run.versions.tools == ({"name": "t", "version": "2"},)


def test_each_run_knows_its_own_prompt() -> None:  # B61
    prompts = []
    for version in (1, 2):
        prompt: dict[str, Value] = {
            "traceloop.prompt.key": "greeting",
            "traceloop.prompt.version": version,
            "traceloop.prompt.version_hash": f"h{version}",
            "traceloop.prompt.template_variables.x": "y",
        }
        (run,) = build_runs([told(None, {**OLD, **prompt})])
        prompts.append(run.versions.prompt[0])
    assert prompts == [{"name": "greeting", "version": n, "digest": f"h{n}"} for n in (1, 2)]


def test_a_workflow_around_everything_is_the_run() -> None:
    flow: dict[str, Value] = {
        "traceloop.span.kind": "workflow",
        "traceloop.entity.name": "weather",
        "traceloop.entity.version": 3,
        "traceloop.entity.input": '{"args": ["q"], "kwargs": {}}',
        "traceloop.entity.output": '"sunny"',
    }
    task = span(2, 1, start=1, end=90, attributes={"traceloop.span.kind": "task", "traceloop.entity.name": "step"})
    (run,) = build_runs([span(1, start=0, end=100, attributes=flow), task, span(3, 2, start=5, end=9, attributes=OLD)])
    assert (run.agent_name, run.agent_version, run.session_id, run.unclassified_spans) == ("weather", "3", "s1", 1)
    assert run.output["messages"][0]["parts"] == [{"type": "text", "content": "sunny"}]
    assert [step.kind for step in run.steps] == ["model_call"]


def test_agents_and_hand_offs() -> None:
    agent = read(told("agent", {"gen_ai.agent.name": "desk", "gen_ai.operation.name": "invoke_agent"}, name="desk.agent"))
    assert (agent.kind, agent.name, agent.agent, agent.frame) == ("agent", "desk", "desk", False)
    handed = read(
        told("handoff", {"gen_ai.handoff.from_agent": "desk", "gen_ai.handoff.to_agent": "math", "gen_ai.operation.name": "handoff"})
    )
    assert (handed.kind, handed.name, handed.input) == ("handoff", "math", {"arguments": {"from": "desk", "to": "math"}})
    unknown = read(
        told("handoff", {"gen_ai.handoff.from_agent": "desk", "gen_ai.handoff.to_agent": "unknown"}, name="desk → unknown.handoff")
    )
    assert (unknown.name, unknown.grade) == ("desk → unknown", "semantic")


@pytest.mark.parametrize("kind", ["session", "server", "unknown", "something new"])
def test_what_asks_nobody_is_no_step(kind: str) -> None:
    assert DIALECT.read(told(kind, {"traceloop.entity.input": "{}"}), ()) is None


def test_messages_of_the_new_form_are_those_of_the_conventions() -> None:
    attributes: dict[str, Value] = {
        "traceloop.workflow.name": "w",
        "traceloop.association.properties.thread_id": "t1",
        a.GEN_AI_OPERATION_NAME: "chat",
        a.GEN_AI_REQUEST_MODEL: "m",
        a.GEN_AI_INPUT_MESSAGES: said("q"),
        a.GEN_AI_OUTPUT_MESSAGES: asking(("c1", "add", {"a": 1})),
    }
    (run,) = build_runs([span(1, attributes=attributes)])
    assert (run.steps[0].dialect, run.steps[0].grade, run.session_id) == ("gen_ai", "semantic", "t1")


def test_one_failing_call_leaves_the_others_alone() -> None:  # B33
    raised = event("exception", {"exception.type": "ValueError", "exception.message": "no"})
    tool = {"traceloop.span.kind": "tool", "traceloop.entity.name": "f"}
    good = [span(n, attributes={**tool, "traceloop.entity.input": f'{{"n": {n}}}', "traceloop.entity.output": f'"{n}"'}) for n in (1, 3)]
    bad = span(2, attributes={**tool, "traceloop.entity.input": '{"n": 2}'}, status=STATUS_ERROR, status_message="no", events=(raised,))
    (run,) = build_runs([good[0], bad, good[1]])
    assert [(step.input["arguments"]["n"], step.outcome, step.output) for step in run.steps] == [
        (1, "ok", {"result": "1"}),
        (2, "error", None),
        (3, "ok", {"result": "3"}),
    ]
    assert run.steps[1].error == {"type": "ValueError", "message": "no"}


# ---- whole kinds -----------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(
    [
        *("traceloop.entity.input", "traceloop.entity.output", "traceloop.entity.name", "traceloop.entity.version", "llm.request.type"),
        *("gen_ai.prompt.0.content", "gen_ai.prompt.0.role", "gen_ai.prompt.0.tool_calls.0.arguments", "gen_ai.prompt.0", "gen_ai.prompt"),
        *("gen_ai.completion.1.tool_calls.0", "gen_ai.completion.1.tool_calls", "llm.request.functions.0.parameters", "llm.top_k"),
        *("gen_ai.handoff.to_agent", "traceloop.prompt.version", "gen_ai.completion.0.function_call.arguments"),
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=4)
    | st.sampled_from(['{"input_str": 1}', '{"tool_name": 1}', '"', '"a', "[{"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["role", "kwargs", "args"]), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(["tool", "workflow", "task", "agent", "handoff", "unknown", None]), st.dictionaries(NAMES, VALUES, max_size=8))
def test_no_attribute_of_any_type_costs_a_span(kind: str | None, attributes: dict[str, Any]) -> None:
    record = told(kind, attributes)
    (reading,) = read_spans(build([record])).values()
    assert reading.fault is None
    (run,) = build_runs([record])
    json.dumps(run.to_json())


def test_a_task_of_llamaindex_that_calls_a_tool_is_a_tool() -> None:
    output = {"tool_name": "f", "tool_id": "c1", "tool_output": {"tool_name": "f", "raw_input": {}, "raw_output": 2, "is_error": False}}
    said = {"tool.name": "f", "tool.arguments": '{"n": 1}', "traceloop.entity.output": json.dumps(output)}
    draft = read(told("task", said))
    assert (draft.kind, draft.name, draft.call_id) == ("tool_call", "f", "c1")
    assert (draft.input, draft.output) == ({"arguments": {"n": 1}}, {"result": 2})
    assert read(told("task", {"traceloop.entity.output": json.dumps(output)})).frame
