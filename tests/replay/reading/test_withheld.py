"""Content that is not there, though something stands in its place."""

import json
from typing import Any

import pytest

from fixtures.runs.spans import chat, said, span, tool
from spanreplay.replay.model import Step
from spanreplay.replay.reading.fields import not_captured
from spanreplay.replay.rebuilding.completeness import gaps
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord

MARKS = ["<redacted>", "[REDACTED]", "__REDACTED__", "<REDACTED>", "[Redacted]", "***redacted***", "<elided>"]


def read(record: SpanRecord) -> tuple[Step, set[str]]:
    (run,) = build_runs([record])
    (step,) = run.steps
    return step, {reason.code for reason in run.grade_reasons if reason.step == 1}


def messages(*parts: dict[str, Any], role: str = "assistant") -> str:
    return json.dumps([{"role": role, "parts": list(parts), "finish_reason": "stop"}])


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": content}


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_in_any_case_and_brackets_is_no_content(mark: str) -> None:
    assert not_captured(mark)
    step, codes = read(chat(1, attributes={a.GEN_AI_INPUT_MESSAGES: said(mark), a.GEN_AI_OUTPUT_MESSAGES: said(mark, "assistant")}))
    assert (step.input, step.output, step.grade) == (None, None, "structure")
    assert codes == {"input-absent", "output-absent"}
    step, codes = read(tool(1, args=mark, result=mark))
    assert (step.input, step.output, step.grade) == (None, None, "structure")
    assert codes == {"input-absent", "output-absent"}


@pytest.mark.parametrize("value", ["redacted", "I [REDACTED] it", "[redact]", "", None, 1, "__init__", "<" * 100])
def test_anything_else_is_content(value: Any) -> None:
    assert not not_captured(value)


def test_hidden_texts_of_openinference_are_absent() -> None:
    hidden = {
        f"llm.{side}_messages.0.message.{name}": value
        for side, role in (("input", "user"), ("output", "assistant"))
        for name, value in (("role", role), ("content", "__REDACTED__"))
    }
    step, codes = read(span(1, attributes={"openinference.span.kind": "LLM", "llm.model_name": "m", **hidden}))
    assert (step.input, step.output, step.grade) == (None, None, "structure")
    assert codes == {"input-absent", "output-absent"}


@pytest.mark.parametrize("empty", ["[]", messages(), messages(text(""), text("[REDACTED]"))])
def test_messages_in_which_nothing_is_said_are_absent(empty: str) -> None:
    step, codes = read(chat(1, attributes={a.GEN_AI_INPUT_MESSAGES: empty}))
    assert (step.input, step.grade, codes) == (None, "structure", {"input-absent"})
    step, codes = read(chat(1, attributes={a.GEN_AI_OUTPUT_MESSAGES: empty}))
    assert (step.output, step.grade, codes) == (None, "structure", {"output-absent"})


def test_an_empty_question_with_an_answer_is_one() -> None:
    step, codes = read(chat(1, attributes={a.GEN_AI_INPUT_MESSAGES: messages(text(""), role="user")}))
    assert (step.grade, codes) == ("semantic", set())
    both = {a.GEN_AI_INPUT_MESSAGES: messages(text("")), a.GEN_AI_OUTPUT_MESSAGES: messages(text(""))}
    assert read(chat(1, attributes=both))[1] == {"input-absent", "output-absent"}, "nothing shows that contents were captured"
    flat = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.output_messages.0.message.role": "assistant",
    }
    flat["llm.output_messages.0.message.content"] = "hello"
    body = {"model": "m", "messages": [{"role": "user", "content": ""}]}
    assert read(span(1, attributes={**flat, "input.value": json.dumps(body)}))[1] == set()
    assert read(span(1, attributes=flat))[1] == {"input-absent"}


@pytest.mark.parametrize(
    "said_",
    [
        messages({"type": "tool_call", "id": "c1", "name": "f", "arguments": {}}),
        messages({"type": "uri", "modality": "image", "uri": "https://example.com/a.png"}),
    ],
)
def test_a_call_or_a_picture_says_something(said_: str) -> None:
    assert read(chat(1, attributes={a.GEN_AI_OUTPUT_MESSAGES: said_}))[0].output is not None


def test_an_answer_that_was_stopped_may_be_empty() -> None:
    stopped = {a.GEN_AI_OUTPUT_MESSAGES: messages(), a.GEN_AI_RESPONSE_FINISH_REASONS: ["content_filter"]}
    step, codes = read(chat(1, attributes=stopped))
    assert step.output is not None
    assert codes == set()


def test_instructions_alone_are_an_input() -> None:
    step, _ = read(chat(1, attributes={a.GEN_AI_INPUT_MESSAGES: "[]", a.GEN_AI_SYSTEM_INSTRUCTIONS: json.dumps([text("Be kind.")])}))
    assert step.input is not None


def test_a_part_that_was_redacted_is_told() -> None:
    """In an input it is worth knowing; what a replay would hand back in its place is not what the agent got."""
    partly = messages(text("hello"), text("<redacted>"))
    step, codes = read(chat(1, attributes={a.GEN_AI_INPUT_MESSAGES: partly}))
    assert (step.grade, codes) == ("semantic", {"redacted-input"})
    step, codes = read(chat(1, attributes={a.GEN_AI_OUTPUT_MESSAGES: partly}))
    assert (step.grade, codes) == ("structure", {"redacted-result"})
    asked = messages({"type": "tool_call", "id": "c1", "name": "f", "arguments": {"token": "[REDACTED]"}})
    assert read(chat(1, attributes={a.GEN_AI_OUTPUT_MESSAGES: asked}))[0].grade == "structure"
    step, codes = read(tool(1, args='{"name": "[redacted]", "n": 1}'))
    assert (step.grade, codes) == ("semantic", {"redacted-input"})
    step, codes = read(tool(1, result='{"rows": [{"name": "__REDACTED__"}]}'))
    assert (step.grade, codes) == ("structure", {"redacted-result"})


def test_a_message_that_says_nothing_at_all_is_told() -> None:
    question = {"role": "user", "parts": []}
    both = json.dumps([{"role": "system", "parts": [text("Be kind.")]}, question, {"role": "assistant", "parts": []}])
    record = chat(1, attributes={a.GEN_AI_INPUT_MESSAGES: both})
    step, codes = read(record)
    assert (step.grade, codes) == ("semantic", {"empty-message"})
    runs = build_runs([record])
    assert [gap.code for gap in gaps(runs, [record])[runs[0].run_id]] == ["empty-message"]
    asked = json.dumps([{"role": "user", "parts": [text("")]}, {"role": "assistant", "parts": []}, {"role": "user", "parts": [text("a")]}])
    assert read(chat(1, attributes={a.GEN_AI_INPUT_MESSAGES: asked}))[1] == set()


@pytest.mark.parametrize(("value", "result"), [(b'{"a": "\xc3\xbc"}', {"a": "ü"}), (b"ab", "YWI="), (b'{"a": "\xc3', "eyJhIjogIsM=")])
def test_json_text_that_was_written_as_bytes_is_read_as_what_it_says(value: bytes, result: Any) -> None:
    """LangSmith's exporter writes inputs and outputs so up to 0.4; any other bytes are their base64 text."""
    step, _ = read(tool(1, result=value))
    assert step.output == {"result": result}
