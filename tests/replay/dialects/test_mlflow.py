"""Spans of MLflow as steps."""

import json
from typing import Any

import pytest

from fixtures.runs.spans import span
from spanreplay.replay.dialects.mlflow import DIALECT
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.spans.record import STATUS_ERROR, EventRecord, SpanRecord

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"n": 1}'}}


def logged(kind: str, inputs: Any = None, outputs: Any = None, **attributes: Any) -> SpanRecord:
    told = {"mlflow.spanType": kind, "mlflow.spanInputs": inputs, "mlflow.spanOutputs": outputs, **attributes}
    return span(1, name="step", attributes={name: json.dumps(value) for name, value in told.items() if value is not None})


def read(record: SpanRecord) -> StepDraft:
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, ())
    assert draft is not None
    return draft


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("LLM", "model_call"),
        ("CHAT_MODEL", "model_call"),
        ("TOOL", "tool_call"),
        ("AGENT", "agent"),
        ("RETRIEVER", "retrieval"),
        ("RERANKER", "retrieval"),
        ("EMBEDDING", "retrieval"),
        ("MEMORY", "memory"),
    ],
)
def test_kinds(kind: str, expected: str) -> None:
    draft = read(logged(kind, {"q": "x"}, "y"))
    assert (draft.kind, draft.frame) == (expected, False)


def test_chains_are_frames_and_checks_are_none() -> None:
    assert all(read(logged(kind)).frame for kind in ("CHAIN", "WORKFLOW", "TASK", "UNKNOWN", "of my own"))
    assert all(DIALECT.read(logged(kind), ()) is None for kind in ("PARSER", "GUARDRAIL", "EVALUATOR"))


def test_a_model_call_of_a_logged_client() -> None:
    draft = read(
        logged(
            "CHAT_MODEL",
            {"model": "gpt-4o-mini", "temperature": 0, "messages": [{"role": "user", "content": "hi"}]},
            {"id": "r1", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [CALL]}}]},
            **{
                "mlflow.chat.tools": [{"type": "function", "function": {"name": "f"}}],
                "mlflow.chat.tokenUsage": {"input_tokens": 3, "output_tokens": 4, "cache_creation_input_tokens": 1},
                "mlflow.llm.model": "gpt-4o-mini",
                "mlflow.llm.provider": "openai",
                "mlflow.linkedPrompts": [{"name": "greeting", "version": "7"}, {"name": "other", "version": "1"}],
                "session.id": "s1",
            },
        )
    )
    assert (draft.name, draft.response_id, draft.session_id) == ("gpt-4o-mini", "r1", "s1")
    assert draft.input["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
    assert [tool["name"] for tool in draft.input["tools"]] == ["f"]
    assert draft.input["params"] == {"model": "gpt-4o-mini", "temperature": 0}
    assert draft.output["messages"][0]["parts"] == [{"type": "tool_call", "id": "c1", "name": "f", "arguments": {"n": 1}}]
    assert draft.usage == {"input_tokens": 3, "output_tokens": 4, "cache_write_input_tokens": 1}
    assert draft.versions["model"] == {"provider": "openai", "request": "gpt-4o-mini"}
    assert draft.versions["prompt"] == {"name": "greeting", "version": "7"}


def test_messages_of_langchain_in_a_list_for_each_prompt() -> None:
    draft = read(logged("CHAT_MODEL", [[{"type": "human", "content": "hi"}]], {"generations": [[{"text": "yes"}]]}))
    assert draft.input["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
    assert draft.output["messages"] == [{"role": "assistant", "parts": [{"type": "text", "content": "yes"}]}]


MESSAGE = {"type": "tool", "name": "step", "content": "two", "tool_call_id": "c1", "status": "success"}


@pytest.mark.parametrize(
    ("inputs", "outputs", "arguments", "result"),
    [
        ({"n": 1}, {"m": 2}, {"n": 1}, {"m": 2}),
        ("{'n': 1}", "two", {"n": 1}, "two"),
        ("Paris", MESSAGE, "Paris", "two"),
        ({"args": [], "kwargs": {"n": 1}}, [1], {"n": 1}, [1]),
    ],
)
def test_tools(inputs: Any, outputs: Any, arguments: Any, result: Any) -> None:
    draft = read(logged("TOOL", inputs, outputs))
    assert (draft.name, draft.input, draft.output) == ("step", {"arguments": arguments}, {"result": result})
    assert draft.call_id == ("c1" if outputs == MESSAGE else None)


def test_an_agent_is_asked_its_only_text() -> None:
    draft = read(logged("AGENT", {"question": "how is it?"}, "fine"))
    assert draft.run is not None
    assert draft.run.agent_name == "step"
    assert draft.input["messages"][0]["parts"] == [{"type": "text", "content": "how is it?"}]
    assert draft.output["messages"][0]["parts"] == [{"type": "text", "content": "fine"}]


def test_a_failure_has_the_text_without_the_name_before_it() -> None:
    raised = EventRecord(name="exception", time_ns=1, attributes={"exception.type": "RuntimeError", "exception.message": "no"})
    told = {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": "{}"}
    draft = read(span(1, status=STATUS_ERROR, status_message="RuntimeError: no", attributes=told, events=(raised,)))
    assert (draft.outcome, draft.error) == ("error", {"type": "RuntimeError", "message": "no"})


def test_a_session_that_was_set_as_it_is() -> None:
    record = span(1, attributes={"mlflow.spanType": '"TOOL"', "session.id": "s1"})
    assert read(record).session_id == "s1"


def test_attachments_are_not_in_the_trace() -> None:
    address = "mlflow-attachment://7416?content_type=image%2Fpng&size=5"
    picture = {"type": "image_url", "image_url": {"url": address}}
    asked = read(
        logged("CHAT_MODEL", {"messages": [{"role": "user", "content": [picture]}]}, {"choices": [{"message": {"content": "A cat."}}]})
    )
    assert [(reason.code, asked.grade) for reason in asked.reasons] == [("content-elsewhere", "semantic")]
    assert asked.input["messages"][0]["parts"] == [{"type": "uri", "mime_type": None, "modality": "image", "uri": address}]
    assert read(logged("TOOL", {}, [picture])).grade == "structure", "what it gave is not here"


def test_settings_and_the_agent_of_langchain() -> None:
    told = {"invocation_params": {"tool_choice": "any", "stop": None, "_type": "openai-chat"}, "metadata": {"lc_agent_name": "lead"}}
    step = read(logged("CHAT_MODEL", {"messages": [{"role": "user", "content": "Hi"}]}, None, **told))
    assert (step.input["params"], step.agent) == ({"tool_choice": "any"}, "lead")
