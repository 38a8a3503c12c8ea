"""Thin shells around an exchange for urllib3: its requests, its responses live and from the record.

A recorded response is given to urllib3 as bytes on the wire, which it parses with ``http.client`` as it does those of a server: chunks,
content codings, lengths and errors are then its own doing. The library reaches this module as a value; it is never imported here.
"""

import io
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from spanreplay.boundary.scope import Scope
from spanreplay.content import codec
from spanreplay.instrumentation import http1
from spanreplay.instrumentation.http_exchange import Exchange
from spanreplay.instrumentation.http_reply import BeforeTheEnd, Reply
from spanreplay.instrumentation.http_request import Head

_PORTS = {"http": 80, "https": 443}


class Sent:
    """One request of a pool: a :class:`~spanreplay.instrumentation.http_sending.Sender`.

    Args:
        lib: the module ``urllib3``.
        pool: the connection pool.
        scope: where the request is made.
        asked: the arguments of ``_make_request`` by name.
    """

    def __init__(self, lib: Any, pool: Any, scope: Scope, asked: dict[str, Any]) -> None:
        self.scope = scope
        self.head = _head(lib, pool, asked)
        self._lib = lib
        self._pool = pool
        self._asked = asked

    def ran_out(self, error: BaseException) -> bool:
        """A connection that was refused is a ``ConnectTimeoutError`` too, for old callers' sake."""
        known = self._lib.exceptions
        return isinstance(error, known.TimeoutError) and not isinstance(error, known.NewConnectionError)

    def drop(self) -> Any:
        """An empty 200."""
        return self._response(io.BytesIO(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"))

    def watch(self, response: Any, exchange: Exchange) -> None:
        """Tell the exchange what is read of a response."""
        headers = response.headers
        pairs = headers.iteritems() if hasattr(headers, "iteritems") else headers.items()
        exchange.responded(response.status, [(str(name), str(value)) for name, value in pairs])
        kind: Any = type(response)
        response.__class__ = _observed(kind)
        response._spanreplay_exchange = exchange

    def respond(self, given: Reply, exchange: Exchange) -> Any:
        """The recorded response; its body comes chunk by chunk."""
        response = self._response(_Wire(given, exchange))
        self.watch(response, exchange)
        return response

    def decode_error(self, text: str) -> BaseException:
        """The exception that sending raised, before urllib3's own retries saw it."""
        return codec.decode_exception(text)

    def time_out(self) -> BaseException:
        """What urllib3 raises when nothing is read in time."""
        made: BaseException = self._lib.exceptions.ReadTimeoutError(self._pool, self._asked["url"], "Read timed out.")
        return made

    def change(self, target: str, body: bytes) -> None:
        """Send another target and body."""
        dropped = ("content-encoding", "content-length", "transfer-encoding")
        kept = [(name, value) for name, value in self.head.headers if name.lower() not in dropped]
        self._asked["headers"] = self._lib.HTTPHeaderDict([*kept, ("content-length", str(len(body)))])
        self._asked["body"] = body
        if target != self.head.target:
            self._asked["url"] = target
        self._asked["chunked"] = False

    def _response(self, wire: Any) -> Any:
        import http.client  # urllib3 has loaded it

        asked = self._asked
        parsed = http.client.HTTPResponse(_Socket(wire), method=asked["method"])  # type: ignore[arg-type]
        parsed.begin()
        made = self._lib.HTTPResponse(
            body=parsed,
            headers=self._lib.HTTPHeaderDict(parsed.msg.items()),
            status=parsed.status,
            version=parsed.version,
            reason=parsed.reason,
            preload_content=False,
            decode_content=asked["decode_content"],
            original_response=parsed,
            enforce_content_length=asked["enforce_content_length"],
            request_method=asked["method"],
            request_url=asked["url"],
        )
        made.version_string = "HTTP/1.1"  # an argument only from 2.3 on
        made.retries = asked["retries"]
        made._connection = asked["response_conn"]
        made._pool = self._pool
        return made


def _head(lib: Any, pool: Any, asked: Mapping[str, Any]) -> Head:
    target, scheme, host, port = str(asked["url"]), str(pool.scheme), str(pool.host), pool.port
    if not target.startswith("/"):  # to a proxy, which is told the whole URL
        url = lib.util.parse_url(target)
        scheme, host, port, target = url.scheme or scheme, url.host or host, url.port, url.request_uri
    headers: Any = asked["headers"] or {}
    pairs = headers.iteritems() if hasattr(headers, "iteritems") else headers.items()
    return Head(
        method=str(asked["method"]).upper(),
        scheme=scheme,
        host=host.strip("[]"),
        port=None if port == _PORTS.get(scheme) else port,
        target=target,
        headers=[(_text(name), _text(value)) for name, value in pairs],
    )


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def body_of(body: Any) -> bytes:
    """A request body as the bytes that ``urllib3.util.request.body_to_chunks`` makes of it; what can be read only once is read."""
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode("utf-8")
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    if hasattr(body, "read"):
        data = body.read()
        return data.encode("utf-8") if isinstance(data, str) else bytes(data)
    if isinstance(body, Iterable):
        return b"".join(piece.encode("utf-8") if isinstance(piece, str) else bytes(piece) for piece in body)
    return bytes(body)


def _told(response: Any, read: Callable[[], Any]) -> Any:
    """What ``read`` gives, and its exchange told of it."""
    exchange: Exchange = response._spanreplay_exchange
    response._spanreplay_reading = True  # a response that finds itself broken closes itself before it says so
    try:
        data = read()
    except BaseException as error:
        exchange.failed(error)
        raise
    finally:
        response._spanreplay_reading = False
    if data:
        exchange.chunk(data)
    return data


@lru_cache(maxsize=8)
def _observed(base: Any) -> Any:
    """A class of the same layout as a response class, whose instances tell their exchange what is read."""

    class ObservedResponse(base):  # type: ignore[misc]
        _spanreplay_exchange: Exchange
        _spanreplay_reading = False

        def _raw_read(self, amt: Any = None, **more: Any) -> Any:
            data = _told(self, lambda: super(ObservedResponse, self)._raw_read(amt, **more))
            if (not data and amt != 0) or self.isclosed():  # http.client closes itself at the end of the body
                self._spanreplay_exchange.exhausted()
            return data

        def _handle_chunk(self, amt: Any) -> Any:
            return _told(self, lambda: super(ObservedResponse, self)._handle_chunk(amt))

        def _update_chunk_length(self) -> None:
            _told(self, super()._update_chunk_length)
            if self.chunk_left == 0:
                self._spanreplay_exchange.exhausted()

        def release_conn(self) -> None:
            super().release_conn()
            if self.isclosed() and not self._spanreplay_reading:
                self._spanreplay_exchange.closed()

        def close(self) -> None:
            super().close()
            if not self._spanreplay_reading:
                self._spanreplay_exchange.closed()

        def __del__(self, _finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
            exchange = self.__dict__.get("_spanreplay_exchange")
            if exchange is not None and not _finalizing():  # else the names of modules are gone
                exchange.closed()
            super().__del__()

    ObservedResponse.__name__ = ObservedResponse.__qualname__ = base.__name__
    ObservedResponse.__module__ = base.__module__
    return ObservedResponse


# ---- from the record ----------------------------------------------------------------------------------------------


class _Socket:
    """What ``http.client`` needs of a socket."""

    def __init__(self, wire: Any) -> None:
        self._wire = wire

    def makefile(self, *_: Any, **__: Any) -> Any:
        return self._wire


class _Wire(io.BufferedIOBase):
    """A recorded response as it came over a connection.

    No ``io.BufferedReader``: that one loses what it has read already when the next read fails, and here the failure is the next read's.
    """

    def __init__(self, given: Reply, exchange: Exchange) -> None:
        self._given = given
        self._pieces = http1.pieces(given)
        self._before_the_end = BeforeTheEnd(given, exchange.answer)
        self._have = bytearray(http1.head(given))

    def readable(self) -> bool:
        """It is."""
        return True

    def _more(self, *, raises: bool) -> bool:
        """Get the next piece; at the end, raise what was recorded, if anything."""
        wire, data = next(self._pieces, (b"", b""))
        turn = self._before_the_end.turn(data)
        if turn is not None:
            turn.wait()
        self._have += wire
        if not wire and raises and self._given.ending is not None:
            raise self._given.ending()
        return bool(wire)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._have[:size])
        del self._have[:size]
        return taken

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to ``size`` bytes, fewer only before the end."""
        wanted = sys.maxsize if size is None or size < 0 else size
        while len(self._have) < wanted and self._more(raises=not self._have or wanted == sys.maxsize):
            pass
        return self._take(wanted)

    def read1(self, size: int = -1, /) -> bytes:
        """What is there, at most ``size`` bytes."""
        if not self._have:
            self._more(raises=True)
        return self._take(sys.maxsize if size < 0 else size)

    def peek(self, _: int = 0, /) -> bytes:
        """What is there, left there."""
        if not self._have:
            self._more(raises=True)
        return bytes(self._have)

    def readline(self, size: int | None = -1, /) -> bytes:
        """A line, at most ``size`` bytes of it."""
        limit = sys.maxsize if size is None or size < 0 else size
        while b"\n" not in self._have and len(self._have) < limit and self._more(raises=True):
            pass
        end = self._have.find(b"\n") + 1
        return self._take(min(end or len(self._have), limit))

    def readinto(self, buffer: Any, /) -> int:
        """Fill the buffer as far as :meth:`read` goes."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
