"""Live calls of a fork: beside each other, inside each other, through every client library; and what stays closed around them."""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
import urllib3

from spanreplay.boundary import boundary
from spanreplay.instrumentation import agent_run, read, tool
from spanreplay.replay.model import Run
from spanreplay.replay.rebuilding.origin import is_foreign
from spanreplay.replay.reexecution import turns
from spanreplay.replay.reexecution.engine import Replayer
from spanreplay.replay.reexecution.policy import Policy
from support.forking import Echo, Scene
from support.model_server import ModelServer, as_events, as_json, chat, chat_chunks
from support.sdk_agents import ASK, MODEL, client, close_clients


@pytest.fixture
def server() -> Iterator[Echo]:
    with Echo() as made:
        yield made
    close_clients()


Made = Callable[[Callable[[], Any]], Scene]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Made:
    monkeypatch.setattr(turns, "WAIT_S", turns.IMPATIENT_S)
    return lambda agent: Scene(agent, monkeypatch)


RAN: list[str] = []


@pytest.fixture(autouse=True)
def _none_ran() -> None:
    RAN.clear()


@tool(effect="read")
async def slow(name: str) -> str:
    """Reads, after a while."""
    RAN.append(name)
    await asyncio.sleep(0)
    return name


@tool(effect="write")
def write(path: str) -> str:
    """Writes a file."""
    RAN.append(path)
    Path(path).write_text("written", encoding="utf-8")
    return path


@tool(effect="read")
def outer(path: str) -> str:
    """Says that it reads, and writes inside."""
    return write(path)


# ---- beside and inside each other -----------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [1, 3, 5, 6])
def test_parallel_calls_are_answered_before_the_step_and_live_behind_it(scene: Made, at: int) -> None:
    async def agent() -> list[str]:
        with agent_run("parallel", input="go"):
            return [*(await asyncio.gather(*(slow(name) for name in "abcd"))), await slow("e")]

    made = scene(lambda: asyncio.run(agent()))
    by_seq = {step.seq: step.input["arguments"]["name"] for step in made.run.steps}
    RAN.clear()
    result = made.fork(at=at)
    assert (result.value, result.differences) == (list("abcde"), ())
    assert sorted(RAN) == sorted(name for seq, name in by_seq.items() if seq >= at)


def test_what_a_live_tool_does_is_a_part_of_it_and_stays_as_closed(scene: Made, tmp_path: Path) -> None:
    def agent() -> str:
        with agent_run("nested", input="go"):
            return outer(str(tmp_path / "file"))

    made = scene(agent)
    (tmp_path / "file").unlink()
    assert [(step.name, step.parent_seq) for step in made.run.steps] == [("outer", None), ("write", 1)]
    closed = made.fork(at=1)
    assert closed.verdict.exit_code == 4
    assert "write has the effect write" in closed.verdict.refusals[0]["text"]
    assert not (tmp_path / "file").exists()
    opened = made.fork(at=1, allow_effect=["write"], target="scratch")
    assert (opened.value, opened.verdict.exit_code) == (str(tmp_path / "file"), 0)
    assert (tmp_path / "file").read_text() == "written"
    kept = made.made(opened)
    assert [(step.name, step.parent_seq, step.outcome) for step in kept.steps] == [("outer", None, "ok"), ("write", 1, "ok")]


def test_a_model_that_a_live_tool_asks_is_asked_as_the_fork_says(scene: Made, server: Echo) -> None:
    @tool(effect="read")
    def summary() -> str:
        return str(with_httpx(f"{server.url}/v1/chat/completions", {"model": "small-1", "messages": []})["model"])

    def agent() -> str:
        with agent_run("asking", input="go"):
            return summary()

    made = scene(agent)
    result = made.fork(at=1, changes={"model": "other-1"})
    assert (result.value, made.made(result).steps[1].name) == ("other-1", "other-1")


