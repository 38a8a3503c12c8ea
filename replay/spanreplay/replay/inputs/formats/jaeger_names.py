"""How Jaeger's JSON says what OpenTelemetry has fields for: the names that its reader and its writer share.

The way there is the Collector's ``pkg/translator/jaeger`` (``traces_to_jaegerproto.go``), then Jaeger's ``internal/uimodel`` (v2.20).
Times are microseconds. Status, kind, scope and trace state are tags; parent and links are references.
"""

from typing import Final

from spanreplay.spans.record import KIND_CLIENT, KIND_CONSUMER, KIND_INTERNAL, KIND_PRODUCER, KIND_SERVER

NO_SERVICE: Final = "OTLPResourceNoServiceName"
"""The service of a resource without any attribute."""
REF_TYPE: Final = "opentracing.ref_type"
"""Attribute of a link that says which kind of reference it is in Jaeger; without it, ``FOLLOWS_FROM``."""
NOT_ENDED: Final = "the span had not ended when it was written"
"""The warning with which spanreplay writes an open span; Jaeger itself has no form for one."""

KINDS: Final = {
    "internal": KIND_INTERNAL,
    "server": KIND_SERVER,
    "client": KIND_CLIENT,
    "producer": KIND_PRODUCER,
    "consumer": KIND_CONSUMER,
}
SCOPE_NAMES: Final = ("otel.scope.name", "otel.library.name")
SCOPE_VERSIONS: Final = ("otel.scope.version", "otel.library.version")
SPAN_KIND: Final = "span.kind"
STATUS_CODE: Final = "otel.status_code"
STATUS_DESCRIPTION: Final = "otel.status_description"
ERROR: Final = "error"
TRACE_STATE: Final = "w3c.tracestate"
DROPPED_ATTRIBUTES: Final = "otel.dropped_attributes_count"
"""How many attributes a limit left out where it was recorded (OpenTelemetry, "Mapping to non-OTLP formats"); of a span or an event."""
DROPPED_EVENTS: Final = "otel.dropped_events_count"
DROPPED_LINKS: Final = "otel.dropped_links_count"
EVENT: Final = "event"
CHILD_OF: Final = "CHILD_OF"
FOLLOWS_FROM: Final = "FOLLOWS_FROM"
SAMPLED: Final = 1
