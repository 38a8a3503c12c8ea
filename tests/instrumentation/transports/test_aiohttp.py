"""aiohttp: recorded, replayed, installed, taken out."""

import asyncio
import gc
import gzip
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import aiohttp
import httpx2
import pytest

from spanreplay.boundary import boundary
from spanreplay.instrumentation.transports import aiohttp as transport
from spanreplay.semconv import attributes as names
from support.http_tape import ReadBeyond, Recorder, Tape, Turn, record, replay
from support.model_server import Drop, ModelServer, Scripted, as_events, as_json, chat, chat_chunks
from support.sdk_agents import ASK, KEY, MODEL, experiment


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    transport.install()
    yield
    transport.uninstall()


def ran(agent: Callable[[aiohttp.ClientSession], Awaitable[Any]], **options: Any) -> Callable[[], Any]:
    """An agent with a session of its own."""

    async def run() -> Any:
        async with aiohttp.ClientSession(**options) as session:
            return await agent(session)

    return lambda: asyncio.run(run())


def asked(server: ModelServer, method: str, path: str = "/v1/search", **more: Any) -> Callable[[], Any]:
    async def agent(session: aiohttp.ClientSession) -> Any:
        async with session.request(method, server.url + path, **more) as answer:
            body = await answer.read()
            return (
                answer.status,
                answer.reason,
                body,
                [(n, v) for n, v in answer.headers.items() if n.lower() not in ("date", "set-cookie")],
            )

    return ran(agent)


GZIPPED = as_json({"rows": [1, 2]}, compressed=True)


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("GET", Scripted(headers={"content-type": "text/plain"}, parts=["schön".encode()])),
        ("GET", Scripted(headers={"content-type": "image/png"}, parts=[bytes(range(256)) * 400])),
        ("GET", GZIPPED),
        ("GET", Scripted(headers={"content-encoding": "gzip"}, parts=GZIPPED.parts, chunked=True)),
        ("GET", Scripted(parts=[b"a", b"bb", b"ccc"], chunked=True)),
        ("POST", as_json({"ok": True})),
        ("HEAD", Scripted(headers={"content-length": "12"})),
        ("DELETE", Scripted(status=204)),
        ("GET", Scripted(status=404, parts=[b"none"])),
        ("GET", Scripted(headers={"set-cookie": "id=1; Path=/"})),
    ],
)
def test_any_exchange_replays_equal(server: ModelServer, method: str, answer: Scripted) -> None:
    _, recorded = experiment(server, asked(server, method), answer)
    (step,) = recorded.steps
    assert (step[names.STEP_KIND], step[names.STEP_NAME]) == ("io", f"{method} 127.0.0.1/v1/search")
    assert step.outcome == ("error" if answer.status >= 400 else "ok")
    assert step[names.WIRE_RESPONSE_COMPLETE] is True
    assert step.body == (b"" if method == "HEAD" else b"".join(p for p in answer.parts if isinstance(p, bytes)))


async def parts() -> AsyncIterator[bytes]:
    yield b"in "
    yield b"parts"


@pytest.mark.parametrize(
    ("more", "body"),
    [
        ({"json": {"q": "ä"}}, b'{"q": "\\u00e4"}'),
        ({"data": {"a": "b"}}, b"a=b"),
        ({"data": "ü".encode()}, "ü".encode()),
        ({"data": parts}, b"in parts"),
    ],
)
def test_a_request_body_reaches_the_server_and_the_record(server: ModelServer, more: dict[str, Any], body: bytes) -> None:
    server.script(as_json({}))
    more = {name: value() if callable(value) else value for name, value in more.items()}
    _, recorded = record(asked(server, "POST", **more))
    assert server.requests[-1].body == body
    assert recorded.steps[0][names.WIRE_REQUEST_BODY] == body.decode()


def test_a_redirect_is_two_steps(server: ModelServer) -> None:
    script = [Scripted(status=302, headers={"location": "/new", "set-cookie": "a=b"}), Scripted(parts=[b"here"])]
    _, recorded = experiment(server, asked(server, "GET", "/old"), *script)
    assert [s[names.STEP_NAME] for s in recorded.steps] == ["GET 127.0.0.1/old", "GET 127.0.0.1/new"]


def test_middlewares_of_the_program_stay_around_ours(server: ModelServer) -> None:
    seen: list[int] = []

    async def theirs(request: Any, handler: Any) -> Any:
        request.headers["x-theirs"] = "1"
        answer = await handler(request)
        seen.append(answer.status)
        return answer

    async def agent(session: aiohttp.ClientSession) -> Any:
        async with session.get(f"{server.url}/page") as answer:
            return await answer.text()

    _, recorded = experiment(server, ran(agent, middlewares=[theirs]), Scripted(parts=[b"text"]))
    assert server.requests[0].headers["x-theirs"] == "1"
    assert "x-theirs" in recorded.steps[0][names.WIRE_REQUEST_HEADERS]
    assert seen == [200, 200, 200]


