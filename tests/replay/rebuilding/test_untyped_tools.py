"""Spans that do not say that they are tools, and are where a model asked for just that."""

import json
from typing import Any

import pytest

from fixtures.runs.spans import agent, asking, chat, span, tool
from spanreplay.replay.model import Run
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import Record, SpanRecord

PARIS = {"city": "Paris"}


def asks(number: int, *calls: tuple[str | None, str, Any], parent: int = 1, **more: Any) -> SpanRecord:
    return chat(number, parent, start=more.pop("start", number * 100), attributes={a.GEN_AI_OUTPUT_MESSAGES: asking(*calls)}, **more)


def untyped(number: int, given: Any = PARIS, parent: int = 1, kind: str = "span", name: str = "weather", **more: Any) -> SpanRecord:
    told = {} if given is None else {"langfuse.observation.input": given if isinstance(given, str) else json.dumps(given)}
    attributes = {"langfuse.observation.type": kind, "langfuse.observation.output": "warm", **told}
    return span(number, parent, name=name, attributes=attributes, **{"start": number * 100, **more})


def one(*records: Record) -> Run:
    (run,) = build_runs([agent(1, end=10_000), *records])
    return run


def inferred(run: Run) -> list[int]:
    found = [step for step in run.steps if "tool-inferred" in {reason.code for reason in step.reasons}]
    assert all(step.kind == "tool_call" and step.requested_by is not None for step in found)
    return [int(step.span_id, 16) for step in found]


@pytest.mark.parametrize(
    "given",
    [PARIS, {"args": [], "kwargs": PARIS}, {"args": ["Paris"], "kwargs": {}}, "{'city': 'Paris'}"],
)
def test_what_a_model_asked_for_just_before_is_a_tool(given: Any) -> None:
    run = one(asks(2, ("c1", "weather", PARIS)), untyped(3, given), chat(4, 1, start=400))
    assert inferred(run) == [3]
    call = run.steps[1]
    assert (call.name, call.call_id, call.requested_by, call.output, call.grade) == ("weather", "c1", 1, {"result": "warm"}, "semantic")
    assert "call-not-run" not in {reason.code for reason in run.grade_reasons}


@pytest.mark.parametrize("given", [{}, None])
def test_between_frames_and_without_arguments_too(given: Any) -> None:
    frames = [untyped(n, None, kind="chain", name="node", start=n * 100, end=n * 100 + 90) for n in (5, 6)]
    asked = asks(15, ("c1", "now", {}), parent=5, start=510)
    assert inferred(one(*frames, asked, untyped(7, given, name="now", parent=6, start=610))) == [7]


def test_each_request_is_answered_once_and_by_the_outermost() -> None:
    twice = asks(2, ("c1", "weather", PARIS), ("c2", "weather", PARIS))
    assert inferred(one(twice, *(untyped(n) for n in (3, 4, 5)))) == [3, 4]
    nested = [untyped(3, end=350), untyped(4, parent=3, start=310)]
    assert inferred(one(asks(2, ("c1", "weather", PARIS)), *nested)) == [3]


def test_what_ran_inside_such_a_tool_does_not_come_between() -> None:
    both = asks(2, ("c1", "weather", PARIS), ("c2", "weather", {"city": "Oslo"}))
    inner = chat(4, 3, start=310)
    assert inferred(one(both, untyped(3, end=390), inner, untyped(5, {"city": "Oslo"}))) == [3, 5]


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([untyped(3)], id="nobody asked"),
        pytest.param([asks(2, ("c1", "weather", PARIS)), untyped(3, {"city": "Oslo"})], id="other arguments"),
        pytest.param([asks(2, ("c1", "weather", PARIS)), untyped(3, None)], id="no arguments"),
        pytest.param([asks(2, ("c1", "weather", PARIS)), untyped(3, name="my_weather")], id="another name"),
        pytest.param([asks(2, ("c1", "weather", PARIS)), untyped(3, kind="chain")], id="a type"),
        pytest.param([untyped(3, start=100), asks(2, ("c1", "weather", PARIS))], id="before it was asked for"),
        pytest.param([asks(2, ("c1", "weather", PARIS), end=900), untyped(3)], id="while it was asked for"),
        pytest.param([asks(2, ("c1", "weather", PARIS)), chat(3, 1, start=300), untyped(4)], id="a model call between"),
        pytest.param([asks(2, ("c1", "weather", PARIS)), agent(5, 1, start=250, end=900), untyped(3, parent=5)], id="another agent"),
        pytest.param([agent(5, 1, start=150, end=290), asks(2, ("c1", "weather", PARIS), parent=5), untyped(3)], id="an agent's inside"),
        pytest.param(
            [asks(2, ("c1", "weather", PARIS)), untyped(3), tool(4, 1, name="weather", args=json.dumps(PARIS), start=320)], id="a tool span"
        ),
        pytest.param(
            [asks(2, ("c1", "weather", PARIS)), untyped(3), tool(4, 1, name="weather", args=None, call="c1", start=900)], id="its id"
        ),
    ],
)
def test_anything_else_stays_what_it_was(records: list[Record]) -> None:
    run = one(*records)
    assert inferred(run) == []
    assert [step.span_id for step in run.steps if step.kind == "tool_call"] == [r.span_id for r in records if "execute_tool" in str(r)]


def test_a_call_again_that_says_what_it_is_does_not_hide_the_one_before_that_failed() -> None:
    again = tool(5, 1, name="weather", args=json.dumps(PARIS), call="c2", start=500)
    run = one(asks(2, ("c1", "weather", PARIS)), untyped(3), asks(4, ("c2", "weather", PARIS)), again)
    assert inferred(run) == [3]
    assert [step.call_id for step in run.steps if step.kind == "tool_call"] == ["c1", "c2"]


@pytest.mark.parametrize(
    ("name", "given", "response", "expected"),
    [
        ("weather", PARIS, "warm", [3]),
        ("weather", PARIS, "cold", []),
        ("weather", {"city": "Oslo"}, "warm", []),
        ("now", PARIS, "warm", []),
    ],
)
def test_what_the_next_model_call_was_told_of_is_a_tool_where_none_before_is_recorded(
    name: str, given: Any, response: str, expected: list[int]
) -> None:
    call = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": PARIS}
    told = [
        {"role": "assistant", "parts": [call]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": response}]},
    ]
    after = chat(4, 1, start=400, attributes={a.GEN_AI_INPUT_MESSAGES: json.dumps(told)})
    run = one(untyped(3, given, name=name), after)
    assert [int(step.span_id, 16) for step in run.steps if step.kind == "tool_call"] == expected
    assert inferred(one(asks(2, ("c9", "other", {})), untyped(3, given, name=name), after)) == [], "one before asked for something else"
