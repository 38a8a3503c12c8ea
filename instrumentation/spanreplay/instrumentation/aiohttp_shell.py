"""Thin shells around an exchange for aiohttp's client: its requests, its responses live and from the record.

aiohttp decompresses in its parser, so what came over the wire is taken from the connection, where it arrives. A recorded response is given
to aiohttp's own parser as bytes on a connection that leads nowhere. The library reaches this module as values; it is never imported here.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Answer
from spanreplay.boundary.scope import Scope
from spanreplay.content import codec
from spanreplay.instrumentation import http1
from spanreplay.instrumentation.http_exchange import Exchange
from spanreplay.instrumentation.http_reply import BeforeTheEnd, Reply
from spanreplay.instrumentation.http_request import Head

ARRIVING: Final[ContextVar["Arriving | None"]] = ContextVar("spanreplay.aiohttp", default=None)
"""Of the request that is being sent in this context."""

FEEDER: Final = "_spanreplay_feeder"
"""On the protocol of a replayed response: its :class:`Feeder`."""

_BUFFER: Final = 65_536


class Arriving:
    """What arrives on a connection for one request, until its response is known and after.

    Args:
        method: of the request.
    """

    def __init__(self, method: str) -> None:
        self._body = http1.Body(bodyless=method == "HEAD")
        self._early: list[bytes] = []
        self._exchange: Exchange | None = None

    def feed(self, data: bytes) -> None:
        """Bytes came."""
        for part in self._body.feed(data):
            if self._exchange is None:
                self._early.append(part)
            elif not self._exchange.ended:
                self._exchange.chunk(part)

    def attach(self, exchange: Exchange) -> None:
        """The response has begun."""
        self._exchange = exchange
        for part in self._early:
            exchange.chunk(part)
        self._early = []

    def left(self) -> None:
        """The connection is closed at this end."""
        if self._exchange is not None:
            self._exchange.closed()


class Sent:
    """One request: a :class:`~spanreplay.instrumentation.http_sending.Sender`.

    Args:
        lib: the module ``aiohttp``.
        scope: where the request is made.
        request: aiohttp's ``ClientRequest``.
        decompresses: whether the session wants bodies decompressed.
    """

    def __init__(self, lib: Any, scope: Scope, request: Any, *, decompresses: bool) -> None:
        self.scope = scope
        self.head = _head(request)
        self.arriving = Arriving(request.method)
        self._lib = lib
        self._request = request
        self._decompresses = decompresses

    async def read(self) -> bytes:
        """The body of the request; aiohttp's payloads can be read again."""
        body = self._request.body
        if isinstance(body, bytes | bytearray):
            return bytes(body)
        as_bytes: Callable[[], Awaitable[bytes]] | None = getattr(body, "as_bytes", None)
        return b"" if as_bytes is None else await as_bytes()

    async def transmit(self, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Send it, and look at what arrives."""
        token = ARRIVING.set(self.arriving)
        try:
            return await handler(self._request)
        finally:
            ARRIVING.reset(token)

    def ran_out(self, error: BaseException) -> bool:
        """Does this exception say that a time ran out? All of aiohttp's are ``TimeoutError``."""
        return isinstance(error, TimeoutError)

    def drop(self) -> Awaitable[Any]:
        """An empty 200."""
        return self._started(Reply(status=200, headers=(("content-length", "0"),), chunks=()))

    def watch(self, response: Any, exchange: Exchange) -> None:
        """Tell the exchange of a response, and of the end of its body or its connection."""
        exchange.responded(response.status, [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.raw_headers])
        self.arriving.attach(exchange)
        content, connection = response.content, response.connection
        if response.status == 101 or content.is_eof() or connection is None:
            exchange.exhausted()
            return
        connection.add_callback(lambda: self._released(content, exchange))

    def _released(self, content: Any, exchange: Exchange) -> None:
        """The response was read to its end, failed, or was left."""
        feeder: Feeder | None = getattr(content._protocol, FEEDER, None)
        if feeder is not None:
            feeder.rest()
        error = content.exception()
        if error is None or str(error) == "Connection closed":  # that is what closing it says
            error = sys.exc_info()[1]
        if content.is_eof() or (feeder is not None and feeder.is_whole):
            exchange.exhausted()
        elif error is not None and isinstance(error, self._lib.ClientError | asyncio.CancelledError | TimeoutError):
            exchange.failed(error)
        else:
            exchange.closed()

    async def respond(self, given: Reply, exchange: Exchange) -> Any:
        """The recorded response; its body comes chunk by chunk as it is read."""
        try:
            response = await self._started(given)
        except BaseException as error:
            exchange.failed(error)
            raise
        if not response.content.is_eof():
            protocol = response.connection.protocol
            setattr(protocol, FEEDER, Feeder(given, exchange, protocol))
        self.watch(response, exchange)
        return response

    def decode_error(self, text: str) -> BaseException:
        """The exception that the request raised."""
        return codec.decode_exception(text)

    def time_out(self) -> BaseException:
        """What aiohttp raises when nothing is read in time."""
        made: BaseException = self._lib.ServerTimeoutError("Timeout on reading data from socket")
        return made

    async def change(self, target: str, body: bytes) -> None:
        """Send another target and body."""
        request = self._request
        for name in ("Content-Encoding", "Transfer-Encoding", "Content-Length"):
            request.headers.popall(name, None)
        await request.update_body(body)
        request.headers["Content-Length"] = str(len(body))
        if target != self.head.target:
            path, _, query = target.partition("?")
            request.url = request.url.with_path(path, encoded=True).with_query(query or None)

    async def _started(self, given: Reply) -> Any:
        lib, request = self._lib, self._request
        loop = asyncio.get_running_loop()
        protocol = lib.client_proto.ResponseHandler(loop)
        protocol.connection_made(_Nowhere())
        connection = lib.connector.Connection(_Connector(), None, protocol, loop)
        protocol.set_response_params(
            timer=lib.helpers.TimerNoop(),
            skip_payload=request.method == "HEAD",
            read_until_eof=True,
            auto_decompress=self._decompresses,
            read_bufsize=_BUFFER,
        )
        response = await request.send(connection)
        protocol.data_received(http1.head(given))
        await response.start(connection)
        return response


def _head(request: Any) -> Head:
    url = request.url
    return Head(
        method=request.method.upper(),
        scheme=url.scheme,
        host=url.host or "",
        port=url.explicit_port,
        target=url.raw_path_qs,
        headers=[(str(name), str(value)) for name, value in request.headers.items()],
    )


# ---- from the record ----------------------------------------------------------------------------------------------


class Feeder:
    """Gives a reader the next recorded chunk when it waits for more."""

    def __init__(self, given: Reply, exchange: Exchange, protocol: Any) -> None:
        self._given = given
        self._exchange = exchange
        self._protocol = protocol
        self._pieces = http1.pieces(given)
        self._before_the_end = BeforeTheEnd(given, exchange.answer)
        self.is_whole = given.ending is None and not given.pends
        """The record has all of the body."""

    async def next(self) -> None:
        """Feed the parser, or end as recorded."""
        for wire, data in self._pieces:
            turn = self._before_the_end.turn(data)
            if turn is not None:
                await turn.wait_async()
            if data:
                self._exchange.chunk(data)
            self._protocol.data_received(wire)
            return
        answer = self._exchange.answer
        try:
            await self._end(answer)
        except BaseException as error:
            self._exchange.failed(error)
            raise
        self._protocol.connection_lost(None)

    async def _end(self, answer: Answer | None) -> None:
        if self._given.pends and answer is not None:
            await boundary.pend(answer)
        if self._given.ending is not None:
            raise self._given.ending()
        if self._given.pends:
            raise asyncio.CancelledError

    def rest(self) -> None:
        """What the recorded reader had received, too, when it left."""
        if not self._exchange.ended:
            for _, data in self._pieces:
                if data:
                    self._exchange.chunk(data)


class _Connector:
    """What a connection needs of its connector."""

    force_close = False
    _force_close = False

    def _release(self, *_: Any, **__: Any) -> None:
        return


class _Nowhere(asyncio.Transport):
    """A transport that takes everything and sends nothing."""

    def write(self, data: Any) -> None:
        """Taken."""

    def writelines(self, list_of_data: Any) -> None:
        """Taken."""

    def is_closing(self) -> bool:
        """It stays open."""
        return False

    def close(self) -> None:
        """There is nothing to close."""

    abort = close

    def pause_reading(self) -> None:
        """Nothing comes unasked."""

    def resume_reading(self) -> None:
        """Nothing comes unasked."""
