"""The server of HTTP: uvicorn, with patience for the heads of requests too."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any, Final, cast

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from spanreplay.receiver.settings import ReceiverError, Settings

_KEEP_ALIVE_S: Final = 75
"""Longer than the pause between two batches of any exporter, so that none sends into a connection that is just being closed."""
_HEAD_BYTES: Final = 64 * 1024
_BACKLOG: Final = 1024


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are for whoever runs both servers."""
        yield


def protocol(head_s: float) -> type[H11Protocol]:
    """The protocol of uvicorn; a connection on which no whole head, or no end of a refused body, has come after ``head_s`` is closed.

    uvicorn itself waits for ever for the rest of a head, and reads a refused body for as long as it goes on.
    """

    class Patient(H11Protocol):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            self._waiting: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._look()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._look()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.conn.their_state is h11.SEND_BODY or self.conn.trailing_data[0]:
                self._look()

        def connection_lost(self, exc: Exception | None) -> None:
            self._be_patient()
            super().connection_lost(exc)

        def _look(self) -> None:
            cycle = cast("RequestResponseCycle | None", self.cycle)
            if cycle is not None and not cycle.response_complete:
                self._be_patient()
            elif self._waiting is None and not self.transport.is_closing():
                self._waiting = self.loop.call_later(head_s, self.transport.abort)

        def _be_patient(self) -> None:
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None

    return Patient


class HttpServer:
    """The server; ``port`` is known once it has started.

    Args:
        application: what answers.
        settings: of the receiver.
    """

    def __init__(self, application: Starlette, settings: Settings) -> None:
        self.port = 0
        self._settings = settings
        config = uvicorn.Config(
            application,
            loop="none",
            http=protocol(settings.head_s),
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=settings.connections,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=round(settings.stop_s),
            h11_max_incomplete_event_size=_HEAD_BYTES,
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.key,
        )
        try:
            config.load()
        except OSError as error:  # ssl.SSLError is one
            raise ReceiverError(f"the certificate {settings.certificate} cannot be used with its key: {error}") from error
        self._server = _Server(config)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen.

        Raises:
            ReceiverError: the port is taken, or the host is not of this machine.
        """
        listening = _listen(self._settings.address, self._settings.http_port)
        self.port = int(listening.getsockname()[1])
        self._task = asyncio.create_task(self._server.serve([listening]))
        while not self._server.started and not self._task.done():  # noqa: ASYNC110 — uvicorn has no event for it
            await asyncio.sleep(0.01)
        if self._task.done():
            await self._task

    async def stop(self) -> None:
        """Take nothing new, finish what has begun."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task


def _listen(host: str, port: int) -> socket.socket:
    listening: socket.socket | None = None
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.socket(family, kind)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        if listening is not None:
            listening.close()
        reason = error.strerror or str(error)
        raise ReceiverError(f"cannot listen on {host}:{port} for HTTP: {reason}. Choose another with --http-port.") from error
    listening.setblocking(False)
    return listening
