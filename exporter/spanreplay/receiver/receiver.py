"""A receiver: both servers, the intake behind them, and the upkeep of the store, in one event loop."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from spanreplay.receiver.intake import Counts, Intake
from spanreplay.receiver.over_grpc import GrpcServer
from spanreplay.receiver.over_http import application
from spanreplay.receiver.server import HttpServer
from spanreplay.receiver.settings import Settings
from spanreplay.receiver.upkeep import Settle, Upkeep
from spanreplay.store.store import Store


class Receiver:
    """Receives OTLP into a store until it is stopped.

    Args:
        settings: where, from whom and how much.
        settle: derives the runs of what was received, when nothing has come for a while.

    Raises:
        ReceiverError: it would let strangers in.
        StoreError: there is no store, and none can be made.
    """

    def __init__(self, settings: Settings, *, settle: Settle | None = None) -> None:
        settings.check()
        self.settings = settings
        self.store: Path = Store.open(settings.store, create=True).path
        self.http_port = 0
        self.grpc_port = 0
        self.loading = False
        """It was stopped while a thread of it was loading journals, which goes on: the interpreter must not end then, only the process.

        A thread that Python ends inside of DuckDB takes the process with it, by SIGABRT.
        """
        self._settle = settle
        self._counts = Counts()

    @property
    def counts(self) -> Counts:
        """What was received."""
        return self._counts

    def run(self, started: Callable[[], object]) -> None:
        """Serves until SIGINT or SIGTERM; what has been acknowledged is on the disk at any moment.

        Args:
            started: called when both ports are open; they are in :attr:`http_port` and :attr:`grpc_port` then.

        Raises:
            ReceiverError: a port is taken, or the certificate cannot be used.
        """
        asyncio.run(self._until_signalled(started))

    async def _until_signalled(self, started: Callable[[], object]) -> None:
        asked = asyncio.Event()
        with _signals(asked):
            await self.serve(started, asked)

    async def serve(self, started: Callable[[], object], asked: asyncio.Event) -> None:
        """Serves until ``asked`` is set, in a program that has an event loop and signals of its own; else as :meth:`run`."""
        settings = self.settings
        intake = Intake(self.store, limit=settings.limit, waiting_bytes=settings.waiting_bytes, waiting_requests=settings.waiting_requests)
        self._counts = intake.counts
        upkeep = Upkeep(self.store, lambda: intake.taken_at, self._settle)
        over_http, over_grpc = HttpServer(application(intake, settings), settings), GrpcServer(intake, settings)
        await over_http.start()
        try:
            await over_grpc.start()
            self.http_port, self.grpc_port = over_http.port, over_grpc.port
            intake.start()
            upkeep.start()
            started()
            await asked.wait()
        finally:
            await asyncio.gather(over_http.stop(), over_grpc.stop())
            await asyncio.to_thread(intake.stop, settings.stop_s)
            self.loading = not await asyncio.to_thread(upkeep.stop, settings.stop_s)


@contextlib.contextmanager
def _signals(asked: asyncio.Event) -> Iterator[None]:
    """The first one asks to stop; the second one does not ask."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if asked.is_set():
            os._exit(130)
        asked.set()

    names = (signal.SIGINT, signal.SIGTERM)
    for name in names:
        loop.add_signal_handler(name, stop)
    try:
        yield
    finally:
        for name in names:
            loop.remove_signal_handler(name)
