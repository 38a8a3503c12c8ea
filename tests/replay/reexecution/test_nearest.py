"""The nearest recorded calls: named where some are nearer than the rest, left out where all are as far."""

import json

import pytest

from spanreplay.replay.reexecution.matching import RecordedRun
from spanreplay.replay.reexecution.nearest import nearest
from support.handmade import run, step


def named(asked: str, *recorded: str) -> list[int]:
    made = RecordedRun(run(*(step(n, f"tool_call:t#{n - 1}", json.dumps({"x": text, "y": 1})) for n, text in enumerate(recorded, 1))))
    return [near["step"] for near in nearest(made, made.steps, json.dumps({"x": asked, "y": 1}))]


@pytest.mark.parametrize(
    ("asked", "recorded", "found"),
    [
        ("more", ("same",) * 9, []),
        ("more", ("same", "other"), [1, 2]),
        ("task 3 had a!", tuple(f"task {n} had {'abcdefghi'[n - 1]}" for n in range(1, 10)), [3]),
        ("a question of another sort", (*(f"{n} had" for n in range(8)), "a question of some sort"), [9]),
        ("same", ("same",) * 9, [1, 2, 3]),
        ("same", (*("other",) * 9, "same"), [10]),
    ],
)
def test_only_what_is_nearer_than_the_rest_is_named(asked: str, recorded: tuple[str, ...], found: list[int]) -> None:
    assert named(asked, *recorded) == found
