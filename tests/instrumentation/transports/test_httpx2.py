"""The real SDKs over httpx2: recorded against a loopback server, replayed without it."""

import asyncio
import gzip
import json
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest

from spanreplay.semconv import attributes as names
from support.http_tape import Missed, Recorder, Tape, awaited, record, replay
from support.model_server import (
    ModelServer,
    Scripted,
    as_json,
    chat,
    message,
    response,
)
from support.sdk_agents import (
    ANTHROPIC_EVENTS,
    ASK,
    CLAUDE,
    KEY,
    MODEL,
    OPENAI_EVENTS,
    RESPONSE_EVENTS,
    aclaude,
    aclient,
    anthropic_stream,
    claude,
    client,
    experiment,
    openai_chat,
    openai_chat_async,
    openai_stream,
)

# ---- the SDKs -----------------------------------------------------------------------------------------------------


def openai_raw(server: ModelServer) -> Any:
    raw = client(server).chat.completions.with_raw_response.create(model=MODEL, messages=ASK)
    return raw.headers["x-request-id"], raw.parse().model_dump_json(), raw.http_response.content, raw.retries_taken


def openai_streaming_response(server: ModelServer) -> Any:
    with client(server).chat.completions.with_streaming_response.create(model=MODEL, messages=ASK) as raw:
        return raw.headers["x-request-id"], list(raw.iter_bytes())


def anthropic_message(server: ModelServer) -> Any:
    return claude(server).messages.create(model=CLAUDE, max_tokens=10, messages=ASK).model_dump_json()


async def anthropic_message_async(server: ModelServer) -> Any:
    async with aclaude(server) as c:
        return (await c.messages.create(model=CLAUDE, max_tokens=10, messages=ASK)).model_dump_json()


def openai_response(server: ModelServer) -> Any:
    return client(server).responses.create(model=MODEL, input="Capital of France?").model_dump_json()