def test_calls_outside_every_agent_run_are_forked_with_their_program(scene: Made) -> None:
    def program() -> list[str]:
        return [asyncio.run(slow(name)) for name in "abc"]

    made = scene(program)
    assert made.run.is_command
    RAN.clear()
    result = made.fork(at=2)
    assert (result.value, RAN, result.differences) == (["a", "b", "c"], ["b", "c"], ())
    kept = made.made(result)
    assert (kept.is_command, kept.forked_from, [s.answered_from is not None for s in kept.steps]) == (
        True,
        made.run.run_id,
        [True, False, False],
    )


def test_the_agents_own_acts_are_refused_in_the_live_part_too(scene: Made, tmp_path: Path) -> None:
    def agent() -> str:
        with agent_run("acting", input="go"):
            told = read("now", lambda: "then")
            if boundary.here() is not None and boundary.here().session.mode == "replay":  # type: ignore[union-attr]
                (tmp_path / "mine").write_text("no", encoding="utf-8")
            return told

    result = scene(agent).fork(at=1)
    assert result.verdict.exit_code == 4
    assert not (tmp_path / "mine").exists()


def test_a_tool_is_answered_in_the_live_part_where_it_is_asked_to(scene: Made, tmp_path: Path) -> None:
    def agent() -> list[str]:
        with agent_run("stubbed", input="go"):
            return [asyncio.run(slow("a")), write(str(tmp_path / "one")), write(str(tmp_path / "two"))]

    made = scene(agent)
    for name in ("one", "two"):
        (tmp_path / name).unlink()
    result = made.fork(at=1, stub=["write"])
    assert (result.value, result.verdict.exit_code) == (made.value, 0)
    assert list(tmp_path.iterdir()) == []


def test_the_result_of_a_tool_is_changed(scene: Made) -> None:
    def agent() -> list[str]:
        with agent_run("changed", input="go"):
            return [asyncio.run(slow(name)) for name in "ab"]

    made = scene(agent)
    RAN.clear()
    result = made.fork(at=1, changes={"result": "z"})
    assert (result.value, RAN) == (["z", "b"], ["b"])
    step = made.made(result).steps[0]
    assert (step.changed, step.output) == ({"result": "z"}, {"result": "z"})


def test_a_change_that_leads_nowhere_ends_the_fork(scene: Made, server: Echo) -> None:
    def agent() -> Any:
        with agent_run("changed", input="go"):
            try:
                return with_httpx(f"{server.url}/v1/chat/completions", {"model": "small-1", "temperature": 1, "messages": []})
            except Exception:  # an agent that goes on whatever happens
                return "went on"

    made = scene(agent)
    server.requests.clear()
    result = made.fork(at=1, changes={"temperature.x": 1})
    assert (result.value, result.verdict.exit_code, server.requests) == (None, 4, [])
    assert "temperature is 1, which has no x" in result.verdict.refusals[0]["text"]


# ---- what is sent ---------------------------------------------------------------------------------------------------


def with_httpx(url: str, body: dict[str, Any]) -> Any:
    return httpx.post(url, json=body, verify=False).json()


def with_urllib3(url: str, body: dict[str, Any]) -> Any:
    return urllib3.PoolManager().request("POST", url, json=body, retries=False).json()


def with_aiohttp(url: str, body: dict[str, Any]) -> Any:
    async def asked() -> Any:
        async with aiohttp.ClientSession() as session, session.post(url, json=body) as response:
            return await response.json()

    return asyncio.run(asked())