def test_a_stream_comes_chunk_by_chunk(server: ModelServer) -> None:
    async def agent(session: aiohttp.ClientSession) -> Any:
        body = {"model": MODEL, "messages": ASK, "stream": True}
        headers = {"authorization": f"Bearer {KEY}"}
        async with session.post(f"{server.url}/v1/chat/completions", json=body, headers=headers) as answer:
            return [line async for line in answer.content if line.strip()]

    value, recorded = experiment(server, ran(agent), as_events(chat_chunks("Par", "is", "."), done=True))
    assert len(value) == 6
    (step,) = recorded.steps
    assert (step[names.STEP_KIND], step.outcome, step[names.GEN_AI_REQUEST_MODEL]) == ("model_call", "ok", MODEL)
    assert "Paris." in step[names.GEN_AI_OUTPUT_MESSAGES]
    assert KEY not in json.dumps(step.attributes, default=str)
    assert len(json.loads(step[names.WIRE_RESPONSE_CHUNKS])) == 6


def test_a_stream_opened_before_its_turn_waits_for_it_before_its_last_chunk(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Turn, "is_to_come", True)

    def agent(turns: list[Turn]) -> Callable[[], Any]:
        async def read(session: aiohttp.ClientSession) -> list[int]:
            async with session.get(f"{server.url}/log") as answer:
                return [turns[0].waited if turns else len(part) async for part in answer.content.iter_any()]

        return ran(read)

    server.script(Scripted(parts=[b"a", b"b", b"c"], chunked=True))
    _, recorded = record(agent([]))
    tape = Tape(recorded)
    assert replay(agent(tape.turns), tape)[0] == [1, 1, 2]


def test_compressed_bytes_are_given_again_exactly(server: ModelServer) -> None:
    body = gzip.compress(b"all of it " * 50, mtime=0)

    async def agent(session: aiohttp.ClientSession) -> Any:
        async with session.get(f"{server.url}/log") as answer:
            return b"".join([part async for part in answer.content.iter_any()])

    answer = Scripted(headers={"content-encoding": "gzip"}, parts=[body[:20], body[20:]], chunked=True)
    for decompresses, expected in ((False, body), (True, b"all of it " * 50)):
        value, recorded = experiment(server, ran(agent, auto_decompress=decompresses), answer)
        assert value == expected
        assert recorded.steps[0].body == body


def test_a_stream_left_early(server: ModelServer) -> None:
    rest = threading.Event()

    async def agent(session: aiohttp.ClientSession) -> Any:
        async with session.get(f"{server.url}/log") as answer:
            return await answer.content.readany()

    value, recorded = experiment(server, ran(agent), Scripted(parts=[b"first", rest, b"second"], chunked=True))
    assert value == b"first"
    assert [(s.outcome, s.body) for s in recorded.steps] == [("abandoned", b"first")]


def test_reading_on_where_the_recording_stopped_is_refused(server: ModelServer) -> None:
    rest = threading.Event()

    def agent(*, further: bool) -> Callable[[], Any]:
        async def read(session: aiohttp.ClientSession) -> Any:
            async with session.get(f"{server.url}/log") as answer:
                return await (answer.read() if further else answer.content.readany())

        return ran(read)

    server.script(Scripted(parts=[b"first", rest, b"second"], chunked=True))
    _, recorded = record(agent(further=False))
    tape = Tape(recorded)
    with pytest.raises(ReadBeyond):
        replay(agent(further=True), tape)
    assert [(step.outcome, turn.given_up) for step, turn in zip(tape.ended_steps, tape.turns, strict=True)] == [("interrupted", 1)]


@pytest.mark.filterwarnings("ignore:Unclosed")
def test_a_response_that_nobody_reads_ends_with_its_session(server: ModelServer) -> None:
    rest = threading.Event()

    async def read(session: aiohttp.ClientSession) -> Any:
        return (await session.get(f"{server.url}/log")).status

    def agent() -> Any:
        status = ran(read)()
        gc.collect()  # a recorded response has no connection that the session could close
        return status

    _, recorded = experiment(server, agent, Scripted(parts=[b"text", rest, b"more"], chunked=True))
    assert [s.outcome for s in recorded.steps] == ["abandoned"]


# ---- failures -----------------------------------------------------------------------------------------------------


