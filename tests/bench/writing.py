"""What keeping spans costs: on the application's thread, to the end, and beside other ways to do it."""

import itertools
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import duckdb
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Span

from bench.conversations import Times, source_text
from bench.measure import Ratio, ratio
from spanreplay.content._hints import Hints
from spanreplay.content.redaction import RedactionPolicy, Redactor
from spanreplay.exporter.recorder import Recorder
from spanreplay.exporter.redacting import redactor_for
from spanreplay.store.journal import JournalWriter
from spanreplay.store.process import current_process
from spanreplay.store.store import Store
from support.size import FULL

SPANS: Final = 512
RUN: Final = 32
_ROUNDS: Final = 8 if FULL else 4
"""So many times 512 spans are recorded before they are loaded."""
_PAIRS: Final = 30 if FULL else 5
_WRITERS: Final = 8
_EACH: Final = 4096 if FULL else 1024
_BATCH: Final = 512
_NULL_SERVER: Final = """
import http.server
class Null(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Null)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


def attributes() -> list[dict[str, Any]]:
    """Attributes of spans of agents: 39 of a model call, 27 of a tool call, each with 6 kB of text that no other has."""
    chance, source = random.Random(7), source_text()

    def some(size: int) -> str:
        start = chance.randrange(len(source) - size)
        return source[start : start + size]

    def chat(number: int) -> dict[str, Any]:
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "gpt-5-mini",
            LONG[0]: json.dumps([{"role": "user", "parts": [{"type": "text", "content": some(4200)}]}]),
            LONG[1]: json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": some(1500)}]}]),
            "gen_ai.usage.input_tokens": number,
            "gen_ai.usage.output_tokens": 12,
            "gen_ai.response.id": f"chatcmpl-{number}",
            **{f"app.attribute.{key}": f"value {key}" for key in range(31)},
        }

    def tool(number: int) -> dict[str, Any]:
        return {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "read_file",
            "gen_ai.tool.call.id": f"call_{number}",
            LONG[2]: json.dumps({"path": "a/b.py", "text": some(1500)}),
            LONG[3]: json.dumps({"content": some(4200)}),
            **{f"app.attribute.{key}": f"value {key}" for key in range(22)},
        }

    return [tool(number) if number % 2 else chat(number) for number in range(SPANS)]


LONG: Final = ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result")


def spans_of(provider: TracerProvider) -> Callable[[], None]:
    """Ends so many spans, in runs, never the same text twice."""
    tracer, made = provider.get_tracer("bench"), attributes()
    numbers = itertools.count()

    def fill(span: Span) -> None:
        number = next(numbers)
        given = made[number % len(made)]
        for name in LONG:
            if name in given:
                given[name] = f"{given[name][:-6]}{number % 10}{given[name][-6:]}"
        span.set_attributes(given)

    def end() -> None:
        for _ in range(SPANS // RUN):
            with tracer.start_as_current_span("agent") as root:
                fill(root)
                for _ in range(RUN - 1):
                    with tracer.start_as_current_span("step") as span:
                        fill(span)

    return end


@contextmanager
def _over_http(rounds: int = 1) -> Iterator[Callable[[], None]]:
    """Spans through the SDK's batch processor and OTLP over HTTP to a server in another process that throws them away."""
    server = subprocess.Popen([sys.executable, "-c", _NULL_SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        provider = TracerProvider(shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=f"http://127.0.0.1:{port}/v1/traces")
        provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=4 * SPANS))
        end = spans_of(provider)

        def export() -> None:
            for _ in range(rounds):
                end()
                provider.force_flush()

        yield export
        provider.shutdown()
    finally:
        server.kill()
        server.wait()


