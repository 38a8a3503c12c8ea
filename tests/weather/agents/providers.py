"""Telemetry that applications set up for themselves: tracer providers and exporters of every temper."""

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF


class FileExporter(SpanExporter):
    """One line of JSON a span, in the file that ``THEIR_SPANS`` names."""

    def __init__(self) -> None:
        self._path = os.environ["THEIR_SPANS"]

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write them."""
        with open(self._path, "a") as file:
            file.writelines(json.dumps(_line(span)) + "\n" for span in spans)
        return SpanExportResult.SUCCESS


def _line(span: ReadableSpan) -> dict[str, Any]:
    context, scope = span.get_span_context(), span.instrumentation_scope
    assert context is not None
    return {
        "name": span.name,
        "scope": scope.name if scope else None,
        "trace_id": f"{context.trace_id:032x}",
        "span_id": f"{context.span_id:016x}",
        "parent": f"{span.parent.span_id:016x}" if span.parent else None,
        "attributes": dict(span.attributes or {}),
        "events": [[event.name, dict(event.attributes or {})] for event in span.events],
        "status": span.status.status_code.name,
        "dropped": span.dropped_attributes,
    }


def _provider(**options: Any) -> TracerProvider:
    provider = TracerProvider(**options)
    provider.add_span_processor(SimpleSpanProcessor(FileExporter()))
    if "OTEL_EXPORTER_OTLP_ENDPOINT" in os.environ:
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider


def plain() -> None:
    """A provider with the exporters of the application."""
    _provider()


def limited() -> None:
    """Limits that no span of an agent fits in."""
    _provider(span_limits=SpanLimits(max_attributes=8, max_attribute_length=10))


def off() -> None:
    """Nothing is sampled."""
    _provider(sampler=ALWAYS_OFF)


def with_logfire() -> None:
    """Logfire, sending nothing."""
    import logfire

    logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[SimpleSpanProcessor(FileExporter())])


class _Raising(SpanProcessor):
    """Raises for every span but the agent's own, which the agent would notice."""

    def __init__(self, where: str) -> None:
        self._where = where

    def _meet(self, where: str, span: Any = None) -> None:
        if where == self._where and (span is None or span.instrumentation_scope.name != "theirs"):
            raise RuntimeError(f"their processor fails in {where}")

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self._meet("on_start", span)

    def on_end(self, span: ReadableSpan) -> None:
        self._meet("on_end", span)

    def shutdown(self) -> None:
        self._meet("shutdown")

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        self._meet("force_flush")
        return True


class _RaisingExporter(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        raise RuntimeError("their exporter fails")

    def shutdown(self) -> None:
        raise RuntimeError("their exporter fails to stop")


def _raising(where: str) -> Callable[[], None]:
    return lambda: _provider().add_span_processor(_Raising(where))


def bad_exporter() -> None:
    """An exporter that raises whatever it is asked, behind both processors of the SDK."""
    provider = _provider()
    provider.add_span_processor(SimpleSpanProcessor(_RaisingExporter()))
    provider.add_span_processor(BatchSpanProcessor(_RaisingExporter()))


def ours() -> None:
    """Our own exporter, added by hand, to the store of the environment."""
    from spanreplay.exporter import DuckDBSpanExporter

    _provider().add_span_processor(SimpleSpanProcessor(DuckDBSpanExporter()))


SETUPS: Final[dict[str, Callable[[], None]]] = {
    "none": lambda: None,
    "plain": plain,
    "limited": limited,
    "off": off,
    "logfire": with_logfire,
    "on_start": _raising("on_start"),
    "on_end": _raising("on_end"),
    "shutdown": _raising("shutdown"),
    "exporter": bad_exporter,
    "ours": ours,
}
