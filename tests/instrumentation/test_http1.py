"""HTTP/1.1 responses written and taken apart, with ``http.client`` as the other side."""

import http.client
import io
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.instrumentation import http1
from spanreplay.instrumentation.http_body import Headers
from spanreplay.instrumentation.http_reply import Reply

CHUNKS = st.lists(st.binary(min_size=1, max_size=30), max_size=5)


def wire(given_reply: Reply) -> bytes:
    return http1.head(given_reply) + b"".join(data for data, _ in http1.pieces(given_reply))


class Socket:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: Any) -> io.BytesIO:
        return io.BytesIO(self._data)


def reply(chunks: list[bytes], framing: str) -> Reply:
    headers: Headers = {
        "chunked": [("Transfer-Encoding", "chunked")],
        "length": [("Content-Length", str(sum(map(len, chunks))))],
        "close": [("X", "y")],
    }[framing]
    return Reply(status=200, headers=headers, chunks=chunks)


@settings(max_examples=80, deadline=None)
@given(chunks=CHUNKS, framing=st.sampled_from(["chunked", "length", "close"]), cuts=st.lists(st.integers(0, 400), max_size=6))
def test_written_and_taken_apart_anywhere(chunks: list[bytes], framing: str, cuts: list[int]) -> None:
    data = wire(reply(chunks, framing))
    peer = http.client.HTTPResponse(Socket(data))  # type: ignore[arg-type]
    peer.begin()
    assert peer.read() == b"".join(chunks)
    for early in (b"", b"HTTP/1.1 100 Continue\r\n\r\n"):
        sent, body = early + data, http1.Body()
        places = sorted({0, *(cut % (len(sent) + 1) for cut in cuts), len(sent)})
        parts = [part for start, end in pairwise(places) for part in body.feed(sent[start:end])]
        assert b"".join(parts) == b"".join(chunks)
    if framing == "chunked":
        assert http1.Body().feed(data) == chunks


@pytest.mark.parametrize("status", [204, 304, 101])
def test_a_response_without_a_body(status: int) -> None:
    assert http1.Body().feed(b"HTTP/1.1 %d X\r\ncontent-length: 3\r\n\r\nabc" % status) == []
    assert http1.Body(bodyless=True).feed(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc") == []


@settings(max_examples=80, deadline=None)
@given(data=st.lists(st.binary(max_size=40) | st.sampled_from([b"HTTP/1.1 200 OK\r\n", b"transfer-encoding: chunked\r\n\r\n", b"5\r\n"])))
def test_any_bytes(data: list[bytes]) -> None:
    body = http1.Body()
    assert all(isinstance(part, bytes) for piece in data for part in body.feed(piece))


def test_a_head_without_end_is_given_up() -> None:
    body = http1.Body()
    for _ in range(3):
        assert body.feed(b"x" * (http1.MAX_HEAD // 2)) == []
    assert body.feed(b"\r\n\r\nbody") == []


def test_what_no_header_can_hold_is_left_out() -> None:
    given_reply = Reply(status=200, headers=[("a b", "c"), ("x", "1\r\ny: 2"), ("ü", "z"), ("w", "€ü")], chunks=[])
    assert http1.head(given_reply) == "HTTP/1.1 200 OK\r\nx: 1  y: 2\r\nw: ?ü\r\n\r\n".encode("latin-1")
