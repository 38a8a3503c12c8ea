"""What is kept of a re-execution that was stopped: it ends at that call, and so does a replay of it."""

import asyncio
from collections.abc import Callable

import pytest

from spanreplay.instrumentation import agent_run
from support.forking import CALLS, Scene, look, note


def test_what_is_kept_of_a_refused_fork_replays_to_the_same_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def agent() -> list[str]:
        with agent_run("stopped", input="go"):
            first = look(0)
            tools: tuple[Callable[[int], str], ...] = (note, look)
            return [first, *await asyncio.gather(*(asyncio.to_thread(call, 1) for call in tools))]

    made = Scene(lambda: asyncio.run(agent()), monkeypatch)
    refused = made.fork(at=2)
    assert refused.verdict.exit_code == 4
    kept = made.made(refused)
    assert [step.outcome for step in kept.steps][:2] == ["ok", "rejected"]
    made.run = kept
    CALLS.clear()
    replayed = made.replayer().replay(made.agent)
    assert (replayed.differences, replayed.verdict.exit_code, replayed.value, CALLS) == ((), 0, None, [])
    opened = made.fork(at=2, allow_effect=["note"], target="elsewhere")
    assert (opened.verdict.exit_code, opened.value) == (0, ["seen 0", "noted 1", "seen 1"])


def test_a_mix_that_was_stopped_replays_to_the_same_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    place = [0]

    def agent() -> str:
        with agent_run("stopped", input="go"):
            return look(place[0])

    made = Scene(agent, monkeypatch)
    place[0] = 1
    made.run = made.made(made.mixed(models=True))
    assert [step.outcome for step in made.run.steps] == ["interrupted"]
    replayed = made.replayer().replay(agent)
    assert (replayed.differences, replayed.verdict.exit_code, replayed.value) == ((), 0, None)
