"""Attribute names that were taken apart into objects, put together again."""

from typing import Any

import pytest

from spanreplay.replay.inputs.nesting import joined


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (
            {"openinference": {"span": {"kind": "LLM"}}, "input": {"value": {"a": 1}, "mime_type": "application/json"}},
            {"openinference.span.kind": "LLM", "input.value": {"a": 1}, "input.mime_type": "application/json"},
        ),
        (
            {"llm": {"input_messages": [{"message": {"role": "user", "contents": [{"message_content": {"text": "x"}}]}}]}},
            {
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.contents.0.message_content.text": "x",
            },
        ),
        (
            {
                "llm": {
                    "output_messages": [{"message": {"tool_calls": [{"tool_call": {"function": {"name": "f", "arguments": {"x": 1}}}}]}}]
                }
            },
            {
                "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "f",
                "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": {"x": 1},
            },
        ),
        (
            {
                "gen_ai": {
                    "operation": {"name": "chat"},
                    "input": {"messages": [{"role": "user"}]},
                    "response": {"finish_reasons": ["stop"]},
                }
            },
            {"gen_ai.operation.name": "chat", "gen_ai.input.messages": [{"role": "user"}], "gen_ai.response.finish_reasons": ["stop"]},
        ),
        ({"gen_ai": {"tool": {"call": {"arguments": {"city": {"name": "x"}}}}}}, {"gen_ai.tool.call.arguments": {"city": {"name": "x"}}}),
        ({"gen_ai": {"prompt": {"0": {"content": "x"}}}}, {"gen_ai.prompt.0.content": "x"}),
        ({"llm": {}, "tool": {"name": "t", "parameters": {"a": 1}}}, {"llm": {}, "tool.name": "t", "tool.parameters": {"a": 1}}),
        ({"tool": {"name": "t"}, "tool.name": "kept"}, {"tool.name": "kept"}),
    ],
)
def test_names_are_put_together_down_to_the_values_of_the_application(given: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert joined(given) == (wanted, True)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"gen_ai.operation.name": "chat", "payload": {"a": {"b": 1}}},
        {"gen_ai.tool.call.arguments": {"tool": {"name": 1}}},
        {"input": "text", "llm": [1]},
    ],
)
def test_what_was_not_taken_apart_stays(given: dict[str, Any]) -> None:
    assert joined(given) == (given, False)


def test_any_depth() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = {"a": deep}
    found, was = joined({"llm": deep})
    assert was
    assert len(found) == 1
