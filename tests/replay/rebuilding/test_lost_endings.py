"""What an agent's own span, and what ran for it, show of calls of a model that are in no span; each run is whole with that call."""

import json
from dataclasses import replace
from typing import Any

import pytest

from fixtures.runs.spans import agent, chat, tool
from spanreplay.replay.rebuilding.completeness import gaps
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import Record, SpanRecord

ANSWER = "It will rain in the north, and the south stays dry until Friday."
ASKS = {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": "weather"}}


def codes(*records: Record) -> list[str]:
    runs = build_runs(records)
    return [gap.code for listed in gaps(runs, records).values() for gap in listed]


def told(of: SpanRecord, *, asked: Any = None, answered: Any = None, **more: Any) -> SpanRecord:
    """A span with these messages."""
    attributes: dict[str, Any] = {**of.attributes, **more}
    if asked is not None:
        attributes[a.GEN_AI_INPUT_MESSAGES] = json.dumps(asked)
    if answered is not None:
        attributes[a.GEN_AI_OUTPUT_MESSAGES] = json.dumps([{"role": "assistant", "parts": answered}])
    return replace(of, attributes=attributes)


def text(content: str) -> list[Any]:
    return [{"type": "text", "content": content}]


ASKED = [{"role": "user", "parts": text("How is the weather?")}]
TOLD = [
    *ASKED,
    {"role": "assistant", "parts": [ASKS]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "rain, dry"}]},
]
FIRST = told(chat(2, 1, start=10), asked=ASKED, answered=[ASKS])
LAST = told(chat(4, 1, start=40), asked=TOLD, answered=text(ANSWER))
TOOL = tool(3, 1, start=20, call="c1")


def ran(number: int, result: Any, **more: Any) -> SpanRecord:
    """The call that the first answer asks for, and what came of it."""
    return told(replace(TOOL, span_id=f"{number:016x}"), **{a.GEN_AI_TOOL_CALL_RESULT: json.dumps(result), **more})


def root(answer: str | None = ANSWER) -> SpanRecord:
    return told(agent(1, end=100), answered=None if answer is None else text(answer))


def test_an_answer_after_results_that_no_model_was_told_was_given_by_a_call_that_is_not_here() -> None:
    assert codes(root(), FIRST, ran(3, "rain, dry"), LAST) == []
    assert codes(root(), FIRST, ran(3, "rain, dry")) == ["answer-without-span"]
    assert codes(root(None), FIRST, ran(3, "rain, dry")) == [], "nothing says that there was an answer"


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (ANSWER, ANSWER),
        (ANSWER, {"summary": ANSWER}),
        (ANSWER, json.dumps({"north": "It will rain in the north", "south": "the south stays dry until Friday"})),
        ("In short: rain in the north.", "rain in the north"),
        (ANSWER, f"{ANSWER} And more of it."),
    ],
)
def test_an_answer_that_is_made_of_the_results_needs_no_model(answer: str, result: Any) -> None:
    assert codes(root(answer), FIRST, ran(3, result)) == []


def test_a_call_that_waits_for_somebody_ends_a_run_without_a_model() -> None:
    waits = ran(3, None, **{a.ERROR_TYPE: "CancelledError"})
    assert codes(root(), FIRST, waits) == []


def test_an_agent_that_used_tokens_asked_a_model() -> None:
    alone = told(agent(1, end=100), asked=ASKED, answered=text(ANSWER), **{"gen_ai.usage.output_tokens": 9})
    beside = told(agent(6, end=300))
    whole = [beside, told(replace(alone, parent_span_id=beside.span_id)), told(chat(2, 1, start=10), asked=ASKED, answered=text(ANSWER))]
    assert codes(*whole) == []
    assert codes(*whole[:2]) == ["answer-without-span"]
    silent = replace(whole[1], attributes={n: v for n, v in whole[1].attributes.items() if n != "gen_ai.usage.output_tokens"})
    assert codes(beside, silent) == [], "an agent may be code"


def test_an_id_that_no_answer_asked_by_is_that_of_a_lost_one() -> None:
    second = tool(5, 1, start=60, call="c2")
    again = told(chat(6, 1, start=50), asked=TOLD, answered=[{**ASKS, "id": "c2"}])
    assert codes(root(None), FIRST, ran(3, "x"), again, second) == []
    assert codes(root(None), FIRST, ran(3, "x"), second) == ["answer-without-span"]
    made_up = [replace(span, attributes={**span.attributes, a.GEN_AI_TOOL_CALL_ID: f"run-{n}"}) for n, span in enumerate((TOOL, second))]
    assert "answer-without-span" not in codes(root(None), FIRST, *made_up), "ids that no answer has are none of answers"


