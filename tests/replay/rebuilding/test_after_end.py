"""Calls that began when what they are inside of was over: they keep their place, and say so."""

import pytest

from fixtures.runs.spans import agent, asking, chat, own, said, tool
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import KIND_CONSUMER, KIND_PRODUCER, Record


def reasons(*records: Record) -> list[tuple[int | None, str]]:
    (run,) = build_runs(records)
    return [(reason.step, reason.code) for reason in run.grade_reasons if reason.code in ("after-end", "clock-skew")]


ROOT = agent(1, start=0, end=100)


@pytest.mark.parametrize(
    ("records", "wanted"),
    [
        ([ROOT, chat(2, 1, start=10, end=20), tool(3, 1, start=150, end=160)], [(2, "after-end")]),
        ([ROOT, chat(2, 1, start=10, end=20), tool(3, 1, start=100, end=160)], []),
        ([ROOT, tool(2, 1, start=150, end=190), chat(3, 2, start=160, end=170)], [(1, "after-end"), (2, "after-end")]),
        ([agent(1, start=0, end=None), tool(3, 1, start=150, end=160)], []),
        ([agent(1, start=0, end=100, kind=KIND_PRODUCER), tool(3, 1, start=150, end=160, kind=KIND_CONSUMER)], []),
        ([ROOT, own(3, 1, start=150, end=160, run=None)], []),
    ],
    ids=["after", "at the end", "inside what came after", "never ended", "from a queue", "ours"],
)
def test_what_began_after_the_end(records: list[Record], wanted: list[tuple[int, str]]) -> None:
    assert reasons(*records) == wanted


def test_what_ids_put_right_is_not_told_again() -> None:
    asks = chat(2, 1, start=10, end=20, attributes={a.GEN_AI_OUTPUT_MESSAGES: asking(("c1", "search", {}))})
    told = f'{said("hello")[:-1]}, {{"role": "tool", "parts": [{{"type": "tool_call_response", "id": "c1", "response": "found"}}]}}]'
    last = chat(4, 1, start=40, end=50, attributes={a.GEN_AI_INPUT_MESSAGES: told})
    assert reasons(ROOT, asks, tool(3, 1, call="c1", start=150, end=160), last) == [(2, "clock-skew")]
