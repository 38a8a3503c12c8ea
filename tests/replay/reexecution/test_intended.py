"""What was to be live, changed or failed and was not come to is told."""

from typing import Any

import pytest

from spanreplay.replay.reexecution.intended import never_reached
from spanreplay.replay.reexecution.ledger import Totals, apply
from spanreplay.replay.reexecution.policy import Decision, Fault, Policy
from spanreplay.replay.reexecution.verdict import verdict
from spanreplay.replay.reports.verdict import render_verdict


def did(*live: dict[str, Any], left: bool = True) -> Totals:
    totals = Totals()
    apply(totals, "started", {"isolation": "none"})
    if left:
        apply(totals, "left", {"run": "r", "step": 2, "name": "tool_call look"})
    for call in live:
        apply(totals, "live", {"run": "r", "step": None, "name": "tool_call look", "changed": [], "injected": None, **call})
    return totals


@pytest.mark.parametrize(
    ("policy", "call", "told"),
    [
        ({"at": 2, "faults": (Fault(kind="error", step=4),)}, {"step": 4, "injected": "error"}, "the fault error at step 4"),
        ({"at": 2, "changes": {"result": 1}}, {"step": 2, "changed": ["result"]}, "step 2, whose result was to be given"),
        (
            {"models": True, "changes": {"model": "a"}},
            {"name": "model_call a", "changed": ["model"]},
            "a call whose model was to be changed",
        ),
        ({"finish": True, "decisions": (Decision(step=5, choice="again"),)}, {"step": 5}, "step 5, decided as again"),
        ({"only": 3}, {"step": 3}, "step 3, to be live"),
        ({"live": ("look",)}, {}, "a call of look, to be live"),
        ({"models": True}, {"name": "model_call a"}, "a call of models, to be live"),
    ],
)
def test_what_was_not_come_to_is_told(policy: dict[str, Any], call: dict[str, Any], told: str) -> None:
    wanted = Policy(**policy)
    assert never_reached(wanted, did(call)) == ()
    judged = verdict(did(), (), policy=wanted)
    assert f"never reached: {told}: the run ended before, or went another way" in render_verdict(judged, (), colour=False)
    assert judged.to_json()["never_reached"] == [dict(unmet) for unmet in never_reached(wanted, did())]


def test_a_fork_behind_the_last_step_says_that_nothing_was_live() -> None:
    judged = verdict(did(left=False), (), policy=Policy(at=9))
    assert "step 9 was never reached: everything was answered from the record, and nothing was live" in render_verdict(
        judged, (), colour=False
    )


def test_a_fork_that_was_stopped_before_is_not_said_to_be_answered_whole() -> None:
    totals = did(left=False)
    apply(totals, "refused", {"event": "e", "action": "write", "target": "/x", "text": "tried"})
    told = render_verdict(verdict(totals, (), policy=Policy(at=9)), (), colour=False)
    assert "never reached: step 9, from where on it was to be live: the run ended before" in told
    assert "everything was answered" not in told


def test_nothing_is_told_where_nothing_was_to_be_live() -> None:
    assert never_reached(Policy(), did(left=False)) == ()


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ({"live": ("look",)}, "a call of look, to be live"),
        ({"at": 2, "refuse": ("look",)}, "step 2, from where on it was to be live"),
    ],
)
def test_what_was_come_to_and_refused_is_not_said_to_be_never_reached(policy: dict[str, Any], told: str) -> None:
    totals = did(left=False)
    apply(totals, "refused", {"event": "call", "action": "effect", "target": "look", "text": "tool call at a.py:1: no", "step": 2})
    judged = verdict(totals, (), policy=Policy(**policy))
    text = render_verdict(judged, (), colour=False)
    assert f"reached, and refused: {told}" in text
    assert "never reached" not in text
    assert [unmet["refused"] for unmet in judged.to_json()["never_reached"]] == [True]


def test_a_change_that_does_not_fit_is_no_action_on_the_outside_and_was_made_in_no_call() -> None:
    totals = did({"name": "model_call a", "changed": ["messages.9"]})
    apply(totals, "withdrawn", {"run": "r", "step": None, "name": "model_call a"})
    apply(totals, "refused", {"event": "call", "action": "change", "target": "a", "text": "model call at a.py:1: no"})
    text = render_verdict(verdict(totals, (), policy=Policy(at=2, changes={"messages.9": "x"})), (), colour=False)
    assert "reached, and refused: a call whose messages.9 was to be changed" in text
    assert "1 change refused" in text
    assert ("on the outside" in text, "changed:" in text, "live:" in text) == (False, False, False)
