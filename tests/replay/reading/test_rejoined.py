"""Structured attributes of which only the leaves came."""

import json
from typing import Any

import pytest

from fixtures.runs.spans import agent, span
from spanreplay.replay.reading.flattened import Node
from spanreplay.replay.reading.rejoined import content_of, member, rejoined
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import Value

MESSAGES = [
    {"role": "user", "parts": [{"type": "text", "content": "q"}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "f", "arguments": {"n": 1, "tags": ["x", "y"]}}]},
]


def leaves(name: str, value: Any, places: str) -> dict[str, Value]:
    """A value by its leaves, places in lists as in a format."""
    if isinstance(value, dict):
        return {key: leaf for member, inner in value.items() for key, leaf in leaves(f"{name}.{member}", inner, places).items()}
    if isinstance(value, list):
        return {key: leaf for place, inner in enumerate(value) for key, leaf in leaves(name + places.format(place), inner, places).items()}
    return {name: value}


@pytest.mark.parametrize("places", [".{}", "[{}]"])
def test_a_model_call_and_a_tool_by_their_leaves(places: str) -> None:
    def made(given: Any, answer: Any, arguments: Any, result: Any) -> Any:
        chat = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_REQUEST_MODEL: "m", **given, **answer}
        tool = {a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: "f", **arguments, **result}
        (run,) = build_runs([agent(1, end=900), span(2, 1, start=10, attributes=chat), span(3, 1, start=300, attributes=tool)])
        return [(step.input, step.output, step.grade) for step in run.steps]

    whole = (
        (a.GEN_AI_INPUT_MESSAGES, MESSAGES),
        (a.GEN_AI_OUTPUT_MESSAGES, MESSAGES[1:]),
        (a.GEN_AI_TOOL_CALL_ARGUMENTS, {"n": 1}),
        (a.GEN_AI_TOOL_CALL_RESULT, [{"m": 2}, "z"]),
    )
    assert made(*(leaves(name, value, places) for name, value in whole)) == made(*({name: json.dumps(value)} for name, value in whole))


def test_what_is_whole_is_believed_and_other_names_are_left_alone() -> None:
    given: dict[str, Value] = {
        a.GEN_AI_TOOL_CALL_RESULT: "whole",
        f"{a.GEN_AI_TOOL_CALL_RESULT}.0": "leaf",
        "gen_ai.input.messages_count.0": 1,
    }
    record = span(1, attributes=given)
    assert rejoined(record) is record
    deep = span(1, attributes={f"{a.GEN_AI_TOOL_CALL_RESULT}{'.a' * 1000}": 1})
    assert isinstance(rejoined(deep).attributes[a.GEN_AI_TOOL_CALL_RESULT], dict)


def test_members_of_a_node() -> None:
    node: Node = {"whole": "x", "list": {"1": "b", "0": "a"}, "map": {"city": "Paris", "": 7}, "both": {"": 7}}
    assert [member(node, name) for name in (*node, "none")] == ["x", ["a", "b"], {"city": "Paris"}, 7, None]
    assert content_of(node, "map") == '{"city": "Paris"}'
