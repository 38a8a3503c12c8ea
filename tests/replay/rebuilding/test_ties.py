"""Calls that began and ended at the same time lie in the order in which a model asked for them."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.runs.spans import agent, asking, chat, span, tool
from spanreplay.replay.model import Run
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord
from support.size import FULL

START, END = 5_000_000, 9_000_000


def asks(number: int, *calls: tuple[str | None, str, Any], start: int = 1_000_000) -> SpanRecord:
    return chat(number, 1, start=start, end=start + 1_000_000, attributes={a.GEN_AI_OUTPUT_MESSAGES: asking(*calls)})


def call(number: int, place: int, *, ids: bool = True, parent: int = 1, **more: Any) -> SpanRecord:
    more = {"start": START, "end": END, **more}
    return tool(number, parent, name="look", call=f"call_{place}" if ids else None, args=f'{{"n": {place}}}', **more)


def requests(places: int, *, first: int = 0) -> list[tuple[str, str, Any]]:
    return [(f"call_{place}", "look", {"n": place}) for place in range(first, first + places)]


def places(run: Run) -> list[int]:
    return [step.input["arguments"]["n"] for step in run.steps if step.kind == "tool_call"]


def built(*records: SpanRecord) -> Run:
    (run,) = build_runs(records)
    return run


@settings(max_examples=200 if FULL else 30, deadline=None)
@given(st.permutations(range(10, 16)), st.booleans(), st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_the_request_is_theirs_whatever_their_ids_and_however_the_records_come(
    numbers: list[int], ids: bool, framed: bool, chance: random.Random
) -> None:
    """With call ids or without, and also where each is in a span of its own that is no step."""
    records = [agent(1, start=0, end=20_000_000), asks(2, *requests(len(numbers)))]
    for place, number in enumerate(numbers):
        if framed:
            records.append(span(number + 100 - place * 7, 1, start=START, end=END))
        records.append(call(number, place, ids=ids, parent=number + 100 - place * 7 if framed else 1))
    chance.shuffle(records)
    run = built(*records)
    assert places(run) == list(range(len(numbers)))
    assert all(step.requested_by == 1 for step in run.steps if step.kind == "tool_call")
    assert all(len(step.overlaps) == len(numbers) - 1 for step in run.steps if step.kind == "tool_call")


@settings(max_examples=100 if FULL else 20, deadline=None)
@given(st.permutations(range(10, 16)), st.randoms(use_true_random=False))
def test_of_two_models_each_has_its_own_order_and_the_whole_is_the_same_however_the_records_come(
    numbers: list[int], chance: random.Random
) -> None:
    records = [agent(1, start=0, end=20_000_000), asks(2, *requests(3)), asks(3, *requests(3, first=3), start=1_500_000)]
    records += [call(number, place) for place, number in enumerate(numbers)]
    run = built(*records)
    found = places(run)
    assert [place for place in found if place < 3] == [0, 1, 2]
    assert [place for place in found if place >= 3] == [3, 4, 5]
    chance.shuffle(records)
    assert built(*records).steps == run.steps


@pytest.mark.parametrize(
    ("later", "earlier"),
    [({"end": END + 1}, {}), ({"start": START + 1}, {}), ({}, {"start": START - 1}), ({}, {"end": END - 1})],
    ids=["ends-later", "starts-later", "starts-earlier", "ends-earlier"],
)
def test_the_clock_says_more_than_the_request(later: dict[str, Any], earlier: dict[str, Any]) -> None:
    run = built(agent(1, start=0, end=20_000_000), asks(2, *requests(2)), call(9, 0, **later), call(4, 1, **earlier))
    assert places(run) == [1, 0]


def test_calls_that_nobody_asked_for_lie_by_their_span_ids() -> None:
    run = built(agent(1, start=0, end=20_000_000), asks(2), call(9, 0), call(4, 1))
    assert places(run) == [1, 0]


def test_two_attempts_of_one_request_stay_as_they_are() -> None:
    records = [agent(1, start=0, end=20_000_000), asks(2, *requests(2)), call(9, 0), call(8, 0), call(4, 1)]
    run = built(*records)
    assert places(run) == [0, 0, 1]
    assert built(*records[::-1]).steps == run.steps


def test_what_a_process_counted_is_its_order() -> None:
    counted = [
        call(9, 0, attributes={a.PROCESS_ID: "p", a.STEP_SEQ_START: 2}),
        call(4, 1, attributes={a.PROCESS_ID: "p", a.STEP_SEQ_START: 1}),
    ]
    assert places(built(agent(1, start=0, end=20_000_000), asks(2, *requests(2)), *counted)) == [1, 0]


def test_a_call_that_runs_inside_another_comes_after_it_whatever_was_asked_for_first() -> None:
    records = [agent(1, start=0, end=20_000_000), asks(2, *requests(2)), call(4, 1), call(9, 0, parent=4)]
    for order in (records, records[::-1]):
        assert places(built(*order)) == [1, 0]
