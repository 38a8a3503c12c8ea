"""What is left of cut steps: what later requests tell, else the beginning; never an exception, whatever was recorded."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.runs.spans import chat
from spanreplay.replay.model import Run, Step
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.reexecution.salvage import salvaged
from support.handmade import step


def run_of(*steps: Step) -> Run:
    (made,) = build_runs([chat(1)])
    return replace(made, steps=steps)


def cut(seq: int, kind: str, **sides: Any) -> Step:
    return step(seq, None, "", kind=kind, name="t", grade="incomplete", dialect="gen_ai", **sides)


def asked(*messages: Any) -> dict[str, Any]:
    return {"messages": list(messages), "system": [], "tools": [], "params": {}}


USER = {"role": "user", "parts": [{"type": "text", "content": "Paris?"}]}
CALLED = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "t", "arguments": {"city": "Paris", "days": 3}}]}
GIVEN = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": '{"celsius": 21}'}]}


def test_what_a_later_request_tells_is_better_than_the_beginning() -> None:
    model = cut(1, "model_call", input=asked(USER), output={"messages": None, "finish": None, "raw": '[{"role": "assi'})
    called = cut(2, "tool_call", call_id="c", input={"arguments": '{"city": "Pa'}, output={"result": '{"cel'})
    after = step(3, None, "", kind="model_call", name="t", input=asked(USER, CALLED, GIVEN), grade="semantic")
    run, goes_on = salvaged(run_of(model, called, after))
    assert run.steps[0].output == {"messages": [CALLED], "finish": None}
    assert run.steps[1].input == {"arguments": {"city": "Paris", "days": 3}}
    assert run.steps[1].output == {"result": {"celsius": 21}}
    assert goes_on == frozenset()


def test_else_the_beginning_and_that_it_goes_on() -> None:
    model = cut(1, "model_call", input={**asked(), "messages": None, "raw": json.dumps([USER, CALLED])[:-30]}, output=None)
    called = cut(2, "tool_call", input={"arguments": '{"city": "Paris", "da'}, output={"result": "[1, 2, 3"})
    run, goes_on = salvaged(run_of(model, called))
    assert run.steps[0].input["messages"][0] == USER
    assert (run.steps[1].input, run.steps[1].output) == ({"arguments": {"city": "Paris"}}, {"result": [1, 2]})
    assert goes_on == {1, 2}


@pytest.mark.parametrize("call_id", ["c", None])
def test_a_later_request_has_what_the_tool_gives_in_place_of_the_cut_text(call_id: str | None) -> None:
    text = '{"celsius": [2, 1'
    called = cut(1, "tool_call", call_id=call_id, input={"arguments": {}}, output={"result": text})
    shorter = text[:-1] if call_id else text
    told = {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": shorter}, "x"]}
    other = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "d", "response": '{"f'}]}
    after = step(2, None, "", kind="model_call", name="t", input=asked(USER, told, other), grade="semantic")
    run, _ = salvaged(run_of(called, after))
    assert run.steps[0].output == {"result": {"celsius": [2]}}
    answered = {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": {"celsius": [2]}}, "x"]}
    assert run.steps[1].input == asked(USER, answered, other)


@pytest.mark.parametrize("grade", ["exact", "semantic", "structure"])
def test_what_is_whole_is_left_alone(grade: str) -> None:
    given_as_text = step(1, None, "", kind="tool_call", name="t", input={"arguments": '{"a": '}, output={"result": "[1,"}, grade=grade)
    assert salvaged(run_of(given_as_text)) == (run_of(given_as_text), frozenset())


CUT = ['{"a": [', '[{"role": "user", "par', '["x"', "{"]
KEYS = ["messages", "parts", "content", "raw", "id"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4) | st.sampled_from(CUT),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=80, deadline=None)
@given(JSON, JSON)
def test_nothing_that_was_recorded_makes_it_fail(one: Any, other: Any) -> None:
    steps = [
        cut(1, "model_call", input=one, output=other),
        cut(2, "model_call", input={"messages": one, "raw": other}, output={"messages": [other], "raw": one}),
        cut(3, "tool_call", call_id="c", input={"arguments": one}, output={"result": other}),
        cut(4, "tool_call", input=one, output=other),
    ]
    assert [made.seq for made in salvaged(run_of(*steps))[0].steps] == [1, 2, 3, 4]
