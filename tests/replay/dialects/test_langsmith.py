"""Runs of LangSmith as steps."""

import json
from typing import Any

import pytest

from fixtures.runs.spans import span
from spanreplay.replay.dialects.langsmith import DIALECT
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.spans.record import STATUS_ERROR, EventRecord, Scope, SpanRecord

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"n": 1}'}}


def ran(kind: str, inputs: Any = None, outputs: Any = None, **attributes: Any) -> SpanRecord:
    told = {"langsmith.span.kind": kind, "langsmith.trace.name": "step", **attributes}
    for name, value in (("gen_ai.prompt", inputs), ("gen_ai.completion", outputs)):
        if value is not None:
            told[name] = json.dumps(value)
    return span(1, name="step", attributes=told)


def read(record: SpanRecord) -> StepDraft:
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, ())
    assert draft is not None
    return draft


def test_a_model_run_of_a_wrapped_client() -> None:
    draft = read(
        ran(
            "llm",
            {
                "messages": [{"role": "user", "content": "hi"}],
                "model": "gpt-4o-mini",
                "tools": [{"type": "function", "function": {"name": "f"}}],
            },
            {"id": "r1", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [CALL]}}]},
            **{
                "gen_ai.request.model": "gpt-4o-mini",
                "langsmith.metadata.ls_provider": "openai",
                "langsmith.metadata.usage_metadata": '{"input_tokens": 3, "output_tokens": 4, "input_token_details": {"cache_read": 1}}',
                "langsmith.metadata.lc_hub_owner": "-",
                "langsmith.metadata.lc_hub_repo": "greeting",
                "langsmith.metadata.lc_hub_commit_hash": "abc",
            },
        )
    )
    assert (draft.kind, draft.name, draft.grade) == ("model_call", "gpt-4o-mini", "semantic")
    assert draft.input["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
    assert [tool["name"] for tool in draft.input["tools"]] == ["f"]
    assert draft.output["messages"][0]["parts"] == [{"type": "tool_call", "id": "c1", "name": "f", "arguments": {"n": 1}}]
    assert draft.usage == {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 1}
    assert draft.versions["model"]["provider"] == "openai"
    assert draft.versions["prompt"] == {"name": "greeting", "version": "abc"}


def test_tools_and_parameters_beside_the_messages() -> None:
    message = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "HumanMessage"], "kwargs": {"content": "hi"}}
    definitions = json.dumps([{"type": "function", "function": {"name": "f"}}])
    draft = read(ran("llm", {"messages": [[message]]}, **{"gen_ai.tool.definitions": definitions, "gen_ai.request.temperature": 0.5}))
    assert draft.input == {
        "messages": [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}],
        "system": [],
        "tools": [{"type": "function", "name": "f"}],
        "params": {"temperature": 0.5},
    }


@pytest.mark.parametrize(
    ("inputs", "attributes", "expected"),
    [
        ({"city": "Paris"}, {}, {"city": "Paris"}),
        ({"input": "{'city': 'Paris'}"}, {}, {"city": "Paris"}),
        ({"input": "Paris"}, {}, "Paris"),
        ({"input": "Paris"}, {"langsmith.metadata.ls_method": "traceable"}, {"input": "Paris"}),
    ],
)
def test_arguments_of_a_tool(inputs: Any, attributes: dict[str, Any], expected: Any) -> None:
    assert read(ran("tool", inputs, **attributes)).input == {"arguments": expected}


MESSAGE = {"type": "tool", "name": "f", "content": "two", "tool_call_id": "c1", "status": "success"}


@pytest.mark.parametrize(
    ("outputs", "result"),
    [({"output": 2}, 2), ({"output": None}, None), ({"m": 2}, {"m": 2}), ({"output": MESSAGE}, "two"), ({"output": "{}"}, "{}")],
)
def test_results_of_a_tool(outputs: Any, result: Any) -> None:
    draft = read(ran("tool", {}, outputs, **{"gen_ai.tool.name": "f"}))
    assert (draft.name, draft.output, draft.outcome) == ("f", {"result": result}, "ok")
    assert draft.call_id == ("c1" if MESSAGE in outputs.values() else None)


def test_a_tool_that_answered_with_a_failure() -> None:
    assert read(ran("tool", {}, {"output": {**MESSAGE, "status": "error"}})).outcome == "tool_error"


@pytest.mark.parametrize(
    ("message", "error", "outcome"),
    [
        ("RuntimeError('no')\n\nTraceback (most recent call last):\n …", {"type": "RuntimeError", "message": "no"}, "error"),
        ("TimeoutError()", {"type": "TimeoutError", "message": ""}, "timeout"),
        (
            'ToolException("it\'s (not) there")Traceback (most recent call last):',
            {"type": "ToolException", "message": "it's (not) there"},
            "error",
        ),
        ("something broke", {"type": None, "message": "something broke"}, "error"),
    ],
)
def test_a_failure_is_named_by_its_exception_and_has_no_result(message: str, error: dict[str, str | None], outcome: str) -> None:
    record = span(
        1,
        status=STATUS_ERROR,
        attributes={"langsmith.span.kind": "tool", "gen_ai.prompt": "{}", "gen_ai.completion": '{"output": null}'},
        events=(EventRecord(name="exception", time_ns=1, attributes={"exception.type": "Exception", "exception.message": message}),),
    )
    draft = read(record)
    assert (draft.error, draft.outcome, draft.output) == (error, outcome, None)


def test_chains_are_frames_and_prompts_and_parsers_are_none() -> None:
    chain = read(ran("chain", {"question": "how is it?"}, {"output": "fine"}, **{"langsmith.metadata.thread_id": "t1"}))
    assert (chain.frame, chain.session_id) == (True, "t1")
    assert chain.input["messages"][0]["parts"] == [{"type": "text", "content": "how is it?"}]
    assert chain.output["messages"][0]["parts"] == [{"type": "text", "content": "fine"}]
    assert DIALECT.read(ran("prompt"), ()) is None
    assert DIALECT.read(ran("parser"), ()) is None
    assert read(ran("retriever", {"query": "q"}, {"documents": []})).kind == "retrieval"


def test_a_project_is_no_session() -> None:
    assert read(ran("tool", {}, **{"langsmith.trace.session_id": "project"})).session_id is None


def test_a_span_that_lost_its_oldest_attributes_is_known_by_its_scope() -> None:
    record = SpanRecord(
        trace_id="1" * 32, span_id="1" * 16, name="f", scope=Scope(name="langsmith"), attributes={"gen_ai.operation.name": "execute_tool"}
    )
    assert read(record).kind == "tool_call"