@pytest.mark.parametrize("ask", [with_httpx, with_urllib3, with_aiohttp])
def test_every_client_sends_what_the_fork_makes_of_a_request(scene: Made, server: Echo, ask: Callable[[str, dict[str, Any]], Any]) -> None:
    def agent() -> Any:
        with agent_run("client", input="go"):
            messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hé?"}]
            return ask(f"{server.url}/v1/chat/completions", {"model": "small-1", "messages": messages})["model"]

    made = scene(agent)
    server.requests.clear()
    changes = {"model": "other-1", "prompt": "Be long: ü.", "temperature": 0, "reasoning.effort": "low"}
    result = made.fork(at=1, changes=changes)
    assert (result.value, result.verdict.exit_code) == ("other-1", 0)
    (sent,) = server.asked
    assert sent == {
        "model": "other-1",
        "messages": [{"role": "system", "content": "Be long: ü."}, {"role": "user", "content": "Hé?"}],
        "temperature": 0,
        "reasoning": {"effort": "low"},
    }
    (step,) = made.made(result).steps
    assert step.wire is not None
    assert json.loads(step.wire.request_body) == sent
    assert (step.name, step.changed, step.grade) == ("other-1", changes, "exact")
    assert (step.typed_input, step.typed_sent) != (None, None)
    assert json.loads(step.typed_sent or "")["body"] == sent
    kept = made.made(result)
    again = Replayer(kept, store="not-there").fork(at=1).replay(agent)  # a fork of the fork
    assert again.value == "small-1"
    server.requests.clear()
    assert Replayer(kept).replay(agent).equal  # of the agent that the fork was made of

    def as_sent() -> Any:
        with agent_run("client", input="go"):
            return ask(f"{server.url}/v1/chat/completions", sent)["model"]

    assert Replayer(kept).replay(as_sent).equal  # and of one that does by itself what the fork did
    assert server.requests == []


@pytest.mark.parametrize("ask", [with_httpx, with_urllib3, with_aiohttp])
def test_every_client_times_out_in_its_own_way(scene: Made, server: Echo, ask: Callable[[str, dict[str, Any]], Any]) -> None:
    def agent() -> Any:
        with agent_run("client", input="go"):
            return ask(f"{server.url}/v1/chat/completions", {"model": "small-1", "messages": []})

    result = scene(agent).fork(at=1, faults=["timeout"])
    expected: dict[Any, Any] = {
        with_httpx: httpx.ReadTimeout,
        with_urllib3: urllib3.exceptions.ReadTimeoutError,
        with_aiohttp: aiohttp.ServerTimeoutError,
    }
    assert isinstance(result.error, expected[ask])


def test_a_stream_is_live_and_changed(scene: Made) -> None:
    with ModelServer() as server:
        server.script(as_events(chat_chunks("Par", "is."), done=True))
        asked = client(server)

        def agent() -> str:
            with agent_run("streaming", input="go"):
                parts = asked.chat.completions.create(model=MODEL, messages=ASK, stream=True)
                return "".join(part.choices[0].delta.content or "" for part in parts if part.choices)

        made = scene(agent)
        server.script(as_events(chat_chunks("Lis", "bon."), done=True))
        result = made.fork(at=1, changes={"model": "other-1"})
        assert (result.value, json.loads(server.requests[-1].body)["model"]) == ("Lisbon.", "other-1")
        assert made.made(result).steps[0].grade == "exact"
        malformed = made.fork(at=1, faults=["malformed"])
        assert isinstance(malformed.error, json.JSONDecodeError)


def test_a_model_elsewhere_is_not_asked(scene: Made, server: Echo) -> None:
    with ModelServer() as other:
        other.script(as_json(chat()))
        urls = [server.url]

        def agent() -> Any:
            with agent_run("elsewhere", input="go"):
                return with_httpx(f"{urls[0]}/v1/chat/completions", {"model": "small-1", "messages": []})["model"]

        made = scene(agent)
        urls[0] = other.url
        result = made.fork(at=1)
        assert (result.verdict.exit_code, other.requests) == (4, [])
        port = int(other.url.rpartition(":")[2])
        assert f"--allow-host 127.0.0.1:{port}" in result.verdict.refusals[0]["text"]
        opened = made.replayer(allow_connect=[("127.0.0.1", port)]).fork(at=1).replay(agent)
        assert opened.value == "gpt-4o-mini-2024-07-18"


# ---- runs that others recorded --------------------------------------------------------------------------------------