def caught(agent: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        try:
            return agent()
        except Exception as error:
            return type(error), str(error)

    return run


@pytest.mark.parametrize("chunked", [False, True])
def test_a_stream_cut_by_the_other_side(server: ModelServer, chunked: bool) -> None:
    answer = Scripted(headers={} if chunked else {"content-length": "20"}, parts=[b"first", Drop], chunked=chunked)
    value, recorded = experiment(server, caught(asked(server, "GET")), answer)
    assert value[0] is aiohttp.ClientPayloadError
    assert [(s.outcome, s.body) for s in recorded.steps] == [("error", b"first")]


def test_timeouts(server: ModelServer) -> None:
    never = threading.Event()
    for limits in ({"total": 0.1}, {"sock_read": 0.1}):
        for answer in (Scripted(before=never), Scripted(parts=[b"first", never], chunked=True)):
            agent = caught(asked(server, "GET", timeout=aiohttp.ClientTimeout(**limits)))
            value, recorded = experiment(server, agent, answer)
            assert issubclass(value[0], TimeoutError)
            assert [s.outcome for s in recorded.steps] == ["timeout"]


def test_a_refused_connection(server: ModelServer) -> None:
    with ModelServer() as closed:
        url = closed.url

    async def agent(session: aiohttp.ClientSession) -> Any:
        async with session.get(f"{url}/v1/search"):
            return None

    value, recorded = experiment(server, caught(ran(agent)), Scripted())
    assert issubclass(value[0], aiohttp.ClientConnectorError)
    assert "Cannot connect to host 127.0.0.1" in value[1]
    assert [s.outcome for s in recorded.steps] == ["error"]


def test_a_call_is_cancelled_again_by_its_caller(server: ModelServer) -> None:
    never = threading.Event()

    async def agent(session: aiohttp.ClientSession) -> Any:
        try:
            async with asyncio.timeout(0.1), session.get(f"{server.url}/log") as answer:
                return await answer.read()
        except TimeoutError:
            return "timed out"

    for answer in (Scripted(before=never), Scripted(parts=[b"first", never], chunked=True)):
        value, recorded = experiment(server, ran(agent), answer)
        assert value == "timed out"
        assert [s.outcome for s in recorded.steps] == ["cancelled"]


def test_parallel_calls_keep_their_answers(server: ModelServer) -> None:
    async def agent(session: aiohttp.ClientSession) -> Any:
        async def ask(word: str) -> Any:
            async with session.get(f"{server.url}/v1/search", params={"q": word}) as answer:
                return word, await answer.text()

        return await asyncio.gather(*(ask(word) for word in "abc"))

    _, recorded = experiment(server, ran(agent), *[Scripted(parts=[text]) for text in (b"one", b"two", b"three")])
    assert [s.outcome for s in recorded.steps] == ["ok"] * 3


# ---- its place ----------------------------------------------------------------------------------------------------


def test_off_taken_out_and_put_in_again(server: ModelServer) -> None:
    assert transport.status() == "active"
    server.script(as_json(chat()))
    assert boundary.here() is None
    assert asked(server, "GET")()[0] == 200
    transport.uninstall()
    assert transport.status() == "off"
    assert record(asked(server, "GET"))[1].steps == []
    transport.install()
    assert len(record(asked(server, "GET"))[1].steps) == 1


def test_telemetry_goes_through_while_recording_and_nowhere_in_a_replay(server: ModelServer) -> None:
    server.script(Scripted())
    export = asked(server, "POST", "/v1/traces", data=b"\x0a", headers={"content-type": "application/x-protobuf"})
    assert record(export)[1].steps == []
    (status, _, body, _), _ = replay(export, Tape(Recorder()))
    assert (status, body, len(server.requests)) == (200, b"", 1)


def test_another_version_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    transport.uninstall()
    monkeypatch.setattr(aiohttp.ClientSession, "_request", lambda self, method, str_or_url: None)
    transport.install()
    assert transport.status().startswith("unsupported: wanted ClientSession._request(self, method, str_or_url, auto_decompress")


class OverAiohttp(httpx2.AsyncBaseTransport):
    """As the transports of LiteLLM and of OpenAI's SDK that stand on aiohttp."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        async with self._session.request(request.method, str(request.url), data=await request.aread()) as answer:
            return httpx2.Response(answer.status, content=await answer.read())


def test_an_exchange_that_passes_two_clients_is_one_step(server: ModelServer) -> None:
    async def agent(session: aiohttp.ClientSession) -> Any:
        async with httpx2.AsyncClient(transport=OverAiohttp(session)) as client:
            return (await client.get(f"{server.url}/page")).text

    _, recorded = experiment(server, ran(agent), Scripted(parts=[b"text"]))
    assert [s[names.STEP_NAME] for s in recorded.steps] == ["GET 127.0.0.1/page"]
