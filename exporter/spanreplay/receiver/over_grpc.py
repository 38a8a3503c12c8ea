"""OTLP over gRPC: ``TraceService`` and ``LogsService``, on the same event loop as HTTP.

A request is read as a stream of one message, which is the same on the wire: so it is known who sends, and that there is room, before the
message is read.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final

import grpc
from grpc import aio

from spanreplay.receiver.answers import Answer, Signal, response, retry_info, status
from spanreplay.receiver.intake import Intake, busy
from spanreplay.receiver.reading import Request
from spanreplay.receiver.settings import ReceiverError, Settings, is_loopback

_SERVICES: Final[tuple[tuple[str, Signal], ...]] = (
    ("opentelemetry.proto.collector.trace.v1.TraceService", "spans"),
    ("opentelemetry.proto.collector.logs.v1.LogsService", "logs"),
)
_READ_AT_ONCE: Final = 8
"""How many messages are being received at a time: each may have the size of the limit, and nobody knows before it is here."""
_CALLS: Final = 256
_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}


class GrpcServer:
    """The server; ``port`` is known once it has started.

    Args:
        intake: where requests go.
        settings: of the receiver.
    """

    def __init__(self, intake: Intake, settings: Settings) -> None:
        self.port = 0
        self._intake = intake
        self._settings = settings
        self._reading = asyncio.Semaphore(_READ_AT_ONCE)
        self._server = aio.server(
            options=[
                ("grpc.max_receive_message_length", settings.limit),
                ("grpc.max_metadata_size", 64 * 1024),
                ("grpc.so_reuseport", 0),
            ],
            maximum_concurrent_rpcs=_CALLS,
        )
        for service, signal in _SERVICES:
            handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_unary_rpc_method_handler(self._export(signal))
            self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": handler}),))

    async def start(self) -> None:
        """Listen.

        Raises:
            ReceiverError: the port is taken, or the certificate cannot be used.
        """
        settings = self._settings
        host = f"[{settings.address}]" if ":" in settings.address else settings.address
        address = f"{host}:{settings.grpc_port}"
        try:
            if settings.certificate is not None and settings.key is not None:
                pair = settings.key.read_bytes(), settings.certificate.read_bytes()
                self.port = self._server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
            else:
                assert is_loopback(settings.host)  # noqa: S101 — Settings.check has seen to it
                self.port = self._server.add_insecure_port(address)
        except RuntimeError:
            self.port = 0
        if not self.port:
            raise ReceiverError(
                f"cannot listen on {address} for gRPC: it is taken, or not of this machine. Choose another with --grpc-port."
            )
        await self._server.start()

    async def stop(self) -> None:
        """Take nothing new, finish what has begun."""
        await self._server.stop(self._settings.stop_s)

    def _export(self, signal: Signal) -> Callable[[AsyncIterator[bytes], Any], Coroutine[Any, Any, bytes]]:
        async def export(messages: AsyncIterator[bytes], context: Any) -> bytes:
            answer = await self._taken(signal, messages, context)
            if answer.verdict != "taken":
                trailing: tuple[tuple[str, bytes], ...] = (("grpc-status-details-bin", status(answer).SerializeToString()),)
                if answer.retry_s is not None:  # the SDK of Python looks here only
                    trailing += (("google.rpc.retryinfo-bin", retry_info(answer.retry_s).SerializeToString()),)
                await _refuse(context, answer, trailing)
            return response(answer, signal).SerializeToString()

        return export

    async def _taken(self, signal: Signal, messages: AsyncIterator[bytes], context: Any) -> Answer:
        metadata = dict(context.invocation_metadata() or ())
        if not self._settings.lets_in(metadata.get("authorization")):
            return Answer(verdict="unauthorized", message="wanted the metadata authorization: Bearer TOKEN, with a token of this receiver")
        try:
            async with asyncio.timeout(self._settings.idle_s):
                await self._reading.acquire()
        except TimeoutError:
            return busy()
        try:
            async with asyncio.timeout(self._settings.body_s):
                body = await anext(aiter(messages))
        except TimeoutError:
            return Answer(verdict="too-slow", message="the message did not come")
        except StopAsyncIteration:
            return Answer(verdict="malformed", message="wanted one message, found none")
        finally:
            self._reading.release()
        if not self._intake.reserve(len(body)):
            return busy()
        return await self._intake.take(Request(signal=signal, form="protobuf", encoding="", body=body), len(body))


async def _refuse(context: Any, answer: Answer, trailing: tuple[tuple[str, bytes], ...]) -> None:
    try:
        await context.abort(_CODES[answer.grpc], answer.message, trailing)
    except aio.AbortError:
        raise
    except Exception as error:  # gRPC has ended the call itself: a message beyond the limit, a client that has gone
        raise asyncio.CancelledError from error
