"""Observations of Langfuse as steps."""

import json
from typing import Any

import pytest

from fixtures.runs.spans import span
from spanreplay.replay.dialects.langfuse import DIALECT
from spanreplay.replay.reading.claimants import claimants
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.spans.record import STATUS_ERROR, SpanRecord

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"n": 1}'}}
PARTS = [{"type": "tool_call", "id": "c1", "name": "f", "arguments": {"n": 1}}]


def observed(kind: str | None = None, *, name: str = "step", number: int = 1, parent: int | None = None, **fields: Any) -> SpanRecord:
    """An observation; fields by the end of their name, objects as JSON text."""
    attributes = {
        f"langfuse.observation.{key.replace('__', '.')}": value if isinstance(value, str | int) else json.dumps(value)
        for key, value in fields.items()
    }
    if kind is not None:
        attributes["langfuse.observation.type"] = kind
    return span(number, name=name, parent=parent, attributes=attributes)


def read(record: SpanRecord) -> StepDraft:
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, ())
    assert draft is not None
    return draft


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("generation", "model_call"),
        ("GENERATION", "model_call"),
        ("tool", "tool_call"),
        ("agent", "agent"),
        ("retriever", "retrieval"),
        ("embedding", "retrieval"),
    ],
)
def test_kinds(kind: str, expected: str) -> None:
    draft = read(observed(kind, input="q", output="a"))
    assert (draft.kind, draft.frame, draft.grade) == (expected, False, "semantic")


@pytest.mark.parametrize("kind", ["span", "chain", "event", "evaluator", "guardrail", None])
def test_what_has_no_kind_of_its_own_is_at_most_the_frame_of_a_run(kind: str | None) -> None:
    assert read(observed(kind, input="q")).frame


def test_a_generation() -> None:
    draft = read(
        observed(
            "generation",
            model__name="gpt-4o-mini",
            model__parameters={"temperature": 0, "max_tokens": "Infinity"},
            usage_details={"input": 3, "output": "4", "input_cached_tokens": 1, "cost": 0.5},
            prompt__name="greeting",
            prompt__version=7,
            input={"messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function", "function": {"name": "f"}}]},
            output={"role": "assistant", "content": None, "tool_calls": [CALL]},
        )
    )
    assert draft.name == "gpt-4o-mini"
    assert draft.input == {
        "messages": [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}],
        "system": [],
        "tools": [{"type": "function", "name": "f"}],
        "params": {"model": "gpt-4o-mini", "temperature": 0},
    }
    assert draft.output["messages"][0]["parts"] == PARTS
    assert draft.usage == {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 1}
    assert draft.versions["model"] == {"request": "gpt-4o-mini", "params": {"temperature": 0}}
    assert draft.versions["prompt"] == {"name": "greeting", "version": "7"}


def test_tools_that_the_handler_for_langchain_lists_among_the_messages() -> None:
    tool = {"role": "tool", "content": {"type": "function", "function": {"name": "f", "parameters": {}}}}
    answer = {"role": "tool", "content": {"n": 1}, "tool_call_id": "c1"}
    draft = read(observed("generation", input=[{"role": "user", "content": "hi"}, answer, tool], output="x"))
    assert [message["role"] for message in draft.input["messages"]] == ["user", "tool"]
    assert draft.input["tools"] == [{"type": "function", "name": "f", "parameters": {}}]


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (
            [{"role": "user", "content": "hi", "event.name": "gen_ai.user.message", "gen_ai.message.index": 0}],
            {"index": 0, "message": {"role": "assistant", "tool_calls": [CALL]}, "event.name": "gen_ai.choice"},
        ),
        (
            [{"role": "user", "content": '[{"text": "hi"}]'}],
            {"finish_reason": "tool_use", "message": json.dumps([{"toolUse": {"toolUseId": "c1", "name": "f", "input": {"n": 1}}}])},
        ),
    ],
    ids=["pydantic-ai", "strands"],
)
def test_events_that_the_server_made_input_and_output_of(asked: Any, answered: Any) -> None:
    draft = read(observed("generation", input=asked, output=answered))
    assert [message["parts"] for message in draft.input["messages"]] == [[{"type": "text", "content": "hi"}]]
    assert draft.output["messages"][0]["parts"] == PARTS


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (
            [
                {"message": {"role": "user", "contents": [{"message_content": {"type": "text", "text": "hi"}}]}},
                None,
            ],
            [
                {
                    "message": {
                        "role": "assistant",
                        "tool_calls": [{"tool_call": {"id": "c1", "function": {"name": "f", "arguments": '{"n": 1}'}}}],
                    }
                }
            ],
        ),
        (
            [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
            {"role": "assistant", "content": "", "tool_calls": '[{"toolCallId": "c1", "toolName": "f", "input": {"n": 1}}]'},
        ),
        (
            [{"role": "user", "content": "hi"}],
            [{"role": "assistant", "finish_reason": "tool_calls", "tool_calls": [{"id": "c1", "name": "f", "arguments": '{"n": 1}'}]}],
        ),
    ],
    ids=["openinference", "vercel", "openllmetry"],
)
def test_messages_that_the_server_put_together_from_attributes(asked: Any, answered: Any) -> None:
    draft = read(observed("generation", input=asked, output=answered))
    assert [message["parts"] for message in draft.input["messages"]] == [[{"type": "text", "content": "hi"}]]
    assert [one for one in draft.output["messages"][0]["parts"] if one != {"type": "text", "content": ""}] == PARTS


