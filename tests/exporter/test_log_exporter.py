"""The log exporter: events with content in, ordinary log lines out."""

from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import LogRecordExportResult, SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from spanreplay.exporter import DuckDBLogExporter
from spanreplay.spans.record import LogRecord as OurLog
from spanreplay.store.journal import get_writer
from spanreplay.store.store import Store


def kept(store: Path) -> list[OurLog]:
    get_writer(store).sync()
    with Store.open(store, create=True) as opened:
        opened.compact()
        return list(opened.logs(opened.stale_traces()))


def emit(exporter: DuckDBLogExporter, **fields: Any) -> tuple[str, str]:
    provider = LoggerProvider(resource=Resource({"service.name": "shop"}), shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    with TracerProvider(shutdown_on_exit=False).get_tracer("t").start_as_current_span("chat") as span:
        provider.get_logger("theirs", "3").emit(LogRecord(timestamp=5, severity_number=SeverityNumber.INFO, severity_text="INFO", **fields))
    context = span.get_span_context()
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"


def test_an_event_is_kept_with_its_span(tmp_path: Path) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "raw": b"\x00"}
    trace_id, span_id = emit(
        DuckDBLogExporter(tmp_path), event_name="gen_ai.user.message", body=body, attributes={"gen_ai.system": "openai"}
    )
    (log,) = kept(tmp_path)
    assert (log.trace_id, log.span_id, log.event_name, log.severity) == (trace_id, span_id, "gen_ai.user.message", 9)
    assert log.body == {"messages": [{"role": "user", "content": "hi"}], "raw": b"\x00"}
    assert (log.scope.name, log.scope.version, log.resource.attributes["service.name"]) == ("theirs", "3", "shop")


def test_ordinary_log_lines_stay_out(tmp_path: Path) -> None:
    exporter = DuckDBLogExporter(tmp_path)
    emit(exporter, body="starting up", attributes={"code.lineno": 3})
    emit(exporter, body="old style", attributes={"event.name": "gen_ai.choice"})
    assert [log.body for log in kept(tmp_path)] == ["old style"]


def test_the_entry_point_works_without_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANREPLAY_STORE", str(tmp_path))
    (point,) = entry_points(group="opentelemetry_logs_exporter", name="duckdb")
    exporter = point.load()()
    assert exporter.store == tmp_path
    assert exporter.export([]) is LogRecordExportResult.SUCCESS
    assert exporter.force_flush()
    exporter.shutdown()
    assert exporter.export([]) is LogRecordExportResult.FAILURE


def test_a_record_that_cannot_be_read_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    exporter = DuckDBLogExporter(tmp_path)
    assert exporter.export([object()]) is LogRecordExportResult.FAILURE
    assert "log event" in caplog.text