@contextmanager
def ours(*, load: bool, redactor: Redactor | Literal["default"] | None = "default") -> Iterator[Callable[[], int]]:
    """Spans through the recorder into a journal; and from it into the database, if that is wanted. Gives how many."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "store", create=True)
        writer = JournalWriter(store.path, process=current_process())
        provider = TracerProvider(shutdown_on_exit=False)
        recorder = Recorder(writer, redactor=redactor_for("default") if redactor == "default" else redactor)
        provider.add_span_processor(recorder)  # type: ignore[arg-type]  # it has the methods
        end = spans_of(provider)

        def keep() -> int:
            for _ in range(_ROUNDS if load else 1):
                end()
            if load:
                store.compact()
            return SPANS * (_ROUNDS if load else 1)

        yield keep
        writer.close()
        assert not writer.dropped


_TABLE: Final = "CREATE TABLE spans (trace_id VARCHAR, span_id VARCHAR, name VARCHAR, start_ns BIGINT, end_ns BIGINT, attributes {})"


class _ExecuteMany(SpanExporter):
    """The obvious exporter: a row a span, through ``executemany``, committed a batch at a time."""

    attributes = "JSON"
    """The type of their column."""

    def __init__(self, path: Path) -> None:
        self._connection = duckdb.connect(str(path))
        self._connection.execute(_TABLE.format(self.attributes))

    def export(self, spans: Any) -> SpanExportResult:
        self._connection.begin()
        self._connection.executemany("INSERT INTO spans VALUES (?, ?, ?, ?, ?, ?)", [list(_row(span)) for span in spans])
        self._connection.commit()
        return SpanExportResult.SUCCESS


def _row(span: ReadableSpan) -> tuple[Any, ...]:
    context = span.context
    ids = f"{context.trace_id:032x}", f"{context.span_id:016x}"
    return *ids, span.name, span.start_time, span.end_time, json.dumps(dict(span.attributes or {}))


class _Appender(_ExecuteMany):
    """The fastest exporter into DuckDB that there can be: one plain table through its appender, a batch at a time."""

    attributes = "VARCHAR USING COMPRESSION zstd"
    """What DuckDB chooses by itself for such texts takes several times as long."""

    def export(self, spans: Any) -> SpanExportResult:
        appender = self._connection.appender("spans")
        appender.append_rows([_row(span) for span in spans])
        appender.flush()
        return SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        self._connection.execute("CHECKPOINT")
        return True


@contextmanager
def _into_duckdb(kind: type[_ExecuteMany]) -> Iterator[Callable[[], None]]:
    with tempfile.TemporaryDirectory() as folder:
        provider = TracerProvider(shutdown_on_exit=False)
        exporter = kind(Path(folder) / "x.duckdb")
        provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=4 * SPANS))
        end = spans_of(provider)

        def keep() -> None:
            for _ in range(_ROUNDS):
                end()
                provider.force_flush()
            exporter.force_flush()

        yield keep
        provider.shutdown()


def _compared(name: str, a: Any, b: Any, goal: float | None, note: str = "") -> Ratio:
    with ExitStack() as stack:
        first, second = stack.enter_context(a), stack.enter_context(b)
        return ratio(name, first, second, goal=goal, times=1, pairs=_PAIRS, clock=time.process_time, note=note)


def on_the_thread() -> Ratio:
    """What the application's thread does for a span of 33 attributes and 6 kB, against what its process does to export it."""
    name = "512 spans recorded, all on the application's thread / exported by OTLP over HTTP in batches, CPU of the process"
    return _compared(name, _over_http(), ours(load=False, redactor=_searching(fast=True)), 0.5, "secrets taken out, with the extra fast")


def on_the_thread_without_fast() -> Ratio:
    """The same where Hyperscan is not installed."""
    name = "the same without the extra fast"
    return _compared(name, _over_http(), ours(load=False, redactor=_searching(fast=False)), None, "secrets taken out")


def _searching(*, fast: bool) -> Redactor:
    """A redactor that searches texts in one way from the first on; in an application it is the slower one for the first 4 MB."""
    redactor = Redactor(RedactionPolicy.default())
    redactor._search.hints = Hints(redactor._search.hints.known, after=0 if fast else 1 << 62)
    assert not fast or redactor._search.hints.has_automaton
    return redactor


def on_the_thread_as_it_is() -> Ratio:
    """The same without looking for secrets, which the exporter does not do either."""
    name = "the same without looking for secrets, as the exporter does"
    return _compared(name, _over_http(), ours(load=False, redactor=None), 0.5)


def on_the_thread_simple() -> Ratio:
    """The same against an exporter that, as ours, has each span out when it has ended."""
    with ExitStack() as stack:
        server = subprocess.Popen([sys.executable, "-c", _NULL_SERVER], stdout=subprocess.PIPE, text=True)
        stack.callback(server.wait)
        stack.callback(server.kill)
        assert server.stdout is not None
        provider = TracerProvider(shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=f"http://127.0.0.1:{server.stdout.readline().strip()}/v1/traces")
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        recorded = stack.enter_context(ours(load=False, redactor=_searching(fast=True)))
        name = "512 spans recorded / exported by OTLP over HTTP as each ends, CPU of the application's thread"
        return ratio(name, spans_of(provider), recorded, goal=0.5, times=1, pairs=_PAIRS, clock=time.thread_time)


