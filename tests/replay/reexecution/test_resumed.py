"""Which runs go on from a crashed one, and what of them acted where it did."""

from dataclasses import replace
from typing import Any

import pytest

from spanreplay.instrumentation import agent_run
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.resumed import acted_in, continued
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
        ({"effect": "read"}, False),
        ({"target": "sandbox"}, False),
        ({"target": "Production "}, True),
    ],
)
def test_what_acted_where_it_was_recorded_is_told(run: Run, change: dict[str, Any], acted: bool) -> None:
    (step,) = run.steps
    crashed = replace(run, steps=(replace(step, target="production"),))
    assert bool(acted_in(replace(run, steps=(replace(step, **change),)), [crashed])) is acted
