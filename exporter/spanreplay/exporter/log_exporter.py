"""``DuckDBLogExporter``: GenAI content that arrives as log events, into the store.

Entry point ``duckdb`` of ``opentelemetry_logs_exporter``: ``OTEL_LOGS_EXPORTER=duckdb``. Ordinary log lines stay out: a record is kept
when it is an event or has a ``gen_ai.*`` attribute.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult

from spanreplay.exporter.events import is_event, is_kept
from spanreplay.exporter.pipeline import Pipeline


class DuckDBLogExporter(LogRecordExporter):
    """Writes events to a spanreplay store.

    Arguments and environment as for :class:`~spanreplay.exporter.span_exporter.DuckDBSpanExporter`.
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

    def export(self, batch: Sequence[Any]) -> LogRecordExportResult:
        """Write the events among ``batch``.

        Returns:
            ``FAILURE`` after :meth:`shutdown` or when a record could not be kept; never raises.
        """
        if self._stopped:
            return LogRecordExportResult.FAILURE
        pipeline = self._pipeline
        before = pipeline.lost
        for data in batch:
            try:
                if is_event(data.log_record) and not is_kept(data.log_record):
                    pipeline.writer.write_log(pipeline.converter.log(data))
            except Exception:  # noqa: BLE001 — telemetry never breaks the agent
                pipeline.failed("a log event")
        return LogRecordExportResult.SUCCESS if pipeline.lost == before else LogRecordExportResult.FAILURE

    def shutdown(self) -> None:
        """Export nothing from now on."""
        if not self._stopped:
            self._stopped = True
            self._pipeline.sync()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Put everything on the disk."""
        self._pipeline.sync()
        return True
