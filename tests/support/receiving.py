"""A receiver that runs while a test does: in the test's process, or as the program."""

import asyncio
import http.client
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spanreplay.receiver.receiver import Receiver
from spanreplay.receiver.settings import Settings
from spanreplay.spans.record import LogRecord, SpanRecord
from spanreplay.store.store import Store

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a receiver answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Its body."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """Where a receiver is."""

    http_port: int
    grpc_port: int
    store: Path

    @property
    def http(self) -> str:
        """Base URL."""
        return f"http://127.0.0.1:{self.http_port}"

    def post(self, path: str, body: bytes, kind: str | None = "application/x-protobuf", **headers: str) -> Reply:
        """Sends one request on a connection of its own."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if kind is not None:
            sent["Content-Type"] = kind
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=PATIENCE_S)
        try:
            connection.request("POST", path, body, sent)
            answer = connection.getresponse()
            return Reply(status=answer.status, headers={k.lower(): v for k, v in answer.getheaders()}, body=answer.read())
        finally:
            connection.close()

    def spans(self) -> list[SpanRecord]:
        """What has arrived; the receiver goes on."""
        return spans_in(self.store)

    def logs(self) -> list[LogRecord]:
        """Log records that have arrived."""
        with Store.open(self.store) as store:
            store.compact()
            return list(store.logs(traces_in(store, "logs")))


def traces_in(store: Store, table: str) -> list[str]:
    """Ids of all traces."""
    return [str(row[0]) for row in store.query(f"SELECT DISTINCT trace_id FROM {table} ORDER BY 1").rows]


def spans_in(path: Path) -> list[SpanRecord]:
    """All spans of a store, its journals loaded."""
    with Store.open(path) as store:
        store.compact()
        return list(store.traces(traces_in(store, "spans")))


@contextmanager
def receiving(store: Path, **settings: Any) -> Iterator[At]:
    """``with receiving(folder) as at:`` a receiver in this process, on free ports."""
    receiver = Receiver(Settings(store=store, http_port=0, grpc_port=0, **settings))
    told: queue.Queue[tuple[asyncio.AbstractEventLoop, asyncio.Event] | BaseException] = queue.Queue()

    async def serve() -> None:
        asked = asyncio.Event()
        await receiver.serve(lambda: told.put((asyncio.get_running_loop(), asked)), asked)

    def work() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            told.put(error)

    thread = threading.Thread(target=work)
    thread.start()
    begun = told.get(timeout=PATIENCE_S)
    if isinstance(begun, BaseException):
        raise begun
    try:
        yield At(http_port=receiver.http_port, grpc_port=receiver.grpc_port, store=receiver.store)
    finally:
        begun[0].call_soon_threadsafe(begun[1].set)
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert told.empty(), told.get()


@dataclass(slots=True)
class Program:
    """``spanreplay serve`` as a process."""

    at: At
    process: "subprocess.Popen[bytes]"

    def kill(self) -> None:
        """Ends it at once."""
        self.process.kill()
        self.process.wait(PATIENCE_S)
        self._close()

    def stop(self) -> int:
        """Ends it in order; its exit code."""
        self.process.terminate()
        code = self.process.wait(PATIENCE_S)
        self._close()
        return code

    def _close(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()


def program(store: Path, *arguments: str, ports: tuple[int, int] = (0, 0), environment: Mapping[str, str] | None = None) -> Program:
    """Starts it, and waits until it listens."""
    command = [sys.executable, "-m", "spanreplay", "serve", "--json", "--store", str(store), *arguments]
    command += ["--http-port", str(ports[0]), "--grpc-port", str(ports[1])]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "SPANREPLAY_"))}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env={**inherited, **(environment or {})})
    assert process.stdout is not None
    text = b""
    while not text.endswith(b"}\n"):
        line = process.stdout.readline()
        assert line, f"spanreplay serve has ended with {process.wait()}"
        text += line
    said = json.loads(text)
    given = [int(said[name].rpartition(":")[2]) for name in ("http", "grpc")]
    return Program(At(http_port=given[0], grpc_port=given[1], store=store), process)


@contextmanager
def running(
    store: Path, *arguments: str, ports: tuple[int, int] = (0, 0), environment: Mapping[str, str] | None = None
) -> Iterator[Program]:
    """``with running(folder) as program:``; it is ended with the block."""
    started = program(store, *arguments, ports=ports, environment=environment)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.kill()


def sdk_spans(client: int, count: int, text: str = "") -> Iterator[ReadableSpan]:
    """Spans as an SDK makes them, of one service a client; each a trace of its own."""
    made = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": f"client-{client}"}))
    provider.add_span_processor(SimpleSpanProcessor(made))
    tracer = provider.get_tracer("clients")
    for number in range(count):
        with tracer.start_as_current_span(f"chat {number}") as span:
            span.set_attributes({"gen_ai.operation.name": "chat", "n": number, "gen_ai.input.messages": f"{number} {text}"})
        yield from made.get_finished_spans()
        made.clear()