def test_a_run_of_others_is_forked_by_its_meaning(scene: Made, server: Echo) -> None:
    def agent() -> list[str]:
        told = []
        with agent_run("others", input="go"):
            for question in ("a", "b", "c"):
                asked = {"model": "small-1", "messages": [{"role": "user", "content": question}]}
                told.append(with_httpx(f"{server.url}/v1/chat/completions", asked)["choices"][0]["message"]["content"])
                told.append(asyncio.run(slow(question)))
        return told

    made = scene(agent)
    made.run = of_others(made.run)
    assert is_foreign(made.run)
    server.requests.clear()
    RAN.clear()
    port = int(server.url.rpartition(":")[2])
    fork = made.replayer(allow_connect=[("127.0.0.1", port)]).fork(at=4, changes={"temperature": 0})
    result = fork.replay(agent)
    assert (result.differences, result.verdict.exit_code) == ((), 0)
    assert result.value[:4] == made.value[:4]
    assert ([asked["messages"][0]["content"] for asked in server.asked], RAN) == (["c"], ["b", "c"])
    kept = made.made(result)
    assert [step.answered_from is not None for step in kept.steps] == [True, True, True, False, False, False]
    assert kept.forked_from == made.run.run_id


def test_a_run_of_others_is_left_at_the_first_difference(scene: Made, server: Echo) -> None:
    questions = ["a", "b", "c"]

    def agent() -> list[str]:
        with agent_run("others", input="go"):
            asked = [{"model": "small-1", "messages": [{"role": "user", "content": question}]} for question in questions]
            return [with_httpx(f"{server.url}/v1/chat/completions", body)["choices"][0]["message"]["content"] for body in asked]

    made = scene(agent)
    made.run = of_others(made.run)
    server.requests.clear()
    questions[1] = "B"
    port = int(server.url.rpartition(":")[2])
    result = made.replayer(policy=Policy(leave=True), allow_connect=[("127.0.0.1", port)]).replay(agent)
    assert [difference.kind for difference in result.differences] == ["input"]
    assert [asked["messages"][0]["content"] for asked in server.asked] == ["B", "c"]
    assert (len(result.verdict.left), result.value[0]) == (1, made.value[0])


def of_others(run: Run) -> Run:
    """A run as another instrumentation would have told it: messages and arguments, no exchanges, no places."""
    less: dict[str, Any] = {"path": None, "process": None, "seq_start": None, "seq_end": None, "typed_input": None, "typed_result": None}
    steps = tuple(replace(step, wire=None, grade="semantic", dialect="gen_ai", **less) for step in run.steps)
    return replace(run, steps=steps, path=None, command_id=None, redaction=None, grade="semantic")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_that_a_live_tool_forks_is_a_process_of_its_own(scene: Made) -> None:
    told: list[str] = []

    @tool(effect="read")
    def forking() -> str:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            scope = boundary.here()
            os.write(writing, b"" if scope is None else scope.session.process_id.encode())
            os._exit(0)
        os.waitpid(pid, 0)
        return os.read(reading, 100).decode()

    def agent() -> str:
        with agent_run("forking", input="go"):
            scope = boundary.here()
            told.append("" if scope is None else scope.session.process_id)
            return forking()

    result = scene(agent).fork(at=1)
    assert result.verdict.refusals == ()
    assert len(result.value) == 16
    assert result.value != told[-1]


# ---- commands -------------------------------------------------------------------------------------------------------


def test_a_live_command_runs_and_is_kept(scene: Made, tmp_path: Path) -> None:
    words = ["sh", "-c", f"echo told; echo x >> {tmp_path / 'made'}"]

    def agent() -> str:
        with agent_run("commands", input="go"):
            return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    made = scene(agent)
    closed = made.fork(at=1)
    assert ("--allow-effect sh" in closed.verdict.refusals[0]["text"], (tmp_path / "made").read_text()) == (True, "x\n")
    opened = made.fork(at=1, allow_effect=["sh"], target="here")
    assert (opened.value, (tmp_path / "made").read_text()) == ("told\n", "x\nx\n")
    (step,) = made.made(opened).steps
    assert isinstance(step.output, dict)
    assert step.output["result"]["stdout"] == "told\n"