def test_a_tool_of_a_decorated_function() -> None:
    draft = read(observed("tool", name="f", input={"args": [], "kwargs": {"n": 1}}, output={"m": 2}))
    assert (draft.name, draft.input, draft.output) == ("f", {"arguments": {"n": 1}}, {"result": {"m": 2}})
    positional = {"args": [1], "kwargs": {}}
    assert read(observed("tool", input=positional)).input == {"arguments": positional}


MESSAGE = {"type": "tool", "name": "f", "content": "two", "tool_call_id": "c1", "status": "success"}


def test_a_span_that_gave_the_message_of_a_tool_of_its_name_is_that_tool() -> None:
    draft = read(observed("span", name="f", input="{'n': 1}", output=MESSAGE))
    assert (draft.kind, draft.call_id) == ("tool_call", "c1")
    assert (draft.input, draft.output) == ({"arguments": {"n": 1}}, {"result": "two"})
    assert read(observed("span", name="tools", input="{'n': 1}", output=MESSAGE)).kind == "agent"
    assert read(observed("span", name="tools", output={"messages": [MESSAGE]})).frame
    failed = read(observed("tool", name="f", output={**MESSAGE, "status": "error"}))
    assert (failed.outcome, failed.output) == ("tool_error", {"result": "two"})


def test_arguments_that_stand_in_the_metadata() -> None:
    assert read(observed("tool", input="{'n': object()}", metadata__inputs={"n": 1})).input == {"arguments": {"n": 1}}
    assert read(observed("tool", input="Paris")).input == {"arguments": "Paris"}
    assert read(observed("tool", input="x", metadata__tool_call_id='"c9"')).call_id == "c9"


def test_operations_and_tools_of_the_conventions_count_before_the_type() -> None:
    record = observed("span", name="greet", input={"n": 1}, output="hi")
    named = SpanRecord(
        trace_id=record.trace_id,
        span_id=record.span_id,
        name=record.name,
        start_ns=1,
        end_ns=2,
        attributes={**record.attributes, "gen_ai.tool.name": "greet", "gen_ai.tool.call.id": "c1"},
    )
    draft = read(named)
    assert (draft.kind, draft.name, draft.call_id) == ("tool_call", "greet", "c1")


def test_failures() -> None:
    draft = read(observed("tool", level="ERROR", status_message="TimeoutError: too slow"))
    assert (draft.outcome, draft.error) == ("timeout", {"type": "TimeoutError", "message": "too slow"})
    plain = read(observed("generation", level="ERROR", status_message="quota: exceeded"))
    assert (plain.outcome, plain.error) == ("error", {"type": None, "message": "quota: exceeded"})
    warned = read(observed("generation", level="WARNING", status_message="slow", input="q", output="a"))
    assert (warned.outcome, warned.error) == ("ok", None)
    assert read(span(1, status=STATUS_ERROR, attributes={"langfuse.observation.type": "tool"})).outcome == "error"


def test_whoever_wrote_the_span_reads_first_and_langfuse_fills_what_the_server_took_away() -> None:
    record = observed("generation", input=[{"role": "user", "content": "hi"}], output="hello")
    foreign = SpanRecord(
        trace_id=record.trace_id,
        span_id=record.span_id,
        name="ChatCompletion",
        start_ns=1,
        end_ns=2,
        attributes={**record.attributes, "openinference.span.kind": "LLM", "llm.model_name": "gpt-4o"},
    )
    assert [dialect.NAME for dialect in claimants(foreign)] == ["openinference", "langfuse"]
    (step,) = build_runs([foreign])[0].steps
    assert (step.dialect, step.name, step.grade) == ("openinference", "gpt-4o", "semantic")
    assert step.input["messages"][0]["parts"] == [{"type": "text", "content": "hi"}]
    assert step.output["messages"][0]["parts"] == [{"type": "text", "content": "hello"}]


@pytest.mark.parametrize("thread", ["t1", '"t1"'])
def test_a_thread_of_langgraph_is_a_session_where_no_other_is_named(thread: str) -> None:
    assert read(observed("chain", metadata__thread_id=thread)).session_id == "t1"


def test_the_observation_around_everything_is_the_run() -> None:
    root = observed("span", name="weather", number=1, input={"args": ["how is it?"], "kwargs": {}}, output="fine")
    inner = observed("generation", name="ask", number=2, parent=1, input="q", output="a")
    (run,) = build_runs([root, inner])
    assert [step.kind for step in run.steps] == ["model_call"]
    assert run.input["messages"][0]["parts"] == [{"type": "text", "content": "how is it?"}]
    assert run.output["messages"][0]["parts"] == [{"type": "text", "content": "fine"}]
