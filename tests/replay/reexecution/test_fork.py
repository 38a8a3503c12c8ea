"""A fork: recorded before a step, live from it; the new run is whole, linked, and can be replayed and forked as any."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.engine import Replayer
from spanreplay.replay.reexecution.policy import PolicyError
from support.forking import CALLS, TURNS, WRITES, Echo, agent_of, recorded_into, runs_in

STEPS = 2 * TURNS


class Scene:
    """A recorded run, its server and its store."""

    def __init__(self, server: Echo, store: Path) -> None:
        self.server = server
        self.store = store
        self.agent = agent_of(server)
        with recorded_into(store):
            self.told = self.agent()
        (self.run,) = runs_in(store)

    def replayer(self, run: Run | None = None) -> Replayer:
        CALLS.clear()
        self.server.requests.clear()
        return Replayer(run or self.run, store=self.store)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with Echo() as server:
        yield Scene(server, tmp_path_factory.mktemp("forks") / "store")


def test_a_fork_at_every_step_has_the_prefix_and_a_live_suffix(scene: Scene) -> None:
    made = {}
    for at in range(1, STEPS + 1):
        fork = scene.replayer().fork(at=at, changes={"model": f"other-{at}"}, allow_effect=["note"], target="scratch")
        result = fork.replay(scene.agent)
        assert result.differences == ()
        assert result.verdict.refusals == ()
        assert result.verdict.exit_code == 0
        assert result.value == scene.told
        assert len(scene.server.requests) == TURNS - at // 2  # models from the step on, and none before
        assert {asked["model"] for asked in scene.server.asked} <= {f"other-{at}"}
        assert len(CALLS) == TURNS - (at - 1) // 2
        (run_id,) = [run for run, of in result.runs.items() if of == scene.run.run_id]
        made[run_id] = at
    forks = {run.run_id: run for run in runs_in(scene.store) if run.run_id in made}
    assert forks.keys() == made.keys()
    for run_id, at in made.items():
        kept = forks[run_id]
        assert (kept.forked_from, kept.grade, kept.outcome, len(kept.steps)) == (scene.run.run_id, "exact", "ok", STEPS)
        for step, recorded in zip(kept.steps, scene.run.steps, strict=True):
            if step.seq < at:
                assert step.answered_from == (scene.run.run_id, step.seq)
                assert (step.name, step.path, step.input, step.output) == (recorded.name, recorded.path, recorded.input, recorded.output)
                assert (step.typed_input, step.typed_result) == (recorded.typed_input, recorded.typed_result)
            else:
                assert (step.answered_from, step.stands_for) == (None, step.seq)
                assert step.changed == ({"model": f"other-{at}"} if step.kind == "model_call" else None)
                assert step.name == (f"other-{at}" if step.kind == "model_call" else recorded.name)
                assert step.target == ("scratch" if step.kind == "tool_call" else None)


def test_effects_stay_closed(scene: Scene) -> None:
    result = scene.replayer().fork(at=3).replay(scene.agent)
    assert result.verdict.exit_code == 4
    assert "note" not in dict(CALLS)
    (refusal,) = result.verdict.refusals
    assert "--allow-effect note --target NAME" in refusal["text"]
    assert result.value is None


@pytest.mark.parametrize("at", [0, STEPS + 2])
def test_a_step_that_is_not_there_is_refused(scene: Scene, at: int) -> None:
    with pytest.raises(PolicyError, match="has steps 1 to 20"):
        scene.replayer().fork(at=at)


def test_a_recorded_tool_is_answered_at_the_first_live_step_too(scene: Scene) -> None:
    result = scene.replayer().fork(at=WRITES[0], stub=["note"]).replay(scene.agent)
    assert (result.verdict.exit_code, result.value) == (0, scene.told)
    assert "note" not in dict(CALLS)


def test_a_fault_of_a_recorded_tool_is_injected(scene: Scene) -> None:
    result = scene.replayer().fork(at=WRITES[0], stub=["note"], faults=["timeout"]).replay(scene.agent)
    assert type(result.error) is TimeoutError
