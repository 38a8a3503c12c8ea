"""The neutral records written as OTLP protobuf messages."""

import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogMessage
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spanreplay.spans._anyvalue import Fault, write_value
from spanreplay.spans._fields import MAX_UINT32, SPAN_ID_BYTES, TRACE_ID_BYTES
from spanreplay.spans.errors import DEPTH_AS_TEXT, INT_AS_TEXT, TEXT_REPLACED, FormatError, describe
from spanreplay.spans.record import LogRecord, Resource, Scope, SpanRecord, Value

MAX_DEPTH: Final = 30
"""Protobuf readers refuse more than 100 messages within each other; a key-value list takes three, a span and its groups five."""

KeyValues: TypeAlias = Any
"""A repeated ``KeyValue`` field."""


def write_span(span: SpanRecord, out: SpanMessage, faults: list[Fault]) -> None:
    """Fills ``out``.

    Raises:
        FormatError: An id is no hex of its length, or a number does not fit its field.
    """
    try:
        out.trace_id = _id(span.trace_id, TRACE_ID_BYTES, "trace_id")
        out.span_id = _id(span.span_id, SPAN_ID_BYTES, "span_id")
        if span.parent_span_id:
            out.parent_span_id = _id(span.parent_span_id, SPAN_ID_BYTES, "parent_span_id")
        out.trace_state = _text(span.trace_state, "trace_state", faults)
        out.flags = span.flags
        out.name = _text(span.name, "name", faults)
        out.kind = span.kind  # type: ignore[assignment]
        out.start_time_unix_nano = span.start_ns
        out.end_time_unix_nano = span.end_ns or 0
        _write_attributes(span.attributes, out.attributes, faults, "attributes", 0)
        out.dropped_attributes_count = _count(span.dropped_attributes)
        for event in span.events:
            message = out.events.add(time_unix_nano=event.time_ns, name=_text(event.name, "events.name", faults))
            _write_attributes(event.attributes, message.attributes, faults, "events.attributes", 0)
            message.dropped_attributes_count = _count(event.dropped_attributes)
        out.dropped_events_count = _count(span.dropped_events)
        for link in span.links:
            target = out.links.add(flags=link.flags, trace_state=_text(link.trace_state, "links.trace_state", faults))
            target.trace_id = _id(link.trace_id, TRACE_ID_BYTES, "links.trace_id")
            target.span_id = _id(link.span_id, SPAN_ID_BYTES, "links.span_id")
            _write_attributes(link.attributes, target.attributes, faults, "links.attributes", 0)
            target.dropped_attributes_count = _count(link.dropped_attributes)
        out.dropped_links_count = _count(span.dropped_links)
        if span.status or span.status_message:
            out.status.code = span.status  # type: ignore[assignment]
            out.status.message = _text(span.status_message, "status.message", faults)
    except ValueError as error:
        raise FormatError("", "numbers that fit their field", str(error)) from None


def write_log(log: LogRecord, out: LogMessage, faults: list[Fault]) -> None:
    """Fills ``out``.

    Raises:
        FormatError: An id is no hex of its length, or a number does not fit its field.
    """
    try:
        out.time_unix_nano = log.time_ns
        out.observed_time_unix_nano = log.observed_ns
        out.severity_number = log.severity  # type: ignore[assignment]
        out.severity_text = _text(log.severity_text, "severity_text", faults)
        if log.body is not None:
            _write_value(log.body, out.body, faults, "body", 0)
        _write_attributes(log.attributes, out.attributes, faults, "attributes", 0)
        out.dropped_attributes_count = _count(log.dropped_attributes)
        out.flags = log.flags
        if log.trace_id:
            out.trace_id = _id(log.trace_id, TRACE_ID_BYTES, "trace_id")
        if log.span_id:
            out.span_id = _id(log.span_id, SPAN_ID_BYTES, "span_id")
        out.event_name = _text(log.event_name, "event_name", faults)
    except ValueError as error:
        raise FormatError("", "numbers that fit their field", str(error)) from None


def write_resource(resource: Resource, out: ResourceMessage, faults: list[Fault]) -> None:
    """Fills ``out``; the schema url belongs to the group around it."""
    _write_attributes(resource.attributes, out.attributes, faults, "attributes", 0)
    out.dropped_attributes_count = _count(resource.dropped_attributes)


def write_scope(scope: Scope, out: InstrumentationScope, faults: list[Fault]) -> None:
    """Fills ``out``; the schema url belongs to the group around it."""
    out.name = _text(scope.name, "name", faults)
    out.version = _text(scope.version, "version", faults)
    _write_attributes(scope.attributes, out.attributes, faults, "attributes", 0)
    out.dropped_attributes_count = _count(scope.dropped_attributes)


def clean(text: str) -> str:
    """The text with its lone surrogates replaced by U+FFFD; surrogate pairs become the character they stand for."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _id(text: str, size: int, field: str) -> bytes:
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = b""
    if len(data) != size:
        raise FormatError(field, f"an id of {2 * size} hex digits", describe(text))
    return data


def _count(value: int) -> int:
    return min(max(value, 0), MAX_UINT32)


def _text(text: str, place: str, faults: list[Fault]) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        faults.append((TEXT_REPLACED, place, "text without lone surrogates", "some, written as U+FFFD"))
        return clean(text)
    return text


def _write_attributes(attributes: Mapping[str, Value], out: KeyValues, faults: list[Fault], place: str, depth: int) -> None:
    for key, value in attributes.items():
        pair = out.add(key=_text(key, place, faults))
        _write_value(value, pair.value, faults, f"{place}.{pair.key}", depth)


def _write_value(value: Value, out: AnyValue, faults: list[Fault], place: str, depth: int) -> None:
    match value:
        case str():
            out.string_value = _text(value, place, faults)
        case bool():
            out.bool_value = value
        case int():
            if -(2**63) <= value < 2**63:
                out.int_value = value
            else:
                faults.append((INT_AS_TEXT, place, "an integer of 64 bits", f"one of {value.bit_length()} bits, written as text"))
                out.string_value = _decimal(value)
        case float():
            out.double_value = value
        case bytes() | bytearray() | memoryview():
            out.bytes_value = bytes(value)
        case None:
            # An AnyValue without a value is the empty value, not an absent one.
            out.SetInParent()
        case _ if depth >= MAX_DEPTH:
            faults.append((DEPTH_AS_TEXT, place, f"at most {MAX_DEPTH} levels of nesting", "more, written as JSON text"))
            out.string_value = json.dumps(write_value(value, [], depth))
        case Mapping():
            out.kvlist_value.SetInParent()
            _write_attributes(value, out.kvlist_value.values, faults, place, depth + 1)
        case _:
            out.array_value.SetInParent()
            for index, item in enumerate(value):
                _write_value(item, out.array_value.values.add(), faults, f"{place}[{index}]", depth + 1)


def _decimal(value: int) -> str:
    try:
        return str(value)
    except ValueError:
        return hex(value)
