"""What cannot be meant is refused before anything runs."""

from typing import Any

import pytest

from spanreplay.replay.reexecution.contradictions import check, once
from spanreplay.replay.reexecution.policy import Decision, Fault, Policy, PolicyError

TIMEOUT, ERROR = Fault(kind="timeout", step=3), Fault(kind="error", step=3)
AGAIN, FAIL = Decision(step=5, choice="again"), Decision(step=5, choice="fail")


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ({"at": 1, "allow_effect": ("send",), "target": ""}, "--target names no place"),
        ({"at": 1, "target": " \t"}, "--target names no place"),
        ({"at": 1, "allow_effect": ("",), "target": "here"}, "--allow-effect names no tool"),
        ({"at": 1, "refuse": (" ",)}, "--refuse names no tool"),
        ({"at": 1, "stub": ("",)}, "--recorded names no tool"),
        ({"at": 1, "allow_effect": ("send",)}, "add --target NAME"),
        ({"at": 1, "allow_effect": ("send",), "target": "here", "refuse": ("send",)}, "--allow-effect send and --refuse send contradict"),
        ({"at": 1, "stub": ("send",), "refuse": ("send",)}, "--recorded send and --refuse send contradict"),
        ({"live": ("send",), "refuse": ("send",)}, "--live send and --refuse send contradict"),
        ({"live_read": ("send",), "refuse": ("send",)}, "--live-read send and --refuse send contradict"),
        ({"leave": True, "models": True}, "--mode from-here answers everything up to the first difference"),
        ({"leave": True, "live": ("look",)}, "--mode from-here"),
        ({"leave": True, "live_read": ("look",)}, "--mode from-here"),
        ({"leave": True, "only": 2, "changes": {"model": "a"}}, "--mode from-here"),
        ({"at": 1, "faults": (TIMEOUT, ERROR)}, "step 3 has more than one fault"),
        ({"finish": True, "decisions": (AGAIN, FAIL)}, "step 5 is decided in more than one way"),
        ({"at": 3, "changes": {"result": 1}, "faults": (TIMEOUT,)}, "step 3 cannot both give a result and have the fault timeout"),
    ],
)
def test_what_contradicts_itself_is_refused(policy: dict[str, Any], told: str) -> None:
    with pytest.raises(PolicyError, match=told):
        check(Policy(**policy), ())


def test_the_same_said_twice_is_said_once() -> None:
    check(Policy(at=1, faults=(TIMEOUT, TIMEOUT), allow_effect=("send", "send"), target="here", refuse=("book",)), ())
    assert once([("model", "a"), ("model", "a"), ("prompt", "b")], str) == ["a", "b"]
