"""Runs that end with results which no model was told; what may be, and may be lost, is said and is no gap."""

import json
from typing import Any

import pytest

from fixtures.runs.spans import agent, chat, tool
from spanreplay.replay.rebuilding.completeness import gaps
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.rebuilding.unread_results import unread_results
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import Record


def parts(*made: dict[str, Any]) -> str:
    return json.dumps([{"role": "assistant", "parts": list(made)}])


def say(content: str) -> dict[str, Any]:
    return {"type": "text", "content": content}


ASKS = {"type": "tool_call", "id": "c1", "name": "search", "arguments": {}}
FIRST = chat(2, 1, start=10, attributes={a.GEN_AI_OUTPUT_MESSAGES: parts(ASKS)})
RAN = tool(3, 1, start=20, call="c1", result='"rain in the north"')
SECOND = chat(4, 1, start=40, attributes={a.GEN_AI_OUTPUT_MESSAGES: parts(say("It rains."))})


def found(*records: Record) -> tuple[list[str], list[int]]:
    """The codes of the gaps, and the steps of the remarks."""
    runs = build_runs(records)
    listed = gaps(runs, records)
    return [gap.code for one in listed.values() for gap in one], [remark.step for remark in unread_results(runs, listed)]


def root(answer: str | None = None, **more: Any) -> Record:
    return agent(1, end=100, attributes={} if answer is None else {a.GEN_AI_OUTPUT_MESSAGES: parts(say(answer))}, **more)


@pytest.mark.parametrize(
    ("records", "gap", "steps"),
    [
        ((root(), FIRST, RAN, SECOND), [], []),
        ((root(), FIRST, RAN), [], [2]),
        ((root("rain in the north"), FIRST, RAN), [], []),
        ((root("Take an umbrella, and do not forget the boots."), FIRST, RAN), ["answer-without-span"], []),
        ((root(status=2), FIRST, RAN), [], []),
        ((root(), FIRST), ["call-not-run"], []),
    ],
    ids=["read", "unread", "the tool's result is the answer", "an answer of nobody", "failed", "the tool is lost"],
)
def test_what_is_said_of_an_ending(records: tuple[Record, ...], gap: list[str], steps: list[int]) -> None:
    assert found(*records) == (gap, steps)


def test_a_call_that_was_asked_for_in_words_counts_too() -> None:
    first = chat(2, 1, start=10, attributes={a.GEN_AI_OUTPUT_MESSAGES: parts(say("next_tool: search"))})
    assert found(root(), first, tool(3, 1, start=20)) == ([], [2])
    assert found(root(), first, tool(3, 1, name="store", start=20)) == ([], [])


def test_a_remark_says_which_run_and_step() -> None:
    runs = build_runs([root(), FIRST, RAN])
    (remark,) = unread_results(runs, {})
    assert remark.to_json().items() >= {"code": "unread-results", "runs": [runs[0].run_id], "step": 2}.items()
    assert "step 2, which no model here was told" in remark.detail
