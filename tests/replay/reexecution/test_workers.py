"""Where workers make one call for items that nothing tells apart, the difference that comes of it says so."""

from dataclasses import replace

import pytest

from spanreplay.boundary.clock_reads import MOST_OF_ONE, ClockReads
from spanreplay.replay.reexecution.workers import timed_items, tireless_reader, unnamed_items
from support.handmade import run, step


@pytest.mark.parametrize(
    ("calls", "found"),
    [
        ((("~w#0", "1"), ("~w#1", "1"), ("~w#0", "1")), True),
        ((("~w#0", "1"), ("~w#1", "2"), ("~w#0", "3")), False),  # the input tells
        ((("~w#0", "1"), ("~w#1", "1")), False),  # one call each: the path tells
        ((("~w#0", "1"), ("~w#0", "1")), False),  # nobody else
        ((("~w#0/@a#0", "1"), ("~w#1/@b#0", "1"), ("~w#0/@c#0", "1")), False),  # named
    ],
)
def test_which_calls_are_for_items_that_nothing_tells_apart(calls: tuple[tuple[str, str], ...], found: bool) -> None:
    counts: dict[str, int] = {}
    steps = []
    for seq, (scope, asked) in enumerate(calls, 1):
        number = counts[scope] = counts.get(scope, -1) + 1
        steps.append(step(seq, f"{scope}/tool_call:t#{number}", asked, typed_result=str(seq)))
    assert unnamed_items(run(*steps)) == ("tool_call t" if found else None)


@pytest.mark.parametrize(
    ("scopes", "reads", "timed", "tireless"),
    [
        (("~w#0", "~w#1", "~w#0"), 2, True, False),
        (("~w#0", "~w#1", "~w#0"), 0, False, False),
        (("~w#0", "~w#1"), 2, False, False),  # one item each
        (("~w#0", "~other#0", "~w#0"), 2, False, False),
        (("~w#0/@a#0", "~w#1/@b#0", "~w#0/@c#0"), 2, False, False),  # named
        (("~w#0", "~other#0"), MOST_OF_ONE + 5, False, True),
    ],
)
def test_what_workers_read_of_the_clock_is_the_workers(scopes: tuple[str, ...], reads: int, timed: bool, tireless: bool) -> None:
    counts: dict[str, int] = {}
    steps = []
    for seq, scope in enumerate(scopes, 1):
        number = counts[scope] = counts.get(scope, -1) + 1
        steps.append(step(seq, f"{scope}/tool_call:t#{number}", str(seq), typed_result=str(seq)))
    kept = ClockReads()
    for ns in range(reads):
        kept.add(("", scopes[0], "agent.py:work"), 10**18 + ns)
    made = replace(run(*steps), clock_reads=(kept.take(),))
    assert timed_items(made, 1) == ("tool_call t" if timed else None)
    assert tireless_reader(made, 1) == ("agent.py:work" if tireless else None)
    assert timed_items(made, None) is tireless_reader(made, None) is None
