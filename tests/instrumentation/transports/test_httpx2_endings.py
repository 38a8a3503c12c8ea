"""Calls of the real SDKs that do not end well, or not at all: left early, collected, refused, cut, late, cancelled."""

import asyncio
import gc
import json
import threading
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest

from spanreplay.semconv import attributes as names
from support.http_tape import ReadBeyond, Tape, awaited, record, replay
from support.model_server import (
    Drop,
    ModelServer,
    Scripted,
    as_events,
    as_json,
    chat,
    chat_chunks,
)
from support.sdk_agents import (
    ASK,
    KEY,
    MODEL,
    aclient,
    caught,
    client,
    experiment,
    openai_chat,
    openai_chat_async,
    openai_stream,
)

# ---- streams that are not read to their end -----------------------------------------------------------------------


def test_a_stream_left_early_keeps_the_chunks_received(server: ModelServer) -> None:
    rest = threading.Event()

    def agent() -> Any:
        with client(server).chat.completions.create(model=MODEL, messages=ASK, stream=True) as stream:
            for chunk in stream:
                if chunk.choices[0].delta.content:
                    return chunk.choices[0].delta.content
        return None

    value, recorded = experiment(server, agent, as_events(chat_chunks("Par", "is"), done=True, holds={2: rest}))
    assert value == "Par"
    (step,) = recorded.steps
    assert step.outcome == "abandoned"
    assert not step.ended.failed if step.ended else False
    assert step[names.WIRE_RESPONSE_COMPLETE] is False
    assert b'"Par"' in step.body
    assert b'"is"' not in step.body


def test_reading_on_where_the_recording_stopped_is_refused(server: ModelServer) -> None:
    rest = threading.Event()

    def agent(*, further: bool) -> Any:
        with client(server).chat.completions.create(model=MODEL, messages=ASK, stream=True) as stream:
            return [c.model_dump_json() for c in stream] if further else next(iter(stream)).model_dump_json()

    server.script(as_events(chat_chunks("Par", "is"), done=True, holds={1: rest}))
    _, recorded = record(lambda: agent(further=False))
    tape = Tape(recorded)
    with pytest.raises(ReadBeyond):
        replay(lambda: agent(further=True), tape)
    assert [step.outcome for step in tape.ended_steps] == ["interrupted"]
    assert tape.turns[0].given_up == 1


async def _aleave(server: ModelServer) -> Any:
    async with aclient(server) as c:
        async with await c.chat.completions.create(model=MODEL, messages=ASK, stream=True) as stream:
            async for chunk in stream:
                return chunk.model_dump_json()
    return None


def test_an_async_stream_left_early(server: ModelServer) -> None:
    rest = threading.Event()
    run = awaited(lambda: _aleave(server))
    _, recorded = experiment(server, run, as_events(chat_chunks("Par", "is"), done=True, holds={1: rest}))
    assert [step.outcome for step in recorded.steps] == ["abandoned"]


def test_a_stream_that_nobody_closes_ends_when_it_is_collected(server: ModelServer) -> None:
    rest = threading.Event()

    def agent() -> Any:
        c = client(server)
        stream = c.chat.completions.create(model=MODEL, messages=ASK, stream=True)
        first = next(iter(stream)).model_dump_json()
        del stream
        gc.collect()
        return first

    _, recorded = experiment(server, agent, as_events(chat_chunks("Par", "is"), done=True, holds={1: rest}))
    assert [step.outcome for step in recorded.steps] == ["abandoned"]


def test_a_response_that_nobody_reads_ends_when_it_is_collected(server: ModelServer) -> None:
    def agent() -> Any:
        with httpx2.Client(verify=False) as c:
            answer = c.send(c.build_request("GET", f"{server.url}/page"), stream=True)
            status = answer.status_code
            del answer
            gc.collect()
            return status

    _, recorded = experiment(server, agent, Scripted(parts=[b"text"]))
    assert [(s.outcome, s[names.STEP_KIND], s.body) for s in recorded.steps] == [("abandoned", "io", b"")]


def test_a_stream_cut_by_the_other_side_replays_as_the_same_exception(server: ModelServer) -> None:
    run = caught(lambda: openai_stream(server))
    value, recorded = experiment(server, run, as_events(chat_chunks("Par", "is"), holds={2: Drop}))
    assert value[0] is openai.APIConnectionError
    assert value[3] is httpx2.RemoteProtocolError
    (step,) = recorded.steps
    assert step.outcome == "error"
    assert step[names.ERROR_TYPE].endswith("RemoteProtocolError")
    assert b'"Par"' in step.body
    assert step[names.WIRE_RESPONSE_COMPLETE] is False


def test_a_stream_without_its_terminal_event(server: ModelServer) -> None:
    _, recorded = experiment(server, lambda: openai_stream(server), as_events(chat_chunks("Par")))
    (step,) = recorded.steps
    assert step.outcome in ("ok", "malformed")
    assert step[names.WIRE_RESPONSE_COMPLETE] is True, "the body was read to its end"


# ---- failures -----------------------------------------------------------------------------------------------------

BUSY = {"error": {"message": "slow down", "type": "rate_limit_error", "param": None, "code": None}}


