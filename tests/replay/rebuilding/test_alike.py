"""Calls beside each other that say the same: they stay two, and the run says that they may be one."""

from typing import Any

import pytest

from fixtures.runs.spans import agent, chat, own, tool
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import Record

ROOT = agent(1, start=0, end=90_000)


def doubts(*records: Record) -> list[str]:
    (run,) = build_runs([ROOT, *records])
    return [reason.detail for reason in run.grade_reasons if reason.code == "maybe-twice"]


def answered(number: int, start: int, end: int, response: str | None = "r1", parent: int = 1, **more: Any) -> Record:
    attributes = {} if response is None else {a.GEN_AI_RESPONSE_ID: response}
    return chat(number, parent, start=start, end=end, attributes=attributes, **more)


def test_copies_under_other_ids_stay_and_are_told() -> None:
    records = [answered(2, 10, 20), answered(3, 10, 20), tool(4, 1, call="c1", start=30, end=40), tool(5, 1, call="c1", start=31, end=41)]
    (run,) = build_runs([ROOT, *records])
    assert len(run.steps) == 4
    (detail,) = doubts(*records)
    assert detail.startswith("steps 1 and 2, 3 and 4 say the same")


@pytest.mark.parametrize(
    ("records", "told"),
    [
        ([answered(2, 10, 20, None), answered(3, 10, 20, None)], True),
        ([answered(2, 10, 20, None), answered(3, 10, 21, None)], False),
        ([answered(2, 10_000, 20_000, None), answered(3, 10_000, 20_000, None)], False),
        ([answered(2, 10, 20), answered(3, 10, 20, "r2")], False),
        ([answered(2, 10, 20), answered(3, 20, 30)], False),
        ([answered(2, 10, 20), answered(3, 10, 20, model="other")], False),
        ([answered(2, 10, 20), answered(3, 10, 20, parent=4), tool(4, 1, start=9, end=40)], False),
        ([tool(2, 1, call="c1", start=10, end=20), tool(3, 1, call="c1", start=10, end=20, args='{"q": 1}')], False),
        ([own(2, 1, start=10, end=20), own(3, 1, start=10, end=20)], False),
    ],
    ids=[
        "exact times",
        "another end",
        "whole microseconds",
        "another id",
        "later",
        "another model",
        "elsewhere",
        "other arguments",
        "ours",
    ],
)
def test_what_is_told(records: list[Record], told: bool) -> None:
    assert bool(doubts(*records)) is told
