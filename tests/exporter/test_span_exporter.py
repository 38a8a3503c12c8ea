"""The span exporter: complete from the environment, nothing twice, never in the way."""

import logging
import os
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spanreplay.exporter import DuckDBSpanExporter
from spanreplay.exporter.pipeline import announce
from spanreplay.exporter.recorder import Recorder
from spanreplay.spans.record import SpanRecord
from spanreplay.store.journal import get_writer
from spanreplay.store.store import Store


def kept(store: Path) -> list[SpanRecord]:
    get_writer(store).sync()
    with Store.open(store, create=True) as opened:
        opened.compact()
        return list(opened.traces(opened.stale_traces()))


def provider_with(*exporters: DuckDBSpanExporter) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    for exporter in exporters:
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


def test_the_entry_point_makes_an_exporter_from_the_environment_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANREPLAY_STORE", str(tmp_path / "s"))
    (point,) = entry_points(group="opentelemetry_traces_exporter", name="duckdb")
    exporter = point.load()()
    assert exporter.store == tmp_path / "s"
    with provider_with(exporter).get_tracer("theirs").start_as_current_span("chat", attributes={"a": [1, 2]}):
        pass
    (span,) = kept(tmp_path / "s")
    assert (span.name, span.attributes["a"], span.scope.name) == ("chat", [1, 2], "theirs")
    assert span.end_ns is not None


def test_the_default_store_does_not_move_with_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPANREPLAY_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    exporter = DuckDBSpanExporter()
    monkeypatch.chdir(tmp_path.parent)
    assert exporter.store == tmp_path / ".spanreplay"


def test_declarative_configuration_names_a_path_and_unknown_options_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert DuckDBSpanExporter(path=str(tmp_path)).store == tmp_path
    assert DuckDBSpanExporter(store=tmp_path, compress=True).store == tmp_path
    assert "compress" in caplog.text


def test_two_exporters_and_a_recorder_keep_a_span_once(tmp_path: Path) -> None:
    recorder = Recorder(get_writer(tmp_path))
    announce(tmp_path, recorder)
    provider = provider_with(DuckDBSpanExporter(tmp_path), DuckDBSpanExporter(tmp_path))
    provider.add_span_processor(recorder)  # type: ignore[arg-type]  # behind them: they export before it has written
    provider.get_tracer("theirs").start_span("chat").end()
    (span,) = kept(tmp_path)
    assert span.end_ns is not None
    journal = b"".join(path.read_bytes() for path in (tmp_path / "journal").glob("*.journal"))
    assert journal.count(b'"origin":"recorder"') == 1
    assert b'"origin":"exporter"' not in journal


def test_a_span_open_when_recording_stopped_is_kept_by_the_exporter(tmp_path: Path) -> None:
    recorder = Recorder(get_writer(tmp_path))
    announce(tmp_path, recorder)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(recorder)  # type: ignore[arg-type]
    provider.add_span_processor(SimpleSpanProcessor(DuckDBSpanExporter(tmp_path)))
    span = provider.get_tracer("theirs").start_span("chat")
    recorder.stop()
    span.end()
    assert kept(tmp_path)[0].end_ns is not None


def test_an_unwritable_store_is_a_failure_and_no_exception(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    sent = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(sent))
    for number in range(3):
        provider.get_tracer("theirs").start_span(f"s{number}").end()
    exporter = DuckDBSpanExporter(tmp_path / "file" / "store")
    assert exporter.export(sent.get_finished_spans()) is SpanExportResult.FAILURE
    assert len([r for r in caplog.records if r.name.startswith("spanreplay") and r.levelno >= logging.WARNING]) == 1


def test_nothing_is_exported_after_shutdown(tmp_path: Path) -> None:
    exporter = DuckDBSpanExporter(tmp_path)
    assert exporter.export([]) is SpanExportResult.SUCCESS
    assert exporter.force_flush()
    exporter.shutdown()
    exporter.shutdown()
    assert exporter.export([]) is SpanExportResult.FAILURE


def test_a_batch_pipeline_keeps_all_and_makes_no_span_of_its_own(tmp_path: Path) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(DuckDBSpanExporter(tmp_path)))
    for number in range(20):
        provider.get_tracer("theirs").start_span(f"s{number}").end()
    provider.shutdown()
    assert sorted(span.name for span in kept(tmp_path)) == sorted(f"s{number}" for number in range(20))


def test_secrets_stay_out_of_the_store(tmp_path: Path) -> None:
    secret = "sk-proj-" + "Zz9Yy8Xx" * 5
    with provider_with(DuckDBSpanExporter(tmp_path)).get_tracer("t").start_as_current_span("chat", attributes={"h": f"Bearer {secret}"}):
        pass
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def test_importing_the_facade_does_not_import_the_sdk() -> None:
    import subprocess
    import sys

    code = "import spanreplay.exporter.recorder, sys; print('opentelemetry.sdk' in sys.modules, 'duckdb' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ))
    assert done.stdout.split() == ["False", "False"]
