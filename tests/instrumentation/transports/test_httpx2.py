"""The real SDKs over httpx2: recorded against a loopback server, replayed without it."""

import asyncio
import gc
import gzip
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from spanreplay.semconv import attributes as names
from support.http_tape import Kept, Missed, ReadBeyond, Recorder, Tape, awaited, record, replay
from support.model_server import (
    Drop,
    ModelServer,
    Scripted,
    as_events,
    as_json,
    chat,
    chat_chunks,
    message,
    message_events,
    response,
    response_events,
)

KEY = "sk-testKey0123456789abcdef"
ASK: list[Any] = [{"role": "user", "content": "Capital of France?"}]
MODEL = "gpt-4o-mini"
CLAUDE = "claude-test-1"


_open: list[httpx2.Client] = []


@pytest.fixture(autouse=True)
def _close_clients() -> Iterator[None]:
    yield
    while _open:
        _open.pop().close()


def _plain_client(make: Callable[..., httpx2.Client], options: dict[str, Any]) -> httpx2.Client:
    """A client that is closed after the test, without the cost of loading certificates."""
    timeout = options.get("timeout")
    _open.append(make(verify=False) if timeout is None else make(verify=False, timeout=timeout))
    return _open[-1]


def client(server: ModelServer, **options: Any) -> openai.OpenAI:
    made = _plain_client(openai.DefaultHttpxClient, options)
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY, http_client=made, **options)


def aclient(server: ModelServer, **options: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY, http_client=openai.DefaultAsyncHttpxClient(verify=False), **options)


def claude(server: ModelServer, **options: Any) -> anthropic.Anthropic:
    made = _plain_client(anthropic.DefaultHttpxClient, options)
    return anthropic.Anthropic(base_url=server.url, api_key=KEY, http_client=made, **options)


def aclaude(server: ModelServer, **options: Any) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(
        base_url=server.url, api_key=KEY, http_client=anthropic.DefaultAsyncHttpxClient(verify=False), **options
    )


def caught(agent: Callable[[], Any]) -> Callable[[], Any]:
    """An agent whose value is the exception it raises."""

    def run() -> Any:
        try:
            return agent()
        except Exception as error:
            return type(error), str(error), getattr(error, "status_code", None), type(error.__cause__)

    return run


def experiment(server: ModelServer, agent: Callable[[], Any], *script: Scripted) -> tuple[Any, Recorder]:
    """Record, replay with the server unable to answer, compare; returns the value and the recording."""
    server.script(*script)
    value, recorded = record(agent)
    assert all(kept.outcome for kept in recorded.steps), "a step has not ended"
    assert recorded.ends == len(recorded.steps)
    before = len(server.requests)
    tape = Tape(recorded)
    again, replayed = replay(agent, tape)
    assert again == value
    assert len(server.requests) == before, "the replay sent a request"
    assert [ending(kept) for kept in replayed.steps] == [ending(kept) for kept in recorded.steps]
    assert [turn.given_up for turn in tape.turns] == [1] * len(tape.turns)
    unwatched = Tape(recorded)
    assert replay(agent, unwatched, sink=None)[0] == value
    assert [(s.path, s.outcome) for s in unwatched.ended_steps] == [(s.path, s.outcome) for s in tape.ended_steps]
    assert len(server.requests) == before
    return value, recorded


_PER_EXECUTION = {
    names.STEP_SEQ_START,
    names.STEP_SEQ_END,
    names.PROCESS_ID,
    names.WIRE_RESPONSE_CHUNKS,
    names.STEP_RETRY_OF,
    names.STEP_ERROR,
}


def ending(kept: Kept) -> dict[str, Any]:
    """All attributes that a replay must reproduce."""
    sizes = [size for size, _ in json.loads(kept.attributes.get(names.WIRE_RESPONSE_CHUNKS, "[]"))]
    return {**{name: value for name, value in kept.attributes.items() if name not in _PER_EXECUTION}, "sizes": sizes}


# ---- the SDKs -----------------------------------------------------------------------------------------------------


def openai_chat(server: ModelServer) -> Any:
    return client(server).chat.completions.create(model=MODEL, messages=ASK, temperature=0.5).model_dump_json()


async def openai_chat_async(server: ModelServer) -> Any:
    async with aclient(server) as c:
        return (await c.chat.completions.create(model=MODEL, messages=ASK)).model_dump_json()


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


def openai_stream(server: ModelServer) -> Any:
    stream = client(server).chat.completions.create(model=MODEL, messages=ASK, stream=True)
    return [chunk.model_dump_json() for chunk in stream]


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


def anthropic_stream(server: ModelServer) -> Any:
    return [e.model_dump_json() for e in claude(server).messages.create(model=CLAUDE, max_tokens=10, messages=ASK, stream=True)]


def anthropic_stream_helper(server: ModelServer) -> Any:
    with claude(server).messages.stream(model=CLAUDE, max_tokens=10, messages=ASK) as stream:
        return list(stream.text_stream), stream.get_final_message().model_dump_json()


async def anthropic_stream_helper_async(server: ModelServer) -> Any:
    async with aclaude(server) as c, c.messages.stream(model=CLAUDE, max_tokens=10, messages=ASK) as stream:
        return [text async for text in stream.text_stream], (await stream.get_final_message()).model_dump_json()


OPENAI_EVENTS = as_events(chat_chunks("Par", "is", "."), done=True)
RESPONSE_EVENTS = as_events(response_events(), named=True)
ANTHROPIC_EVENTS = as_events(message_events("Par", "is."), named=True)


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


@pytest.fixture
def _small_heap() -> Iterator[None]:
    """What is alive already is not collected, so that a collection is quick."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_small_heap")
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


@pytest.mark.usefixtures("_small_heap")
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
def test_a_timeout_replays_as_the_same_exception(server: ModelServer, retries: int) -> None:
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

            return await asyncio.gather(*(ask(word) for word in ("a", "b", "c")))

    script = [as_json(chat(text)) for text in ("one", "two", "three")]
    _, recorded = experiment(server, awaited(agent), *script)
    assert [s.outcome for s in recorded.steps] == ["ok"] * 3


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
    assert run.state["requested"] == {"call_1": first, "call_2": first, "toolu_1": second, "toolu_2": second}


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
        assert session.failures == 2
