"""The neutral record of one span and of one log record: the only shape between writers and readers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

Value: TypeAlias = "bool | int | float | str | bytes | Sequence[Value] | Mapping[str, Value] | None"
"""An OTLP ``AnyValue``. A sequence is a list or tuple; ``None`` is the empty value. ``1`` and ``1.0`` are different values."""

STATUS_UNSET: Final = 0
STATUS_OK: Final = 1
STATUS_ERROR: Final = 2

KIND_UNSPECIFIED: Final = 0
KIND_INTERNAL: Final = 1
KIND_SERVER: Final = 2
KIND_CLIENT: Final = 3
KIND_PRODUCER: Final = 4
KIND_CONSUMER: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """A span event."""

    name: str
    time_ns: int
    attributes: Mapping[str, Value] = field(default_factory=dict)
    dropped_attributes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRecord:
    """A span link. Ids are lower-case hex, 32 and 16 characters."""

    trace_id: str
    span_id: str
    trace_state: str = ""
    flags: int = 0
    attributes: Mapping[str, Value] = field(default_factory=dict)
    dropped_attributes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """What produced the span: OTLP resource attributes and their schema url."""

    attributes: Mapping[str, Value] = field(default_factory=dict)
    schema_url: str = ""
    dropped_attributes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The instrumentation scope."""

    name: str = ""
    version: str = ""
    attributes: Mapping[str, Value] = field(default_factory=dict)
    schema_url: str = ""
    dropped_attributes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRecord:
    """One span, whole. Ids are lower-case hex (32 and 16 characters), times are nanoseconds since the epoch."""

    trace_id: str
    span_id: str
    parent_span_id: str | None = None
    name: str = ""
    kind: int = KIND_UNSPECIFIED
    start_ns: int = 0
    end_ns: int | None = None
    """``None`` while open, and for ever if the process died."""
    status: int = STATUS_UNSET
    status_message: str = ""
    attributes: Mapping[str, Value] = field(default_factory=dict)
    events: tuple[EventRecord, ...] = ()
    links: tuple[LinkRecord, ...] = ()
    resource: Resource = field(default_factory=Resource)
    scope: Scope = field(default_factory=Scope)
    trace_state: str = ""
    flags: int = 0
    dropped_attributes: int = 0
    dropped_events: int = 0
    dropped_links: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """One log record that may carry GenAI content. ``trace_id`` and ``span_id`` are ``None`` outside a span."""

    time_ns: int
    observed_ns: int = 0
    trace_id: str | None = None
    span_id: str | None = None
    event_name: str = ""
    severity: int = 0
    severity_text: str = ""
    body: Value = None
    attributes: Mapping[str, Value] = field(default_factory=dict)
    resource: Resource = field(default_factory=Resource)
    scope: Scope = field(default_factory=Scope)
    flags: int = 0
    dropped_attributes: int = 0


Record: TypeAlias = SpanRecord | LogRecord
