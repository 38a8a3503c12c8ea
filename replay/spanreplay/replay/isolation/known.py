"""Data: the telemetry that the guard knows by its caller. The one place to add a vendor.

Probes are in :mod:`spanreplay.instrumentation.probes`.

An entry names a module and, where the module does other things too, the functions meant.
"""

from collections.abc import Mapping
from typing import Final

TELEMETRY: Final[Mapping[str, frozenset[str]]] = {
    "opentelemetry.exporter": frozenset(),
    "opentelemetry.sdk._shared_internal": frozenset(),  # the worker thread of batch processors
    "opentelemetry.sdk.trace.export": frozenset(),
    "opentelemetry.sdk._logs._internal.export": frozenset(),
    "opentelemetry.sdk.metrics._internal.export": frozenset(),
    "logfire._internal.exporters": frozenset(),
    "logfire._internal.forwarding": frozenset(),
    "logfire._internal.config": frozenset({"check_tokens", "from_token"}),
    "langsmith._internal._background_thread": frozenset(),
    "langsmith._internal.otel": frozenset(),
    "langsmith.client": frozenset(
        {
            "create_run",
            "update_run",
            "batch_ingest_runs",
            "multipart_ingest",
            "_send_multipart_req",
            "_send_compressed_multipart_req",
        }
    ),
    "agents.tracing.processors": frozenset(),  # openai-agents
    "langfuse._client.span_exporter": frozenset(),
    "langfuse._task_manager": frozenset(),
    "traceloop.sdk.telemetry": frozenset(),
    "mlflow.telemetry.client": frozenset(),
    "posthog.consumer": frozenset(),
    "posthog._async_consumer": frozenset(),
    "posthog.capture_send": frozenset(),
    "posthog.request": frozenset({"batch_post"}),  # feature flags go through the same module and are not telemetry
    "sentry_sdk.transport": frozenset(),
    "sentry_sdk.worker": frozenset(),
}
"""Modules below which every connection is telemetry of an exporter or a vendor.

Module prefix to the functions meant; an empty set means all of them. Never a module whose wrappers run the user's own code, as a tool
that an instrumentation wraps would then pass for telemetry.
"""
