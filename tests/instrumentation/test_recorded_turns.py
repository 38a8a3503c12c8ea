"""Whose turn it is, as it was recorded."""

from collections import deque
from typing import Any, cast

import pytest

from spanreplay.boundary.session import Session
from spanreplay.instrumentation.shims.recorded_turns import RecordedTurns


class Told:
    """Recorded orders of one place."""

    def __init__(self, *who: str) -> None:
        self._left = deque((0, (one,)) for one in who)

    def left(self, _: object) -> Any:
        """Its items."""
        return self._left


class Replay:
    """As much of a session as the turns ask for."""

    mode = "replay"

    def __init__(self, *who: str) -> None:
        self.told_orders = Told(*who)


def turns(*who: str) -> RecordedTurns:
    return RecordedTurns(cast("Session", Replay(*who)), ("", "", "place"))


def test_one_after_the_other() -> None:
    found = turns("a", "b", "a")
    assert (found.is_of("a"), found.is_of("b"), found.comes("b"), found.comes("c")) == (True, False, True, False)
    found.had("a")
    assert found.is_of("b")
    found.had("b")
    found.had("a")
    assert not found.left
    assert not found.comes("a")


def test_who_was_early_is_not_awaited_again() -> None:
    found = turns("a", "b", "c")
    found.had("b")
    assert found.is_of("a")
    found.had("a")
    assert found.is_of("c")


@pytest.mark.parametrize(("times", "left"), [(1, 4), (2, 3), (3, 0)])
def test_after_three_who_did_not_come_nobody_is_awaited(times: int, left: int) -> None:
    found = turns("a", "b", "c", "d", "e")
    for _ in range(times):
        found.give_up()
    assert len(found.left) == left


def test_who_comes_after_one_that_was_given_up_may_have_been_there_already() -> None:
    found = turns("a", "b", "c")
    found.had("b")
    found.give_up()
    assert found.is_of("c")
