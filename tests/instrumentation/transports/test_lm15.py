"""lm15's transports, on modules of the same shape: recorded, replayed, left early, failed, taken out."""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import islice
from types import ModuleType, SimpleNamespace
from typing import Any, Self
from urllib.parse import urlsplit

import pytest

from spanreplay.instrumentation.transports import lm15 as transport
from spanreplay.semconv import attributes as names
from support.model_server import chat
from support.taped import recorded, replayed, run

BODY = json.dumps(chat()).encode()
SENT: list[str] = []


class TransportError(Exception):
    pass


class Timeout(TransportError):
    pass


@dataclass
class Request:
    url: str = "https://api.openai.com/v1/chat/completions"
    method: str = "POST"
    headers: list[tuple[str, str]] = field(default_factory=lambda: [("content-type", "application/json"), ("authorization", "Bearer sk-1")])
    body: bytes = b'{"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}]}'


class Response:
    def __init__(self, *, status: int, reason: str, headers: Any, http_version: str, chunks: Any, release: Any) -> None:
        self.status, self.reason, self.headers, self._chunks, self._release = status, reason, headers, chunks, release

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._release(True)


class AsyncResponse(Response):
    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._release(True)


def given(request: Request) -> dict[str, Any]:
    SENT.append(request.url)
    if "slow" in request.url:
        raise Timeout("no answer")
    headers = [("Content-Type", "application/json"), ("content-encoding", "gzip"), ("content-length", "7")]
    return {"status": 200, "reason": "OK", "headers": headers, "http_version": "HTTP/1.1"}


def parse_url(url: str) -> Any:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return SimpleNamespace(scheme=parts.scheme, host=parts.hostname, port=port, target=parts.path, is_tls=parts.scheme == "https")


class StdlibTransport:
    def stream(self, request: Request) -> Response:
        return Response(**given(request), chunks=iter([BODY[:9], BODY[9:]]), release=lambda consumed: None)


class StdlibAsyncTransport:
    async def _do_stream(self, request: Request) -> AsyncResponse:
        async def chunks() -> AsyncIterator[bytes]:
            yield BODY[:9]
            yield BODY[9:]

        async def release(_: bool) -> None:
            pass

        return AsyncResponse(**given(request), chunks=chunks(), release=release)


@pytest.fixture(autouse=True, params=["lm15", "dspy._vendor.lm15"])
def _installed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    transport.uninstall()
    shared = {"parse_url": parse_url, "ConnectTimeout": Timeout, "ReadTimeout": Timeout, "WriteTimeout": Timeout}
    for name, classes in (
        ("_sync", {"StdlibTransport": StdlibTransport, "TransportResponse": Response}),
        ("_async", {"StdlibAsyncTransport": StdlibAsyncTransport, "AsyncTransportResponse": AsyncResponse}),
    ):
        module = ModuleType(f"{request.param}.transports.{name}")
        vars(module).update(shared | classes)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    SENT.clear()
    transport.install()
    yield
    transport.uninstall()


def ask(url: str = Request.url, *, parts: int = 9) -> Any:
    with StdlibTransport().stream(Request(url)) as response:
        return response.status, b"".join(islice(response._chunks, parts))


async def aask(url: str = Request.url) -> Any:
    async with await StdlibAsyncTransport()._do_stream(Request(url)) as response:
        return response.status, b"".join([part async for part in response._chunks])


@pytest.mark.parametrize("agent", [ask, aask])
def test_an_exchange_is_a_model_call_and_is_given_again(agent: Any) -> None:
    off = run(agent)
    tape = recorded(agent)
    (step,) = tape.steps
    assert (step[names.STEP_KIND], step[names.STEP_NAME], tape.outcomes) == ("model_call", "gpt-4o-mini", ["ok"])
    assert step[names.WIRE_RESPONSE_BODY].encode() == BODY
    assert "gzip" not in step[names.WIRE_RESPONSE_HEADERS]
    assert "sk-1" not in step[names.WIRE_REQUEST_HEADERS]
    result = replayed(tape, agent)
    assert (result.equal, result.value, len(SENT)) == (True, off, 2)


def test_a_response_that_is_left_early_is_abandoned() -> None:
    assert recorded(lambda: ask(parts=1)).outcomes == ["abandoned"]


@pytest.mark.parametrize("agent", [ask, aask])
def test_a_time_out_is_one_and_is_raised_again(agent: Any) -> None:
    tape = recorded(agent, "http://localhost:8080/slow")
    assert tape.outcomes == ["timeout"]
    result = replayed(tape, agent, "http://localhost:8080/slow")
    assert (result.equal, str(result.error), len(SENT)) == (True, "no answer", 1)


def test_it_is_taken_out() -> None:
    assert transport.status() == "active"
    transport.uninstall()
    assert not hasattr(StdlibTransport.stream, "__wrapped__")
    assert not hasattr(StdlibAsyncTransport._do_stream, "__wrapped__")