@pytest.mark.parametrize(
    ("agent", "body"),
    [
        (openai_chat, chat()),
        (openai_chat_async, chat()),
        (openai_raw, chat()),
        (openai_streaming_response, chat()),
        (openai_response, response()),
        (anthropic_message, message()),
        (anthropic_message_async, message()),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_a_plain_answer_replays_equal(server: ModelServer, agent: Callable[[ModelServer], Any], body: Any, compressed: bool) -> None:
    run = awaited(lambda: agent(server)) if asyncio.iscoroutinefunction(agent) else lambda: agent(server)
    _, recorded = experiment(server, run, as_json(body, compressed=compressed, x_request_id="req-1"))
    (step,) = recorded.steps
    assert step[names.STEP_KIND] == "model_call"
    assert step.outcome == "ok"
    assert step.started.client
    assert step[names.STEP_NAME] == step[names.GEN_AI_REQUEST_MODEL]
    assert step[names.HTTP_RESPONSE_STATUS_CODE] == 200
    assert step[names.WIRE_RESPONSE_COMPLETE] is True
    assert step[names.GEN_AI_USAGE_INPUT_TOKENS] == 11
    assert step.body == (gzip.compress(json.dumps(body).encode(), mtime=0) if compressed else json.dumps(body).encode())
    assert json.loads(step[names.WIRE_REQUEST_BODY]) == json.loads(server.requests[0].body)
    assert step[names.STEP_ATTEMPT] == 1
    assert KEY not in json.dumps([k.attributes for k in recorded.steps], default=str)


async def openai_stream_async(server: ModelServer) -> Any:
    async with aclient(server) as c:
        return [chunk.model_dump_json() async for chunk in await c.chat.completions.create(model=MODEL, messages=ASK, stream=True)]


def openai_stream_helper(server: ModelServer) -> Any:
    with client(server).chat.completions.stream(model=MODEL, messages=ASK) as stream:
        return [event.type for event in stream], stream.get_final_completion().model_dump_json()


async def openai_stream_helper_async(server: ModelServer) -> Any:
    async with aclient(server) as c, c.chat.completions.stream(model=MODEL, messages=ASK) as stream:
        return [event.type async for event in stream], (await stream.get_final_completion()).model_dump_json()


def openai_response_stream(server: ModelServer) -> Any:
    return [e.model_dump_json() for e in client(server).responses.create(model=MODEL, input="Capital of France?", stream=True)]


def openai_response_helper(server: ModelServer) -> Any:
    with client(server).responses.stream(model=MODEL, input="Capital of France?") as stream:
        return [event.type for event in stream], stream.get_final_response().model_dump_json()


def anthropic_stream_helper(server: ModelServer) -> Any:
    with claude(server).messages.stream(model=CLAUDE, max_tokens=10, messages=ASK) as stream:
        return list(stream.text_stream), stream.get_final_message().model_dump_json()


async def anthropic_stream_helper_async(server: ModelServer) -> Any:
    async with aclaude(server) as c, c.messages.stream(model=CLAUDE, max_tokens=10, messages=ASK) as stream:
        return [text async for text in stream.text_stream], (await stream.get_final_message()).model_dump_json()


@pytest.mark.parametrize(
    ("agent", "events"),
    [
        (openai_stream, OPENAI_EVENTS),
        (openai_stream_async, OPENAI_EVENTS),
        (openai_stream_helper, OPENAI_EVENTS),
        (openai_stream_helper_async, OPENAI_EVENTS),
        (openai_response_stream, RESPONSE_EVENTS),
        (openai_response_helper, RESPONSE_EVENTS),
        (anthropic_stream, ANTHROPIC_EVENTS),
        (anthropic_stream_helper, ANTHROPIC_EVENTS),
        (anthropic_stream_helper_async, ANTHROPIC_EVENTS),
    ],
)
def test_a_stream_replays_equal(server: ModelServer, agent: Callable[[ModelServer], Any], events: Scripted) -> None:
    run = awaited(lambda: agent(server)) if asyncio.iscoroutinefunction(agent) else lambda: agent(server)
    _, recorded = experiment(server, run, events)
    (step,) = recorded.steps
    assert step.outcome == "ok"
    assert step[names.WIRE_RESPONSE_COMPLETE] is True
    assert step[names.GEN_AI_REQUEST_STREAM] is True
    assert "Paris." in step[names.GEN_AI_OUTPUT_MESSAGES]
    assert step.body == b"".join(part for part in events.parts if isinstance(part, bytes))
    since = [ns for _, ns in json.loads(step[names.WIRE_RESPONSE_CHUNKS])]
    assert since == sorted(since)


# ---- what a step is told ------------------------------------------------------------------------------------------


def test_calls_that_a_model_asked_for_are_noted_in_the_run(server: ModelServer) -> None:
    from spanreplay.boundary.session import RunContext, Session, entered

    recorder = Recorder()
    run = RunContext(run_id="1" * 32, name="agent")
    server.script(as_json(chat(None, [("call_1", "weather", "{}"), ("call_2", "news", "{}")])), ANTHROPIC_EVENTS)
    with entered(Session(mode="record", sink=recorder, open_spans=False).root(run)):
        openai_chat(server)
        anthropic_stream(server)
    first, second = (step.started.span_id for step in recorder.steps)
    asked = [(call.call_id, call.span_id) for call in run.state["asked"]]
    assert asked == [("call_1", first), ("call_2", first), ("toolu_1", second), ("toolu_2", second)]


def test_a_replay_needs_no_key_and_no_host(server: ModelServer) -> None:
    server.script(as_json(chat()))
    value, recorded = record(lambda: openai_chat(server))

    def elsewhere() -> Any:
        with openai.OpenAI(base_url="https://models.example/v1", api_key="another-key-1234567") as c:
            return c.chat.completions.create(model=MODEL, messages=ASK, temperature=0.5).model_dump_json()

    again, _ = replay(elsewhere, Tape(recorded))
    assert again == value


def test_another_question_finds_no_answer(server: ModelServer) -> None:
    server.script(as_json(chat()))
    _, recorded = record(lambda: openai_chat(server))
    before = len(server.requests)
    with pytest.raises(Missed):
        replay(lambda: client(server).chat.completions.create(model=MODEL, messages=ASK, temperature=0.6), Tape(recorded))
    assert len(server.requests) == before


def test_an_answer_without_wire_is_made_by_the_provider(server: ModelServer) -> None:
    from dataclasses import replace

    server.script(as_json(chat()))
    _, recorded = record(lambda: [openai_chat(server), openai_stream(server)][0])
    meaning = json.dumps(
        {
            "messages": [{"role": "assistant", "parts": [{"type": "text", "content": "Lyon."}], "finish_reason": "stop"}],
            "model": "gpt-4o-mini-2024-07-18",
            "response_id": "chatcmpl-9",
            "usage": {names.GEN_AI_USAGE_INPUT_TOKENS: 7, names.GEN_AI_USAGE_OUTPUT_TOKENS: 2},
        }
    )
    tape = Tape(recorded, change=lambda answer: replace(answer, exchange=None, result=meaning, outcome="ok"))

    def agent() -> Any:
        plain = json.loads(openai_chat(server))
        streamed = [json.loads(chunk) for chunk in openai_stream(server)]
        return plain["choices"][0]["message"]["content"], plain["id"], plain["usage"]["prompt_tokens"], streamed

    (text, response_id, tokens, streamed), replayed = replay(agent, tape)
    assert (text, response_id, tokens) == ("Lyon.", "chatcmpl-9", 7)
    assert "".join(c["choices"][0]["delta"].get("content") or "" for c in streamed if c["choices"]) == "Lyon."
    assert [s.outcome for s in replayed.steps] == ["ok", "ok"]


# ---- transports that are not the library's own --------------------------------------------------------------------


class Preloaded(httpx2.BaseTransport):
    """A transport that gives responses that are read already."""

    def __init__(self, make: Callable[[httpx2.Request], httpx2.Response]) -> None:
        self.made = 0
        self._make = make

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.made += 1
        return self._make(request)


@pytest.mark.parametrize(
    "make",
    [
        lambda _: httpx2.Response(200, json=chat()),
        lambda _: httpx2.Response(200, content=gzip.compress(json.dumps(chat()).encode()), headers={"content-encoding": "gzip"}),
        lambda _: httpx2.Response(200, content=iter([b'{"choices": ', b"[]}"])),
    ],
)
@pytest.mark.parametrize("wrap", [Preloaded, httpx2.MockTransport])
def test_a_response_made_in_memory(make: Any, wrap: Any) -> None:
    c = openai.OpenAI(base_url="https://api.openai.com/v1", api_key=KEY, http_client=httpx2.Client(transport=wrap(make)))

    def agent() -> Any:
        return c.chat.completions.create(model=MODEL, messages=ASK).model_dump_json()

    value, recorded = record(agent)
    (step,) = recorded.steps
    assert step.outcome == "ok"
    assert step[names.SERVER_ADDRESS] == "api.openai.com"
    assert step[names.SERVER_PORT] == 443
    again, _ = replay(agent, Tape(recorded))
    assert again == value


def test_a_transport_that_returns_a_response_read_elsewhere() -> None:
    def make(_: httpx2.Request) -> httpx2.Response:
        answer = httpx2.Response(200, stream=httpx2.ByteStream(gzip.compress(b"text")), headers={"content-encoding": "gzip"})
        answer.read()
        answer.stream = httpx2.Response(200, content=iter([b""])).stream
        return answer

    def agent() -> Any:
        with httpx2.Client(transport=Preloaded(make)) as c:
            return c.get("https://example.com/page").text

    value, recorded = record(agent)
    assert value == "text"
    assert recorded.steps[0].body == b"text"
    again, _ = replay(agent, Tape(recorded))
    assert again == "text"


def test_a_failing_sink_does_not_reach_the_agent(server: ModelServer, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Recorder):
        def __init__(self, fails_at: str) -> None:
            super().__init__()
            self.fails_at = fails_at

        def started(self, step: Any) -> None:
            if self.fails_at == "start":
                raise OSError("full")

        def ended(self, step: Any) -> None:
            raise OSError("full")

    from spanreplay.boundary.session import RunContext, Session, entered

    server.script(as_json(chat()))
    for fails_at in ("start", "end"):
        session = Session(mode="record", sink=Broken(fails_at), open_spans=False)
        with entered(session.root(RunContext(run_id="1" * 32, name="agent"))):
            assert json.loads(openai_chat(server))["id"] == "chatcmpl-1"
            assert json.loads(awaited(lambda: openai_chat_async(server))())["id"] == "chatcmpl-1"
        assert session.failures >= 2
