"""What explains a difference, and what is said where nothing does."""

from dataclasses import replace

import pytest

from spanreplay.replay.reexecution.causes import NONE, Causes
from spanreplay.replay.reexecution.ledger import Difference
from spanreplay.replay.reexecution.versions_now import Comparison

NOT_HELD = "what a replay does not hold (chance, time, state that a tool changed): replay --check-determinism 3 looks for it"
SAME = "no version that is kept has changed, so it comes from "


def test_what_is_no_input_has_no_cause_and_a_cause_stays() -> None:
    causes = Causes([])
    other = Difference(kind="order", run_id=None, step=1, name="tool_call t")
    assert causes.explain(other) is other
    given = replace(other, kind="input", field="x", cause="known")
    assert causes.explain(given) is given
    assert causes.explain(replace(other, kind="input", field="arguments.x")).cause == NONE


@pytest.mark.parametrize(
    ("comparison", "cause"),
    [
        (Comparison(), f"{SAME}{NOT_HELD}"),
        (Comparison(equal=("agent.py",), unknown=("code",), same_files=True), f"{SAME}a file that is not kept, or from {NOT_HELD}"),
        (Comparison(unknown=("code",)), NONE),
        (Comparison(unknown=("dependencies",), same_files=True), NONE),
    ],
)
def test_where_nothing_that_is_kept_has_changed_that_is_said(comparison: Comparison, cause: str) -> None:
    difference = Difference(kind="input", run_id="r", step=1, name="tool_call t", field="arguments.x")
    found = Causes([], comparison).explain(difference)
    assert (found.cause_kind, found.cause) == ("none", cause)
    assert Comparison.of(comparison.entry()) == comparison