def test_agents_one_after_another_and_the_first_without_its_model() -> None:
    over = {"type": "tool_call", "id": "c9", "name": "transfer_to_forecaster", "arguments": {}}
    desk, forecaster = (
        replace(
            agent(number, 1, start=start, end=start + 40), attributes={**agent(number).attributes, a.GEN_AI_AGENT_NAME: name}, name=name
        )
        for number, start, name in ((2, 5, "desk"), (3, 50, "forecaster"))
    )
    hands = told(chat(4, 2, start=10), asked=ASKED, answered=[over])
    history = [
        *ASKED,
        {"role": "assistant", "parts": [over]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c9", "response": "forecaster"}]},
    ]
    answers = told(chat(5, 3, start=60), asked=history, answered=text(ANSWER))
    assert codes(agent(1, end=100), desk, forecaster, hands, answers) == []
    assert codes(agent(1, end=100), desk, forecaster, answers) == ["answer-without-span"]
    assert codes(agent(1, end=100), forecaster, answers) == [], "a talk that began before"


def node(number: int, start: int, answered: list[Any]) -> SpanRecord:
    return told(
        replace(agent(number, 1, start=start, end=start + 9), name="invoke_agent node"), answered=answered, **{a.GEN_AI_AGENT_NAME: "node"}
    )


def test_an_agent_that_asked_a_model_each_time_but_once() -> None:
    nodes = [node(2, 10, [ASKS]), node(5, 40, [{**ASKS, "id": "c2"}]), node(8, 70, text(ANSWER))]
    calls = [told(chat(3 * n, 3 * n - 1, start=30 * n - 19), asked=[*ASKED, *TOLD[1:] * (n - 1)], answered=[]) for n in (1, 2, 3)]
    answers = [
        told(call, answered=json.loads(str(of.attributes[a.GEN_AI_OUTPUT_MESSAGES]))[0]["parts"])
        for call, of in zip(calls, nodes, strict=True)
    ]
    tools = [tool(4, 1, start=22, call="c1"), tool(7, 1, start=55, call="c2")]
    assert "answer-without-span" not in codes(agent(1, end=100), *nodes, *answers, *tools)
    assert "answer-without-span" in codes(agent(1, end=100), *nodes, *answers[:2], *tools)
    says_nothing = replace(nodes[2], attributes={n: v for n, v in nodes[2].attributes.items() if n != a.GEN_AI_OUTPUT_MESSAGES})
    assert "answer-without-span" not in codes(agent(1, end=100), *nodes[:2], says_nothing, *answers[:2], *tools)


NESTED = [
    told(agent(1, end=1000), answered=text("All in all: take an umbrella along.")),
    told(chat(2, 1, start=10), asked=ASKED, answered=[{**ASKS, "id": "c0", "name": "ask"}]),
    tool(3, 1, name="ask", start=20, end=500, call="c0", result=ANSWER),
    told(chat(4, 3, start=30), asked=ASKED, answered=[ASKS]),
    tool(5, 3, start=40, call="c1", result="rain, dry"),
    told(chat(6, 3, start=60), asked=TOLD, answered=text(ANSWER)),
    told(
        chat(7, 1, start=600),
        asked=[
            *ASKED,
            {"role": "assistant", "parts": [{**ASKS, "id": "c0", "name": "ask"}]},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c0", "response": ANSWER}]},
        ],
        answered=text("All in all: take an umbrella along."),
    ),
]
"""An agent that asks another one, which is inside a tool."""


def test_agents_inside_tools_are_looked_at_apart() -> None:
    assert codes(*NESTED) == []
    for lost in (2, 4, 6, 7):
        left = [span for span in NESTED if span.span_id != f"{lost:016x}"]
        assert codes(*left) == ["answer-without-span"], lost


@pytest.mark.parametrize("result", [["rain, dry"], {"result": "found: rain, dry"}, {"done": True}, "short", None])
def test_a_tool_that_gives_what_another_tool_gave_needs_no_last_word(result: Any) -> None:
    changed = [ran(3, result, **{**NESTED[2].attributes, a.GEN_AI_TOOL_CALL_RESULT: json.dumps(result)})]
    around = replace(NESTED[2], attributes=changed[0].attributes)
    assert codes(NESTED[0], NESTED[1], around, *NESTED[3:5], NESTED[6]) == []


def spent(of: SpanRecord, given: int, made: int) -> SpanRecord:
    return replace(of, attributes={**of.attributes, a.GEN_AI_USAGE_INPUT_TOKENS: given, a.GEN_AI_USAGE_OUTPUT_TOKENS: made})


def test_an_agent_that_ends_with_a_result_and_used_more_tokens_than_its_calls_asked_once_more() -> None:
    asked, ended, team = spent(FIRST, 10, 5), ran(3, ANSWER), agent(9, name="team", end=200)
    inside = replace(root(), parent_span_id=team.span_id)
    assert codes(team, spent(inside, 30, 10), asked, ended) == ["answer-without-span"]
    assert codes(team, spent(inside, 10, 5), asked, ended) == [], "all of them"
    assert codes(team, spent(inside, 30, 5), asked, ended) == [], "no other answer"
    assert codes(team, spent(replace(root(None), parent_span_id=team.span_id), 30, 10), asked, ended) == [], (
        "it may have ended without a word"
    )


def test_an_id_that_no_answer_asked_by_is_one_too_where_answers_have_none() -> None:
    unnamed = told(chat(2, 1, start=10), asked=ASKED, answered=[{**ASKS, "id": None}])
    first = told(tool(3, 1, start=20, call="c1", args='{"q": "weather"}'), **{a.GEN_AI_TOOL_CALL_RESULT: '"rain, dry"'})
    second = told(tool(5, 1, start=30, call="c2", args='{"q": "wind"}'), **{a.GEN_AI_TOOL_CALL_RESULT: '"calm"'})
    last = told(chat(4, 1, start=40), answered=text(ANSWER))
    assert codes(root(), unnamed, first, last) == []
    assert codes(root(), unnamed, first, second, last) == ["answer-without-span"]
