"""A call that no answer asked for is said to be one, and is no gap: the program may have called the tool itself."""

import json
from typing import Any

import pytest

from fixtures.runs.spans import agent, asking, chat, tool
from spanreplay.replay.rebuilding.completeness import gaps
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.rebuilding.unasked_calls import unasked_calls
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import Record

SAID = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "It rains."}]}])
FIRST = chat(2, 1, start=10, attributes={a.GEN_AI_OUTPUT_MESSAGES: asking(("c1", "search", {}))})
RAN = tool(3, 1, start=20, call="c1")
SECOND = chat(4, 1, start=30, attributes={a.GEN_AI_OUTPUT_MESSAGES: asking(("c2", "store", {}))})
STORED = tool(5, 1, name="store", start=40)
LAST = chat(6, 1, start=50, attributes={a.GEN_AI_OUTPUT_MESSAGES: SAID})


def noted(*records: Record) -> list[tuple[int, str]]:
    every = [agent(1, end=100), *records]
    runs = build_runs(every)
    return [(one.step, one.name) for one in unasked_calls(runs, gaps(runs, every))]


def inside(number: int, parent: int, **more: Any) -> Record:
    return tool(number, parent, name="helper", start=41, **more)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ((FIRST, RAN, SECOND, STORED, LAST), []),
        ((FIRST, RAN, STORED, LAST), [(3, "store")]),
        ((RAN, SECOND, STORED, LAST), []),
        ((FIRST, RAN, SECOND, STORED, inside(7, 5), LAST), []),
        ((FIRST, RAN, STORED, inside(7, 1), inside(8, 1), LAST), []),
    ],
    ids=["whole", "an answer is lost", "before any answer", "inside a tool", "as many calls of the program's"],
)
def test_a_call_that_no_answer_asked_for(records: tuple[Record, ...], expected: list[tuple[int, str]]) -> None:
    assert noted(*records) == expected


def test_an_answer_that_is_not_here_whole_may_have_asked() -> None:
    unknown = chat(4, 1, start=30, content=False)
    assert noted(FIRST, RAN, unknown, STORED, LAST) == []
