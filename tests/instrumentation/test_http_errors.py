"""The bodies of urllib's errors: nobody but the agent waits for them, and a replay gives it what it read."""

import json
import socket
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPResponse, IncompleteRead
from typing import Any, TypeAlias

import pytest

from spanreplay.boundary.http_errors import hold_bodies
from spanreplay.content import urllib_bodies
from spanreplay.content.codec import decode_exception, encode_exception
from spanreplay.instrumentation import tool
from spanreplay.semconv import attributes as names
from support.taped import Tape, recording

NOT_ALL = "the rest of its body, which nobody had read"


class Server:
    """The other end of a connection over which an error comes."""

    def __init__(self, *headers: str) -> None:
        ours, self._theirs = socket.socketpair()
        self.send("\r\n".join(["HTTP/1.1 503 Busy", *headers, "", ""]).encode())
        self.response = HTTPResponse(ours)
        ours.close()  # the response holds it
        self.response.begin()
        self.error = urllib.error.HTTPError("http://localhost/x", 503, "Busy", self.response.headers, self.response)

    def send(self, data: bytes) -> None:
        self._theirs.sendall(data)

    def end(self) -> None:
        self._theirs.close()


Serve: TypeAlias = Callable[..., Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Makes servers, which are gone after the test."""
    with ExitStack() as stack:

        def make(*headers: str) -> Server:
            server = Server(*headers)
            stack.callback(server.end)
            stack.callback(server.response.close)
            return server

        yield make


@contextmanager
def raised(server: Server) -> Iterator[tuple[Tape, urllib.error.HTTPError]]:
    """The step of a tool has ended with the error."""

    @tool(effect="read")
    def ask() -> None:
        raise server.error

    with recording() as tape:
        with pytest.raises(urllib.error.HTTPError) as caught:
            ask()
        yield tape, caught.value


def kept(tape: Tape) -> tuple[bytes, list[str]]:
    """What a replay gives the agent to read, and what is said not to be kept."""
    step = tape.steps[-1]
    again: Any = decode_exception(step[names.STEP_ERROR])
    return again.read(), json.loads(step.get(names.STEP_LOSSY, "[]"))


FRAMES: dict[str, tuple[list[str], Callable[[bytes], bytes], bytes]] = {
    "length": (["Content-Length: 8"], bytes, b""),
    "chunked": (["Transfer-Encoding: chunked"], lambda data: b"%x\r\n%s\r\n" % (len(data), data), b"0\r\n\r\n"),
    "to the end": ([], bytes, b""),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_a_body_that_does_not_come_is_not_waited_for(serve: Serve, frame: str) -> None:
    headers, made, end = FRAMES[frame]
    server = serve(*headers)
    with raised(server) as (tape, error):
        assert kept(tape) == (b"", [f"{names.STEP_ERROR} ({NOT_ALL})"])
        server.send(made(b"not "))
        assert error.read(4) == b"not "
        assert kept(tape) == (b"not ", [f"{names.STEP_ERROR} ({NOT_ALL})"])
        server.send(made(b"here") + end)
        server.end()
        assert error.read() == b"here"
        assert kept(tape) == (b"not here", [])
        assert error.read() == b""


@pytest.mark.parametrize("frame", FRAMES)
def test_what_has_come_is_kept_though_nobody_reads_it(serve: Serve, frame: str) -> None:
    headers, made, end = FRAMES[frame]
    server = serve(*headers)
    server.send(made(b"not "))
    with raised(server) as (tape, error):
        assert kept(tape) == (b"not ", [f"{names.STEP_ERROR} ({NOT_ALL})"])
        server.send(made(b"here") + end)
        server.end()
        assert error.read() == b"not here"
        assert kept(tape) == (b"not here", [])


def test_what_was_read_of_a_chunk_that_has_not_all_come_is_kept(serve: Serve) -> None:
    server = serve("Transfer-Encoding: chunked")
    server.send(b"8\r\nnot ")
    with raised(server) as (tape, error):
        assert error.read(4) == b"not "
        assert kept(tape) == (b"not ", [f"{names.STEP_ERROR} ({NOT_ALL})"])
        server.send(b"here\r\n0\r\n\r\n")
        assert error.read() == b"here"
        assert kept(tape) == (b"not here", [])


def test_of_a_body_that_nobody_reads_nothing_is_told_again(serve: Serve) -> None:
    server = serve("Content-Length: 8")
    server.send(b"not ")
    with raised(server) as (tape, error):
        (end,) = tape.ends.values()
        before = end.attributes
        server.end()
        error.close()
        assert end.attributes is before


def test_all_of_it_is_kept_where_all_has_come(serve: Serve) -> None:
    server = serve("Content-Length: 8")
    server.send(b"not here")
    with raised(server) as (tape, error):
        assert kept(tape) == (b"not here", [])
        assert error.readline() == b"not here"


def test_an_agent_that_stops_to_read_is_given_no_more_by_a_replay(serve: Serve) -> None:
    server = serve("Content-Length: 8")
    with raised(server) as (tape, error):
        server.send(b"no")
        assert error.read(2) == b"no"
        error.close()
        server.end()
        assert kept(tape)[0] == b"no"


def test_each_step_that_an_error_ends_keeps_what_was_not_read_before(serve: Serve) -> None:
    server = serve("Content-Length: 8")
    begun: list[bytes] = []

    @tool(effect="read")
    def inner() -> None:
        raise server.error

    @tool(effect="read")
    def outer() -> None:
        try:
            inner()
        except urllib.error.HTTPError as error:
            server.send(b"not h")
            begun.append(error.read(4))
            raise

    with recording() as tape:
        with pytest.raises(urllib.error.HTTPError) as caught:
            outer()
        server.send(b"ere")
        assert begun == [b"not "]
        assert caught.value.read() == b"here"
    steps = {step[names.STEP_NAME]: step for step in tape.steps}
    bodies = {name: decode_exception(step[names.STEP_ERROR]) for name, step in steps.items()}
    assert {name: error.read() for name, error in bodies.items()} == {"inner": b"not here", "outer": b"here"}  # type: ignore[attr-defined]
    assert all(json.loads(step[names.STEP_LOSSY]) == [] for step in steps.values())


def test_the_body_of_a_cause_is_kept_as_it_comes(serve: Serve) -> None:
    server = serve("Content-Length: 8")

    @tool(effect="read")
    def ask() -> None:
        raise RuntimeError("no") from server.error

    with recording() as tape:
        with pytest.raises(RuntimeError) as caught:
            ask()
        assert json.loads(tape.steps[-1][names.STEP_LOSSY]) == [f"{names.STEP_ERROR} (__cause__, {NOT_ALL})"]
        server.send(b"not here")
        cause: Any = caught.value.__cause__
        assert cause.read() == b"not here"
    again: Any = decode_exception(tape.steps[-1][names.STEP_ERROR])
    assert again.__cause__.read() == b"not here"
    assert json.loads(tape.steps[-1][names.STEP_LOSSY]) == []


def test_secrets_are_taken_out_of_what_comes_later(serve: Serve) -> None:
    server = serve("Content-Length: 35")
    with raised(server) as (tape, error):
        server.send(b'{"api_key": "abcdef-123456-geheim"}')
        assert b"geheim" in error.read()
        assert "geheim" not in str(tape.steps)
        assert json.loads(tape.steps[-1][names.STEP_REDACTED]) == {names.STEP_ERROR: 1}


def test_a_body_that_is_cut_breaks_where_the_agent_reads(serve: Serve) -> None:
    server = serve("Content-Length: 8")
    server.send(b"not ")
    server.end()
    with raised(server) as (tape, error):
        with pytest.raises(IncompleteRead) as cut:
            error.read()
        assert cut.value.partial == b"not "
        assert kept(tape) == (b"not ", [f"{names.STEP_ERROR} ({NOT_ALL})"])


def test_a_connection_that_breaks_says_so_where_the_agent_reads(serve: Serve) -> None:
    server = serve("Content-Length: 8")
    server.send(b"not ")
    hold_bodies(server.error)
    raw: Any = server.response.fp.raw
    raw._failure = ConnectionResetError("reset by peer")
    with pytest.raises(ConnectionResetError):
        server.error.read()


def test_of_a_long_body_the_beginning_is_kept_and_the_agent_reads_all(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urllib_bodies, "MOST", 6)
    for headers in (["Content-Length: 10"], []):
        server = serve(*headers)
        with raised(server) as (tape, error):
            server.send(b"0123456789")
            server.end()
            assert error.read(3) + error.read() == b"0123456789"
            assert kept(tape) == (b"012345", [f"{names.STEP_ERROR} ({NOT_ALL})"])


def test_a_connection_keeps_its_time_out(serve: Serve) -> None:
    server = serve("Content-Length: 8")
    connection: Any = server.response.fp.raw._sock  # type: ignore[attr-defined]
    connection.settimeout(0.01)
    hold_bodies(server.error)
    assert connection.gettimeout() == 0.01
    with pytest.raises(TimeoutError):
        server.error.read()
    assert encode_exception(server.error).lost == (NOT_ALL,)