@pytest.mark.parametrize("agent", [openai_chat, openai_chat_async])
def test_a_retry_is_a_step_of_its_own(server: ModelServer, agent: Callable[[ModelServer], Any]) -> None:
    run = awaited(lambda: agent(server)) if asyncio.iscoroutinefunction(agent) else lambda: agent(server)
    busy = as_json(BUSY, status=429, retry_after_ms="1")
    _, recorded = experiment(server, run, busy, as_json({}, status=503, retry_after_ms="1"), as_json(chat()))
    first, second, third = recorded.steps
    assert [s.outcome for s in recorded.steps] == ["error", "error", "ok"]
    assert [s[names.STEP_ATTEMPT] for s in recorded.steps] == [1, 2, 3]
    assert names.STEP_RETRY_OF not in first.attributes
    assert second[names.STEP_RETRY_OF] == first.started.span_id
    assert third[names.STEP_RETRY_OF] == second.started.span_id
    assert first[names.ERROR_TYPE] == "429"
    assert first.ended is not None
    assert first.ended.failed
    assert first.ended.message == "slow down"


def test_the_same_question_asked_again_is_no_retry(server: ModelServer) -> None:
    _, recorded = experiment(server, lambda: [openai_chat(server), openai_chat(server)], as_json(chat()))
    assert [s[names.STEP_ATTEMPT] for s in recorded.steps] == [1, 1]
    assert not any(names.STEP_RETRY_OF in s.attributes for s in recorded.steps)


def test_a_rejected_request_replays_as_the_same_exception(server: ModelServer) -> None:
    bad = {"error": {"message": "unknown model", "type": "invalid_request_error", "param": "model", "code": "model_not_found"}}
    value, recorded = experiment(server, caught(lambda: openai_chat(server)), as_json(bad, status=400))
    assert value[0] is openai.BadRequestError
    assert recorded.steps[0].outcome == "error"
    assert recorded.steps[0][names.ERROR_TYPE] == "400"


@pytest.mark.parametrize("retries", [0, 1])
def test_a_timeout_replays_as_the_same_exception(server: ModelServer, retries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    never = threading.Event()

    def agent() -> Any:
        c = client(server, timeout=httpx2.Timeout(5, read=0.05), max_retries=retries)
        return c.chat.completions.create(model=MODEL, messages=ASK).model_dump_json()

    value, recorded = experiment(server, caught(agent), Scripted(before=never))
    assert value[0] is openai.APITimeoutError
    assert value[3] is httpx2.ReadTimeout
    assert [s.outcome for s in recorded.steps] == ["timeout"] * (retries + 1)
    assert [s[names.STEP_ATTEMPT] for s in recorded.steps] == list(range(1, retries + 2))
    assert names.HTTP_RESPONSE_STATUS_CODE not in recorded.steps[0].attributes


@pytest.mark.parametrize("is_async", [False, True])
def test_a_refused_connection_replays_as_the_same_exception(server: ModelServer, is_async: bool) -> None:
    with ModelServer() as closed:
        url = closed.url

    def agent() -> Any:
        with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as c:
            return c.chat.completions.create(model=MODEL, messages=ASK)

    async def aagent() -> Any:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as c:
            return await c.chat.completions.create(model=MODEL, messages=ASK)

    value, recorded = experiment(server, caught(awaited(aagent) if is_async else agent), Scripted())
    assert value[0] is openai.APIConnectionError
    assert value[3] is httpx2.ConnectError
    assert [s.outcome for s in recorded.steps] == ["error"]


def test_a_malformed_body_is_kept_as_received(server: ModelServer) -> None:
    broken = Scripted(headers={"content-type": "application/json"}, parts=[b'{"id": "chatcmpl-1", "choi'])
    value, recorded = experiment(server, caught(lambda: openai_chat(server)), broken)
    assert value[0] is json.JSONDecodeError
    (step,) = recorded.steps
    assert step.outcome == "malformed"
    assert step.body == b'{"id": "chatcmpl-1", "choi'
    assert step.ended is not None
    assert step.ended.message


def test_a_cancelled_call_is_cancelled_again_by_its_caller(server: ModelServer) -> None:
    never = threading.Event()

    async def agent() -> Any:
        async with aclient(server) as c:
            try:
                await asyncio.wait_for(c.chat.completions.create(model=MODEL, messages=ASK), 0.1)
            except TimeoutError:
                return "timed out"

    value, recorded = experiment(server, awaited(agent), Scripted(before=never))
    assert value == "timed out"
    assert [s.outcome for s in recorded.steps] == ["cancelled"]


def test_a_stream_cancelled_half_way_is_cancelled_again_by_its_caller(server: ModelServer) -> None:
    never = threading.Event()

    async def agent() -> Any:
        got: list[str] = []

        async def read(c: openai.AsyncOpenAI) -> None:
            async for chunk in await c.chat.completions.create(model=MODEL, messages=ASK, stream=True):
                got.append(chunk.model_dump_json())  # noqa: PERF401 — what came before the cancellation counts

        async with aclient(server) as c:
            try:
                await asyncio.wait_for(read(c), 0.2)
            except TimeoutError:
                return got

    value, recorded = experiment(server, awaited(agent), as_events(chat_chunks("Par", "is"), holds={2: never}))
    assert len(value) == 2
    assert [s.outcome for s in recorded.steps] == ["cancelled"]


def test_parallel_calls_keep_their_answers(server: ModelServer) -> None:
    async def agent() -> Any:
        async with aclient(server) as c:

            async def ask(word: str) -> str:
                made = await c.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": word}])
                return f"{word}: {made.choices[0].message.content}"

            first = await ask("first")  # before its first request the SDK asks a thread for the platform: those after it keep their order
            return [first, *await asyncio.gather(*(ask(word) for word in ("a", "b", "c")))]

    script = [as_json(chat(text)) for text in ("none", "one", "two", "three")]
    _, recorded = experiment(server, awaited(agent), *script)
    assert [s.outcome for s in recorded.steps] == ["ok"] * 4
