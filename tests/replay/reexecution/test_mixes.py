"""Recorded and live mixed: models live with tools answered, a tool live with models answered, one step alone, from the first difference."""

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from spanreplay.instrumentation import agent_run, tool
from spanreplay.replay.reexecution.cut import cut_of
from spanreplay.replay.reexecution.policy import NOTHING, Policy, PolicyError
from support.forking import CALLS, TURNS, WRITES, Echo, Scene, agent_of, look
from support.model_server import Scripted, as_json, chat

STEPS = 2 * TURNS


@pytest.fixture
def server() -> Iterator[Echo]:
    with Echo() as made:
        yield made


@pytest.fixture
def scene(server: Echo, monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene(agent_of(server), monkeypatch)
    server.requests.clear()
    return made


def test_models_are_live_and_tools_answered(scene: Scene, server: Echo) -> None:
    result = scene.mixed(models=True, changes={"model": "other-1", "temperature": 0})
    assert result.value == scene.value
    assert CALLS == []
    assert {(asked["model"], asked["temperature"]) for asked in server.asked} == {("other-1", 0)}
    assert len(server.asked) == TURNS
    assert [d.step for d in result.verdict.drift] == list(range(1, STEPS, 2))
    assert (result.differences, result.verdict.exit_code) == ((), 0)
    made = scene.made(result)
    assert [step.answered_from is not None for step in made.steps] == [False, True] * TURNS


def test_a_live_model_may_ask_for_tools_in_another_order(server: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    order = [1, 2, 3]

    def agent() -> list[str]:
        with agent_run("ordered", input="go"), httpx.Client(base_url=server.url, verify=False) as client:
            client.post("/v1/chat/completions", json={"model": "small-1", "messages": []})
            return [look(place) for place in order]

    made = Scene(agent, monkeypatch)
    order[:] = [3, 1, 1]
    result = made.mixed(models=True)
    assert result.value == ["seen 3", "seen 1", "seen 1"]
    assert CALLS == []
    order[:] = [4]
    result = made.mixed(models=True)
    assert [(d.kind, d.field, d.actual) for d in result.differences] == [("input", "arguments.place", "4")]


def test_another_provider_is_live_with_the_same_tools_answered(server: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ["/v1/chat/completions"]

    def agent() -> list[str]:
        with agent_run("moved", input="go"), httpx.Client(base_url=server.url, verify=False) as client:
            asked = {"model": "small-1", "max_tokens": 9, "messages": [{"role": "user", "content": "Go."}]}
            client.post(path[0], json=asked).raise_for_status()
            return [look(1), look(2)]

    made = Scene(agent, monkeypatch)
    path[0] = "/v1/messages"
    result = made.mixed(models=True)
    assert (result.value, CALLS, result.differences, result.verdict.exit_code) == (["seen 1", "seen 2"], [], (), 0)
    model = made.made(result).steps[0]
    assert (model.wire is not None and model.wire.provider, model.stands_for) == ("anthropic.messages", 1)


def test_a_tool_is_live_and_models_answered(scene: Scene, server: Echo) -> None:
    result = scene.mixed(live=("look",))
    assert (result.value, result.equal, server.requests) == (scene.value, True, [])
    assert len(CALLS) == TURNS - len(WRITES)
    assert {name for name, _ in CALLS} == {"look"}


def test_drift_of_a_live_tool_is_told_step_by_step_and_the_models_go_on(server: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"a": "1", "b": "2"}

    @tool(effect="read")
    def price(of: str) -> dict[str, str]:
        return {"price": said[of]}

    def agent() -> str:
        messages: list[dict[str, Any]] = []
        with agent_run("pricing", input="go"), httpx.Client(base_url=server.url, verify=False) as client:
            for of in ("a", "b"):
                messages.append({"role": "user", "content": str(price(of))})
                reply = client.post("/v1/chat/completions", json={"model": "small-1", "messages": messages}).json()
            return str(reply["choices"][0]["message"]["content"])

    made = Scene(agent, monkeypatch)
    server.requests.clear()
    said.update(a="7", b="8")
    result = made.mixed(live=("price",))
    assert [(d.step, d.field, d.recorded, d.actual) for d in result.verdict.drift] == [
        (1, "output.price", '"1"', '"7"'),
        (3, "output.price", '"2"', '"8"'),
    ]
    assert (result.differences, result.value, server.requests) == ((), made.value, [])
    assert result.verdict.exit_code == 1


def test_a_live_tool_with_an_effect_is_closed_until_it_is_named_with_another_target(scene: Scene) -> None:
    closed = scene.mixed(live=("note",))
    assert closed.verdict.exit_code == 4
    assert "--allow-effect note --target NAME" in closed.verdict.refusals[0]["text"]
    with pytest.raises(PolicyError, match="add --target NAME"):
        scene.mixed(live=("note",), allow_effect=("note",))
    only_reads = scene.mixed(live_read=("note",))
    assert "--live-read lets tools be live that only read" in only_reads.verdict.refusals[0]["text"]
    assert CALLS == []
    opened = scene.mixed(live=("note",), allow_effect=("note",), target="scratch")
    assert opened.equal
    assert [name for name, _ in CALLS] == ["note"] * len(WRITES)
    assert {step.target for step in scene.made(opened).steps if step.name == "note"} == {"scratch"}


def test_the_recorded_target_is_not_another_one(scene: Scene) -> None:
    scene.run = scene.made(scene.mixed(live=("note",), allow_effect=("note",), target="production"))
    CALLS.clear()
    for same in ("production", " Production "):
        with pytest.raises(PolicyError, match=f"would act where it was recorded, on {same}"):
            scene.mixed(live=("note",), allow_effect=("note",), target=same)
    assert CALLS == []


@pytest.mark.parametrize("seq", [1, 2, 8, STEPS])
def test_one_step_alone_is_live(scene: Scene, server: Echo, seq: int) -> None:
    result = scene.mixed(only=seq)
    assert (result.value, result.equal) == (scene.value, True)
    assert len(server.requests) + len(CALLS) == 1
    assert [call["step"] for call in result.verdict.live] == [seq]
    assert [step.stands_for for step in scene.made(result).steps if step.answered_from is None] == [seq]


def test_the_ids_that_one_live_model_call_gives_are_no_difference_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    class WithIds(Echo):
        def next(self) -> Scripted:
            asked = json.loads(self.requests[-1].body)["messages"]
            return as_json(chat(None, [(f"call_{uuid.uuid4().hex}", "look", f'{{"place": {len(asked)}}}')]))

    with WithIds() as server:

        def agent() -> list[str]:
            messages: list[Any] = [{"role": "user", "content": "Go."}]
            with agent_run("ids", input="go") as run, httpx.Client(base_url=server.url, verify=False) as client:
                for _ in range(3):
                    reply = client.post("/v1/chat/completions", json={"model": "small-1", "messages": messages}).json()
                    said = reply["choices"][0]["message"]
                    (call,) = said["tool_calls"]
                    told = look(**json.loads(call["function"]["arguments"]))
                    messages += [said, {"role": "tool", "tool_call_id": call["id"], "content": told}]
                run.output = told
            return [message["content"] for message in messages if message["role"] == "tool"]

        scene = Scene(agent, monkeypatch)
        result = scene.mixed(only=3)
    assert (result.value, result.equal) == (scene.value, True)
    assert [call["step"] for call in result.verdict.live] == [3]


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ({"live": ("look",), "changes": {"model": "x"}}, "model is of a model call, and none is live"),
        ({"only": 2, "changes": {"temperature": 0}}, "temperature is of a model call"),
        ({"models": True, "changes": {"result": 1}}, "fork --at N"),
        ({"at": 3, "changes": {"result": 1}}, "step 3 is a model_call step"),
        ({"only": 99}, "there is no step 99"),
        ({"at": 2, "run": "elsewhere"}, "there is no run elsewhere"),
    ],
)
def test_what_would_do_nothing_is_refused(scene: Scene, policy: dict[str, Any], told: str) -> None:
    with pytest.raises(PolicyError, match=told):
        scene.mixed(**policy)


def test_a_refused_tool_ends_the_run(scene: Scene) -> None:
    result = scene.mixed(refuse=("look",))
    assert (result.verdict.exit_code, result.value) == (4, None)
    assert "--refuse look" in result.verdict.refusals[0]["text"]


def test_several_runs_need_no_name_where_no_step_is_named(scene: Scene, server: Echo) -> None:
    other = replace(scene.run, run_id="0" * 32, path="elsewhere", typed_input=None)
    runs = [scene.run, other]
    assert cut_of(runs, NOTHING) is None
    assert cut_of(runs, Policy(models=True, changes={"model": "x"})) is None
    with pytest.raises(PolicyError, match="2 runs have steps"):
        cut_of(runs, Policy(at=3))
    found = cut_of(runs, Policy(at=3, run=scene.run.run_id))
    assert found is not None
    assert [found.before(scene.run.run_id, step) for step in scene.run.steps[:4]] == [True, True, False, False]
    assert [found.before(other.run_id, step) for step in other.steps[:4]] == [True, True, False, False]


# ---- from here ------------------------------------------------------------------------------------------------------


def varied(server: Echo, questions: list[str]) -> Callable[[], list[str]]:
    def agent() -> list[str]:
        told = []
        with agent_run("varied", input="go"), httpx.Client(base_url=server.url, verify=False) as client:
            for place, question in enumerate(questions):
                asked = {"model": "small-1", "messages": [{"role": "user", "content": question}]}
                told.append(client.post("/v1/chat/completions", json=asked).json()["choices"][0]["message"]["content"])
                told.append(look(place))
        return told

    return agent


def test_from_the_first_difference_it_is_a_fork_and_says_so(server: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = ["a", "b", "c"]
    made = Scene(varied(server, questions), monkeypatch)
    server.requests.clear()
    questions[1] = "B"
    result = made.mixed(leave=True)
    assert [(d.kind, d.step) for d in result.differences] == [("input", 3)]
    assert [(left["run"], left["step"]) for left in result.verdict.left] == [(made.run.run_id, 3)]
    assert [asked["messages"][0]["content"] for asked in server.asked] == ["B", "c"]
    assert CALLS == [("look", 1), ("look", 2)]
    assert (result.value[:2], result.verdict.exit_code) == (made.value[:2], 1)
    assert result.value[2] != made.value[2]
    assert [step.answered_from is not None for step in made.made(result).steps] == [True, True, False, False, False, False]


def test_without_a_difference_nothing_is_live(scene: Scene, server: Echo) -> None:
    result = scene.mixed(leave=True)
    assert (result.equal, result.verdict.left, server.requests, CALLS) == (True, (), [], [])


def test_one_call_more_is_the_first_difference(server: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = ["a"]
    made = Scene(varied(server, questions), monkeypatch)
    questions.append("b")
    result = made.mixed(leave=True)
    assert [d.kind for d in result.differences] == ["never_recorded"]
    assert len(made.made(result).steps) == 4


def test_what_is_live_after_a_difference_may_not_act(scene: Scene, server: Echo) -> None:
    def agent() -> Any:
        with agent_run("twenty", input="go"):
            return look(99)

    result = scene.mixed(agent=agent, leave=True)
    assert result.verdict.exit_code == 1
    assert CALLS == [("look", 99)]


# ---- what comes of a live model -------------------------------------------------------------------------------------


def telling(server: Echo, tool_argument: Callable[[str], int]) -> Callable[[], str]:
    def agent() -> str:
        with agent_run("telling", input="go") as run, httpx.Client(base_url=server.url, verify=False) as client:
            asked = {"model": "small-1", "messages": [{"role": "user", "content": "Go."}]}
            said = str(client.post("/v1/chat/completions", json=asked).raise_for_status().json()["choices"][0]["message"]["content"])
            look(tool_argument(said))
            run.output = said
            return said

    return agent


def test_what_a_run_gives_after_a_live_model_is_drift_too(server: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Scene(telling(server, lambda _: 1), monkeypatch)
    result = made.mixed(models=True, changes={"model": "other-1"})
    assert ([d.name for d in result.verdict.drift], result.differences) == (["model_call small-1", "agent telling"], ())
    assert result.verdict.exit_code == 0
    assert result.verdict.drift[1].cause == "model_call small-1, live for step 1, asked with --set model, gave something else"


def test_without_another_word_of_the_model_what_a_run_gives_is_a_difference(server: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Scene(telling(server, lambda _: 1), monkeypatch)

    def other() -> None:
        with agent_run("telling", input="go") as run, httpx.Client(base_url=server.url, verify=False) as client:
            client.post("/v1/chat/completions", json={"model": "small-1", "messages": [{"role": "user", "content": "Go."}]})
            look(1)
            run.output = "of my own"

    result = made.mixed(agent=other, models=True)
    assert ([d.kind for d in result.differences], result.verdict.exit_code) == (["output"], 1)


def test_what_a_live_model_asks_for_may_have_no_answer_in_the_record(server: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Scene(telling(server, lambda said: len(said) + int(said[-8:], 16)), monkeypatch)
    result = made.mixed(models=True, changes={"model": "other-1"})
    assert [(d.kind, d.cause_kind) for d in result.differences] == [("input", "live")]
    assert result.verdict.exit_code == 125
    opened = made.mixed(models=True, live=("look",), changes={"model": "other-1"})
    assert [d.name for d in opened.verdict.drift] == ["model_call small-1", "tool_call look", "agent telling"]
    assert (opened.differences, opened.verdict.exit_code) == ((), 0)
