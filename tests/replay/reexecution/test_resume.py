"""A crashed run is finished: what had ended from the record, the rest live, and what may have acted only as it is decided."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from spanreplay.instrumentation import agent_run, tool
from spanreplay.replay.reexecution.cut import cut_of, undecided
from spanreplay.replay.reexecution.engine import ReplayResult
from spanreplay.replay.reexecution.policy import Decision, Policy, PolicyError
from spanreplay.replay.reexecution.resumed import came_to_nothing
from support.forking import CALLS, TURNS, WRITES, Echo, Scene, agent_of

ACTED = WRITES[0]
"""The step in which the process was killed: a tool that writes."""


@pytest.fixture
def server() -> Iterator[Echo]:
    with Echo() as made:
        yield made


@pytest.fixture
def scene(server: Echo, monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene(agent_of(server), monkeypatch)
    made.crash(ACTED)
    server.requests.clear()
    return made


def resumed(scene: Scene, *decisions: str) -> ReplayResult:
    return scene.mixed(run=scene.run.run_id, finish=True, decisions=tuple(Decision.read(text) for text in decisions))


def test_what_has_to_be_decided_is_known_before_anything_runs(scene: Scene) -> None:
    assert [step.seq for step in undecided([scene.run], Policy(finish=True))] == [ACTED]
    assert undecided([scene.run], Policy(finish=True, decisions=(Decision.read(f"{ACTED}=again"),))) == []


@pytest.mark.parametrize("step", [ACTED - 1, 99])
def test_a_decision_on_what_is_not_open_is_refused(scene: Scene, step: int) -> None:
    with pytest.raises(PolicyError, match=rf"step {step} is no call .* to be decided: step {ACTED} \(tool_call note\)"):
        resumed(scene, f"{step}=again")


def test_two_crashed_runs_of_one_command_are_decided_each(scene: Scene) -> None:
    one, other = replace(scene.run, run_id="ab" * 16), replace(scene.run, run_id="ac" * 16)

    def open_of(policy: Policy) -> list[str]:
        return [run.run_id for run in (one, other) if undecided([run], policy)]

    def decided(*texts: str, run: str | None = None) -> Policy:
        policy = Policy(finish=True, run=run, decisions=tuple(Decision.read(text) for text in texts))
        cut_of([one, other], policy)
        return policy

    assert open_of(decided(f"ab:{ACTED}=again")) == [other.run_id]
    assert open_of(decided(f"ab:{ACTED}=again", f'{other.run_id}:{ACTED}=done:"x"')) == []
    assert open_of(decided(f"{ACTED}=again", run=one.run_id)) == [other.run_id]
    assert open_of(decided(f"{ACTED}=again", f"ac:{ACTED}=fail", run=one.run_id)) == []
    with pytest.raises(PolicyError, match=f"step {ACTED} may be one of abababababab:{ACTED}, acacacacacac:{ACTED}; name the run"):
        decided(f"{ACTED}=again")
    with pytest.raises(PolicyError, match=f"step ad:{ACTED} is no call .* to be decided: step abababababab:{ACTED} "):
        decided(f"ad:{ACTED}=again")


def test_without_a_decision_it_stops_there(scene: Scene, server: Echo) -> None:
    result = resumed(scene)
    assert (result.value, result.verdict.exit_code, server.requests, CALLS) == (None, 4, [], [])
    assert f"--decide {ACTED}=done:JSON" in result.verdict.refusals[0]["text"]


@pytest.mark.parametrize(
    ("decision", "acts", "given"),
    [
        (f'{ACTED}=done:"noted by hand"', False, "noted by hand"),
        (f"{ACTED}=again", True, f"noted {ACTED // 2 - 1}"),
    ],
)
def test_the_run_is_finished_as_decided(scene: Scene, server: Echo, decision: str, acts: bool, given: str) -> None:
    result = resumed(scene, decision)
    assert result.differences == ()
    assert result.verdict.exit_code == 0
    assert result.value[ACTED // 2 - 1] == given
    assert result.value[: ACTED // 2 - 1] == scene.value[: ACTED // 2 - 1]
    assert len(server.requests) == TURNS - ACTED // 2
    assert [place for name, place in CALLS if name == "note"] == ([ACTED // 2 - 1] if acts else []) + [WRITES[1] // 2 - 1]
    made = scene.made(result)
    assert (made.grade, made.outcome, made.forked_from, len(made.steps)) == ("exact", "ok", scene.run.run_id, 2 * TURNS)
    assert [step.answered_from is not None for step in made.steps] == [step.seq < ACTED for step in made.steps]


@tool(effect="write", name="post")
def _of_another_module(place: int) -> list[str]:
    raise AssertionError("called")


@tool(effect="write")
async def post(place: int) -> str:
    CALLS.append(("post", place))
    return f"posted {place}"


def posts() -> None:
    async def several() -> None:
        await asyncio.gather(*(post(place) for place in (1, 2, 3)))

    with agent_run("posts", input="go"):
        asyncio.run(several())


def test_no_call_is_made_where_one_of_several_decisions_gives_what_its_tool_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Scene(posts, monkeypatch)
    made.crash(3)
    crashed = made.run
    assert [step.outcome for step in crashed.steps] == ["unknown"] * 3
    result = resumed(made, "1=fail", "2=again", "3=done:3")
    assert (result.verdict.exit_code, CALLS) == (4, [])
    assert [refusal["step"] for refusal in result.verdict.refusals] == [3]
    attempt = made.made(result)
    assert [step.outcome for step in attempt.steps] == ["rejected"] * 3
    assert came_to_nothing(attempt, [crashed])
    assert (resumed(made, "1=again", "2=again", '3=done:"posted 3"').verdict.exit_code, CALLS) == (0, [("post", 1), ("post", 2)])


def test_what_goes_on_acts_where_it_was_recorded(scene: Scene) -> None:
    scene.run = replace(scene.run, steps=tuple(replace(step, target="production") for step in scene.run.steps))
    made = scene.made(resumed(scene, f"{ACTED}=again"))
    assert {step.target for step in made.steps if step.kind == "tool_call" and step.answered_from is None} == {"production"}


def test_the_agent_is_told_that_it_failed(scene: Scene) -> None:
    result = resumed(scene, f"{ACTED}=fail")
    assert type(result.error) is RuntimeError
    assert "interrupted by a crash" in str(result.error)
    assert CALLS == []


def test_a_model_call_that_never_ended_needs_no_decision(server: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Scene(agent_of(server), monkeypatch)
    made.crash(5)
    server.requests.clear()
    assert undecided([made.run], Policy(finish=True)) == []
    result = resumed(made)
    assert (result.value, result.verdict.exit_code, len(server.requests)) == (made.value, 0, TURNS - 2)


def nested(effects: list[str]) -> Callable[[], str]:
    @tool(effect="write", name="inner")
    def inner() -> str:
        effects.append("inner")
        return "done"

    def agent() -> str:
        with agent_run("outer", input="go"):
            with agent_run("sub", input="there") as sub:
                sub.output = inner()
                return inner()

    return agent


def test_inside_a_sub_agent_that_had_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    effects: list[str] = []
    made = Scene(nested(effects), monkeypatch)
    last = max(step.seq for step in made.run.steps)
    made.crash(last)
    assert [step.seq for step in undecided([made.run], Policy(finish=True))] == [last]
    effects.clear()
    result = resumed(made, f"{last}=again")
    assert (effects, result.value, result.verdict.exit_code) == (["inner"], "done", 0)


@pytest.mark.parametrize("text", ["", "6", "6=", ":6=again", "ab:=again", "x=again", "6=maybe", "6=again:1", "6=done:{"])
def test_what_is_no_decision_is_refused(text: str) -> None:
    with pytest.raises(PolicyError, match=r"a decision is STEP=done:JSON|is no JSON"):
        Decision.read(text)
