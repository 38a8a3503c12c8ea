"""OpenTelemetry exporters into the store. The names are loaded when asked for: the SDK is not imported by recording alone."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spanreplay.exporter.log_exporter import DuckDBLogExporter
    from spanreplay.exporter.span_exporter import DuckDBSpanExporter

__all__ = ["DuckDBLogExporter", "DuckDBSpanExporter"]


def __getattr__(name: str) -> Any:  # PEP 562
    if name == "DuckDBSpanExporter":
        from spanreplay.exporter.span_exporter import DuckDBSpanExporter

        return DuckDBSpanExporter
    if name == "DuckDBLogExporter":
        from spanreplay.exporter.log_exporter import DuckDBLogExporter

        return DuckDBLogExporter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
