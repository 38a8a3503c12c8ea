"""Where workers make one call for items that nothing tells apart, the difference that comes of it says so."""

import pytest

from spanreplay.replay.reexecution.workers import unnamed_items
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
