"""A fault that is injected ends as it would in life: for the SDK above a transport, and for whoever calls a tool."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx
import openai
import pytest

from spanreplay.instrumentation import agent_run, tool
from spanreplay.replay.reexecution.policy import Fault, PolicyError
from support.forking import Scene
from support.model_server import ModelServer, as_json, chat, message
from support.sdk_agents import ASK, CLAUDE, MODEL, claude, client, close_clients


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_clients()


@tool(effect="irreversible")
def send(to: str) -> str:
    """Acts."""
    return f"sent to {to}"


@tool(effect="read")
async def fetch(key: str) -> str:
    """Reads, asynchronously."""
    return f"value of {key}"


Made = Callable[[Callable[[], Any]], Scene]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Made:
    return lambda agent: Scene(agent, monkeypatch)


# ---- models ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as made:
        yield made


def asking(server: ModelServer, retries: int = 1) -> Callable[[], str]:
    made = client(server, max_retries=retries)

    def agent() -> str:
        with agent_run("asking", input="go"):
            return made.chat.completions.create(model=MODEL, messages=ASK).choices[0].message.content or ""

    return agent


@pytest.mark.parametrize(
    ("fault", "raised", "attempts"),
    [
        ("error", openai.InternalServerError, 2),
        ("rejected", openai.PermissionDeniedError, 1),
        ("malformed", json.JSONDecodeError, 1),
    ],
)
def test_a_model_call_fails_through_the_sdk(server: ModelServer, scene: Made, fault: str, raised: type[Exception], attempts: int) -> None:
    server.script(as_json(chat()))
    made = scene(asking(server))
    server.requests.clear()
    result = made.fork(at=1, faults=[fault])
    assert type(result.error) is raised
    assert server.requests == []
    kept = made.made(result)
    assert [(step.injected, step.attempt) for step in kept.steps] == [(fault, number) for number in range(1, attempts + 1)]
    assert kept.forked_from == made.run.run_id


def test_a_model_that_does_not_answer_in_time_is_the_transports_time_out(server: ModelServer, scene: Made) -> None:
    server.script(as_json(chat()))
    made = scene(asking(server, retries=0))
    result = made.fork(at=1, faults=["timeout"])
    assert type(result.error) is openai.APITimeoutError
    assert [step.outcome for step in made.made(result).steps] == ["timeout"]


def test_another_sdk_fails_in_its_own_way(server: ModelServer, scene: Made) -> None:
    server.script(as_json(message({"type": "text", "text": "Paris."})))
    asked = claude(server, max_retries=1)

    def agent() -> Any:
        with agent_run("claude", input="go"):
            return asked.messages.create(model=CLAUDE, max_tokens=9, messages=ASK)

    made = scene(agent)
    assert type(made.fork(at=1, faults=["error"]).error) is anthropic.InternalServerError
    assert type(made.fork(at=1, faults=["rejected"]).error) is anthropic.PermissionDeniedError


def test_an_async_client_times_out(server: ModelServer, scene: Made) -> None:
    server.script(as_json(chat()))

    async def agent() -> int:
        async with httpx.AsyncClient(verify=False) as asked:
            with agent_run("async", input="go"):
                body = {"model": MODEL, "messages": ASK}
                return (await asked.post(f"{server.url}/v1/chat/completions", json=body)).status_code

    made = scene(lambda: asyncio.run(agent()))
    assert type(made.fork(at=1, faults=["timeout"]).error) is httpx.ReadTimeout
    assert made.fork(at=1, faults=["error"]).value == 500


def test_a_slow_answer_is_the_recorded_one_late(server: ModelServer, scene: Made) -> None:
    server.script(as_json(chat("Paris.")))
    made = scene(asking(server))
    server.requests.clear()
    result = made.fork(at=1, faults=["slow:0.05"])
    assert result.value == "Paris."
    assert server.requests == []
    (step,) = made.made(result).steps
    assert step.ended_ns is not None
    assert step.ended_ns - step.started_ns >= 50_000_000
    assert (step.injected, step.answered_from) == ("slow", (made.run.run_id, 1))


# ---- tools ----------------------------------------------------------------------------------------------------------


def sending() -> str:
    with agent_run("sending", input="go"):
        return send("ana")


@pytest.mark.parametrize(
    ("fault", "raised", "outcome"),
    [
        ("timeout", TimeoutError, "timeout"),
        ("error", RuntimeError, "error"),
        ("rejected", PermissionError, "rejected"),
    ],
)
def test_a_tool_raises_and_does_not_act(scene: Made, fault: str, raised: type[Exception], outcome: str) -> None:
    made = scene(sending)
    result = made.fork(at=1, faults=[fault])
    assert type(result.error) is raised
    assert "injected" in str(result.error)
    assert result.verdict.refusals == ()
    (step,) = made.made(result).steps
    assert (step.outcome, step.injected, step.effect) == (outcome, fault, "irreversible")


def test_a_tool_gives_what_is_no_result(scene: Made) -> None:
    made = scene(sending)
    result = made.fork(at=1, faults=["malformed"])
    with pytest.raises(ValueError, match="Unterminated"):
        json.loads(result.value)
    assert made.made(result).steps[0].outcome == "malformed"


def test_a_slow_tool_runs_into_the_agents_own_time_out(scene: Made) -> None:
    async def agent() -> str:
        with agent_run("waiting", input="go"):
            try:
                return await asyncio.wait_for(fetch("a"), 0.05)
            except TimeoutError:
                return "too late"

    made = scene(lambda: asyncio.run(agent()))
    result = made.fork(at=1, faults=["slow:30"])
    assert result.value == "too late"


def test_later_steps_fail_too(scene: Made) -> None:
    def agent() -> list[str]:
        told = []
        with agent_run("several", input="go"):
            for key in ("a", "b", "c"):
                try:
                    told.append(send(key))
                except Exception as error:
                    told.append(type(error).__name__)
        return told

    made = scene(agent)
    assert made.fork(at=2, faults=["timeout", "rejected@3"]).value == ["sent to a", "TimeoutError", "PermissionError"]
    with pytest.raises(PolicyError, match="before step 3"):
        made.fork(at=3, faults=["error@2"])


@pytest.mark.parametrize("text", ["", "late", "timeout:3@2", "error@0", "slow:x", "@3"])
def test_what_is_no_fault_is_refused(text: str) -> None:
    with pytest.raises(PolicyError, match="a fault is one of timeout, error, malformed, rejected, slow"):
        Fault.read(text, 1)
