"""The model proxy as an application: what it passes on, and what it does not."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from spanreplay.boundary.boundary import here
from spanreplay.instrumentation.transports import httpx as transport
from spanreplay.replay.proxy.http_app import STOP, ModelProxy
from spanreplay.replay.proxy.upstreams import Upstream
from spanreplay.semconv import attributes as names
from support.model_server import Drop, ModelServer, Scripted, as_events, as_json, chat, chat_chunks
from support.taped import Tape, recording, replayed

ASK = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
HOST = (b"host", b"127.0.0.1:8000")


class Asked:
    """A request, and what the application has sent for it."""

    def __init__(self, path: str, body: bytes = ASK, headers: tuple[tuple[bytes, bytes], ...] = (HOST,), leave_after: int = -1) -> None:
        raw, _, query = path.partition("?")
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": "POST",
            "raw_path": raw.encode(),
            "path": raw,
            "query_string": query.encode(),
            "headers": [(b"content-type", b"application/json"), *headers],
            "server": ("127.0.0.1", 8000),
        }
        self._body = body
        self._leave_after = leave_after
        self._left = asyncio.Event()
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.chunks: list[bytes] = []
        self.whole = False

    async def receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None  # type: ignore[assignment]
            return {"type": "http.request", "body": body, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
            return
        if message["body"]:
            self.chunks.append(message["body"])
        self.whole = not message.get("more_body", False)
        if len(self.chunks) == self._leave_after:
            self._left.set()

    @property
    def error(self) -> Any:
        return json.loads(b"".join(self.chunks))["error"]


@asynccontextmanager
async def proxy(url: str) -> AsyncIterator[ModelProxy]:
    made = ModelProxy([Upstream(name="openai", url=f"{url}/v1")], token="word", stop=lambda: setattr(made, "stopped", True))
    made.scope = here()
    yield made
    await made.close()


def asks(url: str, *requests: Callable[[], Asked]) -> list[Asked]:
    async def run() -> list[Asked]:
        made = []
        async with proxy(url) as app:
            for request in requests:
                made.append(request())
                await app(made[-1].scope, made[-1].receive, made[-1].send)
        return made

    return asyncio.run(run())


@pytest.fixture(autouse=True)
def _httpx() -> Iterator[None]:
    transport.install()
    yield
    transport.uninstall()


@pytest.fixture
def server() -> Any:
    with ModelServer() as made:
        yield made


def test_bytes_pass_as_they_are(server: ModelServer) -> None:
    server.script(as_json(chat(), compressed=True, x_request_id="r1"))
    headers = (HOST, (b"authorization", b"Bearer k"), (b"connection", b"keep-alive"), (b"accept-encoding", b"gzip"))
    (done,) = asks(server.url, lambda: Asked("/openai/chat%2Fx/completions?a=%20b", headers=headers))
    assert (done.status, done.whole) == (200, True)
    assert done.headers[b"content-encoding"] == b"gzip"
    assert done.headers[b"x-request-id"] == b"r1"
    (seen,) = server.requests
    assert seen.path == "/v1/chat%2Fx/completions?a=%20b"
    assert seen.body == ASK
    sent = {name.lower(): value for name, value in seen.headers.items()}
    assert (sent["host"], sent["authorization"], sent["accept-encoding"]) == (server.url.removeprefix("http://"), "Bearer k", "gzip")
    assert "connection" not in sent
    assert sent["content-length"] == str(len(ASK))


def test_what_it_does_not_pass(server: ModelServer) -> None:
    stranger = ((b"host", b"evil.example:8000"),)
    there, unknown, wrong, stop = asks(
        server.url,
        lambda: Asked("/openai/models", headers=stranger),
        lambda: Asked("/elsewhere/x"),
        lambda: Asked(STOP, headers=(HOST, (b"authorization", b"Bearer guess"))),
        lambda: Asked(STOP, headers=(HOST, (b"authorization", b"Bearer word"))),
    )
    assert (there.status, there.error["type"]) == (403, "spanreplay_wrong_host")
    assert (unknown.status, "/openai" in unknown.error["message"]) == (404, True)
    assert (wrong.status, stop.status) == (404, 200)
    assert server.requests == []


def test_failures_of_the_upstream() -> None:
    with ModelServer() as closed:
        url = closed.url
    (refused,) = asks(url, lambda: Asked("/openai/chat/completions"))
    assert (refused.status, refused.error["type"]) == (502, "spanreplay_upstream_failed")


def conversation(url: str) -> list[tuple[int, list[bytes], bool]]:
    streamed = json.dumps({**json.loads(ASK), "stream": True}).encode()
    done = asks(url, lambda: Asked("/openai/chat/completions"), lambda: Asked("/openai/chat/completions", streamed))
    return [(asked.status, asked.chunks, asked.whole) for asked in done]


def test_recorded_and_replayed(server: ModelServer) -> None:
    server.script(as_json(chat()), as_events(chat_chunks("Par", "is."), done=True))
    tape = recorded_of(lambda: conversation(server.url))
    assert [(s[names.STEP_KIND], s[names.STEP_OUTCOME]) for s in tape.steps] == [("model_call", "ok")] * 2
    assert [s[names.STEP_PATH] for s in tape.steps] == ["~AsyncClient.send#0/model_call#0", "~AsyncClient.send#1/model_call#0"]
    before = len(server.requests)
    result = replayed(tape, conversation, server.url)
    assert result.equal
    assert len(result.value[1][1]) == 5
    assert len(server.requests) == before
    other = replayed(tape, lambda: asks(server.url, lambda: Asked("/openai/chat/completions", ASK.replace(b"hi", b"ho")))[0])
    assert next((d.kind, d.field) for d in other.differences) == ("input", "messages[0].content")
    assert (other.value.status, other.value.error["type"]) == (400, "spanreplay_replay_stopped")
    assert len(server.requests) == before


def recorded_of(agent: Callable[[], Any]) -> Tape:
    with recording(whole_process=True) as tape:
        agent()
    return tape


def test_a_client_that_leaves_ends_its_stream(server: ModelServer) -> None:
    rest = threading.Event()

    def agent() -> Any:
        return asks(server.url, lambda: Asked("/openai/chat/completions", leave_after=1))[0].chunks

    server.script(as_events(chat_chunks("Par", "is."), done=True, holds={1: rest}))
    tape = recorded_of(agent)
    assert tape.outcomes == ["cancelled"]
    assert replayed(tape, agent).equal


def test_a_stream_that_is_cut_is_cut_for_the_client_too(server: ModelServer) -> None:
    def agent() -> Any:
        with pytest.raises(ConnectionAbortedError):
            asks(server.url, lambda: Asked("/openai/chat/completions"))

    server.script(as_events(chat_chunks("Par"), holds={1: Drop}))
    tape = recorded_of(agent)
    assert tape.outcomes == ["error"]
    assert replayed(tape, agent).equal


def test_a_large_answer_is_passed_on(server: ModelServer) -> None:
    server.script(Scripted(parts=[b"x" * 70_000] * 3, chunked=True))
    (done,) = asks(server.url, lambda: Asked("/openai/files"))
    assert sum(map(len, done.chunks)) == 210_000
