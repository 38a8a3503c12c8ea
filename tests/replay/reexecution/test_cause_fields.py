"""What explains a difference: the field that differs is the changed thing itself."""

import copy
from typing import Any

import pytest

from spanreplay.replay.reexecution.causes import NONE
from support.asking import REQUEST, ask
from support.taped import recorded, replayed


def _edited(path: list[Any], value: Any) -> dict[str, Any]:
    made = copy.deepcopy(REQUEST)
    place: Any = made
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return made


@pytest.mark.parametrize(
    ("path", "value", "field", "cause"),
    [
        (
            ["messages", 0, "content"],
            "Be generous.",
            "messages[0].content",
            "the instructions have changed, and the prompt greeter 3 is as it was",
        ),
        (["messages", 1, "content"], "Bye", "messages[1].content", NONE),
        (
            ["tools", 0, "function", "parameters", "properties", "x", "type"],
            "string",
            "tools[0].function.parameters.properties.x.type",
            "the schema of tool look has changed since the run was recorded",
        ),
        (["temperature"], 1, "temperature", "the model settings have changed: temperature 0 → 1"),
    ],
)
def test_one_changed_value_of_a_model_call_is_found_and_explained(path: list[Any], value: Any, field: str, cause: str) -> None:
    tape = recorded(ask, REQUEST)
    assert replayed(tape, ask, REQUEST).equal
    result = replayed(tape, ask, _edited(path, value))
    (difference,) = result.differences
    assert (difference.kind, difference.step, difference.field, difference.cause) == ("input", 1, field, cause)
    assert result.verdict.exit_code == 1


def test_the_same_tools_in_another_order_are_told_as_that() -> None:
    look, find = REQUEST["tools"][0], {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}
    tape = recorded(ask, _edited(["tools"], [look, find]))
    difference = replayed(tape, ask, _edited(["tools"], [find, look])).differences[0]
    assert difference.cause == "the same tools are offered in another order than when the run was recorded"
    difference = replayed(tape, ask, _edited(["tools"], [find])).differences[0]
    assert "order than" not in (difference.cause or "")
