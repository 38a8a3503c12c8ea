"""Calls of tools that a model must have asked for in an answer that is not here; each run is whole with that answer."""

import json
from typing import Any

import pytest

from fixtures.runs.spans import agent, chat, tool
from spanreplay.replay.rebuilding.completeness import gaps
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import Record, SpanRecord

TOOLS = json.dumps([{"type": "function", "name": "search"}, {"type": "function", "name": "publish"}])
IN_WORDS = json.dumps([{"type": "text", "content": "You may call search(query) and publish(text)."}])


def gap_steps(*records: Record) -> list[int | None]:
    return [gap.step for listed in gaps(build_runs(records), records).values() for gap in listed]


def says(number: int, text: str, told: dict[str, str], **more: Any) -> SpanRecord:
    said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": text}]}])
    return chat(number, 1, attributes={a.GEN_AI_OUTPUT_MESSAGES: said, **told}, **more)


ROOT = agent(1, end=100)
SEARCH = tool(3, 1, name="search", start=20)
PUBLISH = tool(5, 1, name="publish", start=40)


@pytest.mark.parametrize(
    "told", [{a.GEN_AI_TOOL_DEFINITIONS: TOOLS}, {a.GEN_AI_SYSTEM_INSTRUCTIONS: IN_WORDS}], ids=["defined", "in words"]
)
def test_a_known_tool_that_no_answer_names_where_others_are_named(told: dict[str, str]) -> None:
    first, second, third = (
        says(number, text, told, start=start) for number, text, start in ((2, "search('x')", 10), (4, "publish('y')", 30), (6, "Done.", 50))
    )
    assert gap_steps(ROOT, first, SEARCH, second, PUBLISH, third) == []
    assert gap_steps(ROOT, first, SEARCH, PUBLISH, third) == [3]
    assert gap_steps(ROOT, SEARCH, second, PUBLISH, third) == [], "before any answer: what the program did first"
    assert gap_steps(ROOT, says(2, "Well.", told, start=10), SEARCH, PUBLISH, third) == [], "no answer here names any call"


def test_a_tool_of_the_program_or_of_another_tool_is_no_evidence() -> None:
    told = {a.GEN_AI_TOOL_DEFINITIONS: TOOLS}
    first, third = says(2, "search('x')", told, start=10), says(6, "Done.", told, start=50)
    assert gap_steps(ROOT, first, SEARCH, tool(5, 1, name="clean_up", start=40), third) == [], "no model knows it"
    assert gap_steps(ROOT, first, SEARCH, tool(5, 3, name="publish", start=22, end=25), third) == [], "inside another"


def test_an_id_that_stands_in_the_text_of_a_later_request_was_given_by_an_answer() -> None:
    shown = json.dumps([{"id": "call_n2Ha", "function": {"name": "search", "arguments": "{}"}}])

    def asks(number: int, *texts: str, start: int, answer: str) -> SpanRecord:
        told = json.dumps([{"role": "tool", "parts": [{"type": "text", "content": text}]} for text in texts])
        return says(number, answer, {a.GEN_AI_INPUT_MESSAGES: told}, start=start)

    first, last = asks(2, "q", start=10, answer=shown), asks(4, "q", shown, "rain", start=40, answer="It rains.")
    ran = tool(3, 1, name="search", call="call_n2Ha", start=20)
    assert gap_steps(ROOT, first, ran, last) == []
    assert gap_steps(ROOT, ran, last) == [2]
    assert gap_steps(ROOT, asks(2, "q", shown, start=10, answer="Wait."), ran, last) == [], "it was said before the call already"
