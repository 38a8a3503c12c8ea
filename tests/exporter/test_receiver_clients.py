"""The SDK's own exporters as clients: everything acknowledged is there, once, though the receiver is killed again and again."""

import logging
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogs
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpLogs
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from backends.running import free_port
from spanreplay.store.store import Store
from support.receiving import At, program, receiving, sdk_spans, spans_in
from support.size import FULL

SPANS = 200_000 if FULL else 600
CLIENTS = 8 if FULL else 2
KILLS = 5 if FULL else 1
BATCH = 100 if FULL else 30
TEXT = "Where is order 4711? " * (60 if FULL else 3)


def exporters(at: At) -> dict[str, SpanExporter]:
    return {
        "http": HttpSpans(f"{at.http}/v1/traces", compression=Compression.Gzip),
        "grpc": GrpcSpans(f"http://127.0.0.1:{at.grpc_port}", insecure=True),
    }


@pytest.mark.parametrize("over", ["http", "grpc"])
def test_the_exporters_of_the_sdk_are_understood(over: str, tmp_path: Path) -> None:
    from opentelemetry._logs import LogRecord
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
    from opentelemetry.trace import NonRecordingSpan, set_span_in_context

    with receiving(tmp_path / "store") as at:
        sent = list(sdk_spans(1, 3, TEXT))
        exporter = exporters(at)[over]
        assert exporter.export(sent) is SpanExportResult.SUCCESS
        exporter.shutdown()
        found = sorted(at.spans(), key=lambda span: span.start_ns)
        assert [span.name for span in found] == [span.name for span in sent]
        assert {f"{span.context.span_id:016x}" for span in sent if span.context} == {span.span_id for span in found}
        assert found[0].attributes["gen_ai.input.messages"] == f"0 {TEXT}"
        logs = LoggerProvider()
        to = HttpLogs(f"{at.http}/v1/logs") if over == "http" else GrpcLogs(f"http://127.0.0.1:{at.grpc_port}", insecure=True)
        logs.add_log_record_processor(SimpleLogRecordProcessor(to))
        context = sent[0].get_span_context()
        assert context is not None
        within = set_span_in_context(NonRecordingSpan(context))
        logs.get_logger("x").emit(LogRecord(timestamp=5, context=within, event_name="gen_ai.choice", body={"index": 0}))
        logs.shutdown()
        assert [(log.event_name, log.body) for log in at.logs()] == [("gen_ai.choice", {"index": 0})]


class Client(threading.Thread):
    """Sends batch after batch, each again until it is acknowledged."""

    def __init__(self, exporter: SpanExporter, number: int) -> None:
        super().__init__(daemon=True)
        self.acknowledged: set[str] = set()
        self._exporter = exporter
        self._number = number

    def run(self) -> None:
        batch: list[ReadableSpan] = []
        for span in sdk_spans(self._number, SPANS // CLIENTS, TEXT):
            batch.append(span)
            if len(batch) == BATCH:
                self._send(batch)
                batch = []
        self._exporter.shutdown()

    def _send(self, batch: Sequence[ReadableSpan]) -> None:
        while self._exporter.export(batch) is not SpanExportResult.SUCCESS:
            continue
        self.acknowledged.update(f"{span.context.span_id:016x}" for span in batch if span.context)


def test_killed_again_and_again_it_has_every_acknowledged_span_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="opentelemetry")  # each refused export is told
    store = tmp_path / "store"
    ports = (free_port(), free_port())
    running = program(store, ports=ports)
    clients = [Client(exporters(running.at)[("http", "grpc")[number % 2]], number) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        for kill in range(1, KILLS + 1):
            while sum(len(client.acknowledged) for client in clients) < SPANS * kill // (KILLS + 1):
                clients[0].join(0.01)
            running.kill()
            running = program(store, ports=ports)
        for client in clients:
            client.join()
    finally:
        stopped = running.stop()
    assert stopped == 0
    acknowledged: set[str] = set().union(*(client.acknowledged for client in clients))
    assert len(acknowledged) == SPANS
    with Store.open(store) as opened:
        opened.compact()
        counted = list(opened.query("SELECT count(*), count(DISTINCT span_id), count(*) FILTER (NOT complete) FROM spans").rows)
        assert counted == [(SPANS, SPANS, 0)]
        assert list(opened.query("SELECT count(*) FROM span_versions").rows) == [(0,)]
        found = {str(row[0]) for row in opened.query("SELECT span_id FROM spans").rows}
    assert found == acknowledged
    if not FULL:
        assert {span.attributes["n"] for span in spans_in(store)} == set(range(SPANS // CLIENTS))