def to_the_end() -> Ratio:
    """Recorded and loaded into the database, against exported to a server that throws it away: CPU of the client alone."""
    name = "spans recorded and loaded into the database / exported by OTLP over HTTP to nowhere, CPU of the process"
    return _compared(name, _over_http(_ROUNDS), ours(load=True), 0.5)


def to_the_end_floor() -> Ratio:
    """What is the least that it takes to get the same into a DuckDB file."""
    name = "spans through DuckDB's appender into one plain table / exported by OTLP over HTTP to nowhere, CPU of the process"
    return _compared(name, _over_http(_ROUNDS), _into_duckdb(_Appender), None)


def executemany() -> Ratio:
    """Recorded and loaded, against the obvious exporter into DuckDB."""
    return _compared("spans recorded and loaded / executemany into DuckDB", _into_duckdb(_ExecuteMany), ours(load=True), 0.1)


# ---- many writers ----------------------------------------------------------------------------------------------------

_WRITER: Final = """
import sys, time
from pathlib import Path
from bench import writing
print("ready", flush=True)
sys.stdin.readline()
print(getattr(writing, sys.argv[1])(Path(sys.argv[2]), int(sys.argv[3])), flush=True)
"""


def _given(number: int) -> Iterator[tuple[str, str, str, int, int, str]]:
    made = attributes()
    for n in range(_EACH):
        yield f"{number:032x}", f"{n:016x}", "chat", n, n + 1, json.dumps(made[(n + number) % len(made)])


def write_journal(folder: Path, number: int) -> float:
    """Writes spans as the recorder does; gives the longest that a batch of them took."""
    from spanreplay.spans.record import SpanRecord

    writer = JournalWriter(folder, process=current_process())
    made, worst = attributes(), 0.0
    for first in range(0, _EACH, _BATCH):
        start = time.perf_counter()
        for n in range(first, first + _BATCH):
            given = made[(n + number) % len(made)]
            span = SpanRecord(trace_id=f"{number:032x}", span_id=f"{n:016x}", name="chat", start_ns=n, end_ns=n + 1, attributes=given)
            writer.write_span(span, "recorder")
        worst = max(worst, time.perf_counter() - start)
    writer.close()
    return worst


def append_and_retry(folder: Path, number: int) -> float:
    """Opens the database for each batch, again and again until nobody else has it; gives the longest that a batch took."""
    rows, worst = list(_given(number)), 0.0
    for first in range(0, _EACH, _BATCH):
        start = time.perf_counter()
        while True:
            try:
                connection = duckdb.connect(str(folder / "x.duckdb"))
                break
            except duckdb.IOException:
                time.sleep(0.01)
        appender = connection.appender("spans")
        appender.append_rows(rows[first : first + _BATCH])
        appender.flush()
        connection.close()
        worst = max(worst, time.perf_counter() - start)
    return worst


def _together(what: str, folder: Path) -> tuple[float, float]:
    """Spans a second of all writers, and the longest that a batch took."""
    command = [sys.executable, "-c", _WRITER, what, str(folder)]
    writers = [
        subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for number in range(_WRITERS)
    ]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    start = time.perf_counter()
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    worst = [float(writer.communicate()[0]) for writer in writers]
    return _WRITERS * _EACH / (time.perf_counter() - start), max(worst)


@cache
def _writers() -> tuple[tuple[float, float], tuple[float, float]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        connection = duckdb.connect(str(folder / "x.duckdb"))
        connection.execute(_TABLE.format("VARCHAR"))
        connection.close()
        theirs = _together("append_and_retry", folder)
        store = Store.open(folder / "store", create=True)
        ours = _together("write_journal", store.path)
        store.compact()
        assert list(store.query("SELECT count(*) FROM spans").rows) == [(_WRITERS * _EACH,)]
        return theirs, ours


def writers_at_once() -> Times:
    """Eight processes that write at once, against each opening the database for a batch."""
    (theirs, _), (ours, _) = _writers()
    return Times(
        name="8 writers at once: their journals / opening the database for each batch, spans a second",
        goal=4,
        median=ours / theirs,
        other=theirs,
        ours=ours,
        unit="spans/s",
    )


def writers_stall() -> Times:
    """How long the slowest batch of eight writers took."""
    (_, theirs), (_, ours) = _writers()
    return Times(
        name="8 writers at once: the longest that 512 spans took, opening the database for each batch / their journals",
        goal=5,
        median=theirs / ours,
        other=theirs * 1e3,
        ours=ours * 1e3,
        unit="ms",
    )
