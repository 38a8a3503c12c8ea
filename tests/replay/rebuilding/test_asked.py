from typing import Any

import pytest

from fixtures.runs.spans import agent, asking, chat, own, own_root, tool
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a


def steps(*calls: Any, asked: str) -> Any:
    spans = [agent(1, end=100), chat(2, 1, start=1, end=5, attributes={a.GEN_AI_OUTPUT_MESSAGES: asked}), *calls]
    (run,) = build_runs(spans)
    return [step for step in run.steps if step.kind == "tool_call"]


@pytest.mark.parametrize("recorded", ["Paris", None, '{"args": ["Paris"], "kwargs": {}}'])
def test_what_the_record_lacks_is_what_the_model_asked_for(recorded: str | None) -> None:
    attributes = {a.GEN_AI_TOOL_CALL_ARGUMENTS: recorded}
    (step,) = steps(tool(3, 1, start=6, args=None, attributes=attributes), asked=asking(("c1", "search", {"city": "Paris"})))
    assert step.input == {"arguments": {"city": "Paris"}}
    assert step.typed_input == '{"city":"Paris"}'
    assert (step.grade, step.requested_by) == ("semantic", 1)
    assert [reason.code for reason in step.reasons if reason.code.startswith("input")] == ["input-as-asked"]


def test_two_calls_of_one_tool_get_their_own(  # B31
) -> None:
    calls = [tool(3, 1, start=6, args="Oslo"), tool(4, 1, start=7, args="Paris", call="c1")]
    made = steps(*calls, asked=asking(("c1", "search", {"city": "Paris"}), ("c2", "search", {"city": "Oslo"})))
    assert [step.input["arguments"]["city"] for step in made] == ["Oslo", "Paris"]


@pytest.mark.parametrize("args", ['{"city": "Rome"}', "[]", "Paris and Oslo", ""])
def test_what_the_record_has_is_kept(args: str) -> None:
    (step,) = steps(tool(3, 1, start=6, call="c1", args=args), asked=asking(("c1", "search", {"city": "Paris"})))
    assert step.input == {"arguments": {"city": "Rome"} if args.startswith("{") else [] if args == "[]" else args}
    assert "input-as-asked" not in {reason.code for reason in step.reasons}


def test_a_result_that_is_missing_stays_missing() -> None:
    (step,) = steps(tool(3, 1, start=6, call="c1", args=None, result=None), asked=asking(("c1", "search", {"city": "Paris"})))
    assert (step.input, step.output, step.grade) == ({"arguments": {"city": "Paris"}}, None, "structure")


def test_our_own_records_are_never_completed() -> None:
    model = own(2, 1, "model_call", seq=1, attributes={a.GEN_AI_OUTPUT_MESSAGES: asking(("c1", "search", {"q": 1})), a.STEP_PATH: "/a"})
    call = own(3, 1, "tool_call", seq=2, attributes={a.STEP_NAME: "search", a.GEN_AI_TOOL_CALL_ID: "c1", a.STEP_PATH: "/b"})
    (run,) = build_runs([own_root(1, seq=0), model, call])
    assert run.steps[1].input is None
