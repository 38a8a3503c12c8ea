"""What is known of a recorded run is computed once for the run, and what one replay takes of it is none of the next one's business."""

import gc

from spanreplay.replay.reexecution import index
from spanreplay.replay.reexecution.forms import comparable
from spanreplay.replay.reexecution.index import index_of
from spanreplay.replay.reexecution.matched import Found
from spanreplay.replay.reexecution.matching import RecordedRun
from support.handmade import run, step

T0 = "tool_call:t#0"


def test_replays_of_one_run_share_its_index_and_nothing_else() -> None:
    recorded = run(step(1, T0, "1"), step(2, "tool_call:t#1", "2"))
    first, second = RecordedRun(recorded), RecordedRun(recorded)
    assert first.index is second.index is index_of(recorded)
    first.used.add(1)
    assert isinstance(second.match("tool_call", "t", T0, comparable("1")), Found)
    assert index_of(recorded, "another process") is not first.index


def test_an_index_goes_with_its_run() -> None:
    recorded = run(step(1, T0, "1"))
    key = id(recorded)
    index_of(recorded)
    assert key in index._indexes
    del recorded
    gc.collect()
    assert key not in index._indexes


def test_an_input_as_it_stands_needs_no_other_form() -> None:
    made = index_of(run(step(1, T0, '{"b": 1, "a": 2}')))
    there = made.by_path[T0]
    assert made.asked("tool_call", "t", '{"a":2,"b":1}', there) == made.asked("tool_call", "t", '{"b": 1, "a":2}', there) == '{"a":2,"b":1}'
    assert made.asked("tool_call", "t", '{"a":2}', there) == '{"a":2}'
