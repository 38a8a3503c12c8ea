"""What explains a difference."""

from dataclasses import replace
from typing import Any

import pytest

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Call
from spanreplay.content import codec
from spanreplay.instrumentation import prompt
from spanreplay.instrumentation.providers import openai_chat
from spanreplay.replay.reexecution.causes import NONE, explain
from spanreplay.replay.reexecution.ledger import Difference
from support.taped import recorded, replayed

REQUEST: dict[str, Any] = {
    "model": "m1",
    "temperature": 0,
    "messages": [{"role": "system", "content": "Be careful."}, {"role": "user", "content": "Hello"}],
    "tools": [
        {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}}
    ],
}


def ask(request: dict[str, Any]) -> None:
    scope = boundary.here()
    assert scope is not None
    prompt("greeter", "3", template="t")
    call = Call(
        kind="model_call",
        name=str(request["model"]),
        input=codec.encode({"body": request}),
        attributes=openai_chat.PROVIDER.request(request).attributes,
    )
    boundary.call(scope, call, lambda: None)


def _edited(path: list[Any], value: Any) -> dict[str, Any]:
    import copy

    made = copy.deepcopy(REQUEST)
    place: Any = made
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return made


@pytest.mark.parametrize(
    ("path", "value", "field", "cause"),
    [
        (["messages", 0, "content"], "Be generous.", "messages[0].content", "the prompt greeter 3 has changed since the run was recorded"),
        (["messages", 1, "content"], "Bye", "messages[1].content", NONE),
        (
            ["tools", 0, "function", "parameters", "properties", "x", "type"],
            "string",
            "tools[0].function.parameters.properties.x.type",
            "the schema of tool look has changed since the run was recorded",
        ),
        (["temperature"], 1, "temperature", "the model settings have changed since the run was recorded"),
    ],
)
def test_one_changed_value_of_a_model_call_is_found_and_explained(path: list[Any], value: Any, field: str, cause: str) -> None:
    tape = recorded(ask, REQUEST)
    assert replayed(tape, ask, REQUEST).equal
    result = replayed(tape, ask, _edited(path, value))
    (difference,) = result.differences
    assert (difference.kind, difference.step, difference.field, difference.cause) == ("input", 1, field, cause)
    assert result.verdict.exit_code == 1


def test_what_is_no_input_has_no_cause_and_a_cause_stays() -> None:
    other = Difference(kind="order", run_id=None, step=1, name="tool_call t")
    assert explain(other, []) is other
    given = replace(other, kind="input", field="x", cause="known")
    assert explain(given, []) is given
    assert explain(replace(other, kind="input", field="arguments.x"), []).cause == NONE
