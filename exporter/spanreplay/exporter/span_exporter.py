"""``DuckDBSpanExporter``: spans from any OpenTelemetry SDK pipeline into the store.

Entry point ``duckdb`` of ``opentelemetry_traces_exporter``: ``OTEL_TRACES_EXPORTER=duckdb,otlp``. It writes to the same journal as the
recorder, and a span that the recorder has written is not written again.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from spanreplay.exporter.pipeline import Pipeline
from spanreplay.exporter.recorder import is_pending

_log: Final = logging.getLogger("spanreplay")


class DuckDBSpanExporter(SpanExporter):
    """Writes spans to a spanreplay store.

    Complete without arguments: the store is then ``SPANREPLAY_STORE``, else ``./.spanreplay``. ``export`` writes to a journal file at
    once and opens no database; ``spanreplay`` commands load the journals into DuckDB.

    Args:
        store: folder of the store.
        path: the same, as declarative configuration names it.
        redaction: ``default`` or ``none``; ``SPANREPLAY_REDACTION`` otherwise.
        **ignored: options of later versions; said once, not refused.
    """

    def __init__(
        self, store: str | Path | None = None, *, path: str | Path | None = None, redaction: str | None = None, **ignored: object
    ) -> None:
        self._pipeline = Pipeline(store or path, redaction=redaction, ignored=ignored)
        self._stopped = False

    @property
    def store(self) -> Path:
        """Folder of the store, absolute."""
        return self._pipeline.store

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write what the recorder of this process has not written.

        Returns:
            ``FAILURE`` after :meth:`shutdown` or when a span could not be kept, which is counted in the store too; never raises.
        """
        if self._stopped:
            return SpanExportResult.FAILURE
        pipeline = self._pipeline
        before = pipeline.lost
        for span in spans:
            try:
                context = span.get_span_context()
                if context is None or is_pending(span):
                    continue
                if not pipeline.knows(f"{context.trace_id:032x}", f"{context.span_id:016x}"):
                    pipeline.writer.write_span(pipeline.converter.span(span), "exporter")
            except Exception:  # noqa: BLE001 — telemetry never breaks the agent
                pipeline.failed("a span")
        return SpanExportResult.SUCCESS if pipeline.lost == before else SpanExportResult.FAILURE

    def shutdown(self) -> None:
        """Export nothing from now on. The journal stays open for the others that write to it."""
        if not self._stopped:
            self._stopped = True
            self._pipeline.sync()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Put everything on the disk."""
        self._pipeline.sync()
        return True
