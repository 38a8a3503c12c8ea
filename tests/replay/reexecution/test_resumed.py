"""Which runs go on from a crashed one, and what of them acted where it did."""

from dataclasses import replace
from typing import Any

import pytest

from spanreplay.instrumentation import agent_run
from spanreplay.replay.forked_lines import fork_notes
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.resumed import acted_in, came_to_nothing, continued
from spanreplay.replay.reports.text import render_run
from support.forking import Scene, note


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    def agent() -> None:
        with agent_run("noting", input="go"):
            note(1)

    return Scene(agent, monkeypatch).run


def test_its_forks_and_what_their_commands_made_besides_go_on_from_it(run: Run) -> None:
    fork = replace(run, run_id="f", forked_from=run.run_id, command_id="c", started_ns=5)
    beside = replace(run, run_id="b", command_id="c", started_ns=3)
    other = replace(run, run_id="o", command_id="d")
    assert [later.run_id for later in continued([run], [run, fork, beside, other])] == ["b", "f"]


@pytest.mark.parametrize(
    ("change", "acted"),
    [
        ({}, True),
        ({"outcome": "unknown"}, True),
        ({"changed": {"decision": "fail"}}, False),
        ({"changed": {"result": 1}}, False),
        ({"answered_from": ("r", 1)}, False),
        ({"injected": "error"}, False),
        ({"outcome": "rejected", "typed_result": None}, False),
        ({"outcome": "interrupted", "typed_result": None}, True),
        ({"effect": "read"}, False),
        ({"target": "sandbox"}, False),
        ({"target": "Production "}, True),
    ],
)
def test_what_acted_where_it_was_recorded_is_told(run: Run, change: dict[str, Any], acted: bool) -> None:
    (step,) = run.steps
    crashed = replace(run, steps=(replace(step, target="production"),))
    assert bool(acted_in(replace(run, steps=(replace(step, **change),)), [crashed])) is acted


@pytest.mark.parametrize(
    ("outcome", "of_step", "nothing"),
    [
        ("interrupted", "rejected", True),
        ("error", "rejected", True),
        ("error", "ok", False),
        ("ok", "rejected", False),
        ("unknown", "rejected", False),
    ],
)
def test_what_was_stopped_before_it_acted_came_to_nothing(run: Run, outcome: str, of_step: str, nothing: bool) -> None:
    (step,) = run.steps
    change: dict[str, Any] = {"outcome": of_step, "typed_result": step.typed_result if of_step == "ok" else None}
    later = replace(run, outcome=outcome, steps=(replace(step, **change),))  # type: ignore[arg-type]
    assert came_to_nothing(later, [replace(run, outcome="unknown")]) is nothing
    assert not came_to_nothing(later, [run])


def test_every_live_step_of_what_goes_on_is_marked(run: Run) -> None:
    (step,) = run.steps
    steps = [replace(step, answered_from=("r", 1)), replace(step, stands_for=2), step, replace(step, kind="agent")]
    assert [fork_notes(s, forked=True) for s in steps] == [["answered from step 1"], ["live for step 2"], ["live"], []]
    assert fork_notes(step) == []
    assert "live" in render_run(replace(run, forked_from="r"), colour=False)
