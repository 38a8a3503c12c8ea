"""OTLP JSON as the specification writes it, decoded straight into types of its own: no object is made of what no record needs.

A document with any other field, or with the same field in another form, is none of these; a span with anything unusual in it is looked up
in the document as ``json.loads`` gives it, and read with the care of :mod:`spanreplay.spans._json_records`.
"""

import json
from typing import Any, Final

import msgspec
from msgspec.structs import astuple

from spanreplay.spans._anyvalue import INT64_DIGITS, READERS, Fault, as_text, read_int
from spanreplay.spans._fields import SPAN_ID_BYTES, TRACE_ID_BYTES, hex_id, read_count, read_enum, read_time, required_id
from spanreplay.spans._json_records import KINDS, read_events, read_links, read_status
from spanreplay.spans.errors import FormatError
from spanreplay.spans.json_parsing import REFUSED
from spanreplay.spans.record import Resource, Scope, SpanRecord, Value


class _Value(msgspec.Struct, rename="camel", gc=False, forbid_unknown_fields=True):
    string_value: str | None = None
    int_value: Any = None
    double_value: Any = None
    bool_value: Any = None
    array_value: Any = None
    kvlist_value: Any = None
    bytes_value: Any = None


_READERS: Final = tuple(READERS[name] for name in _Value.__struct_encode_fields__)


class _KeyValue(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    key: str
    value: _Value


class PlainSpan(msgspec.Struct, rename="camel", gc=False, forbid_unknown_fields=True):
    """A ``Span``, its fields as they came."""

    trace_id: Any = None
    span_id: Any = None
    trace_state: Any = None
    parent_span_id: Any = None
    flags: Any = None
    name: Any = None
    kind: Any = None
    start_time_unix_nano: Any = None
    end_time_unix_nano: Any = None
    attributes: list[_KeyValue] | None = None
    dropped_attributes_count: Any = None
    events: Any = None
    dropped_events_count: Any = None
    links: Any = None
    dropped_links_count: Any = None
    status: Any = None


class PlainScope(msgspec.Struct, rename="camel", gc=False, forbid_unknown_fields=True):
    """A ``ScopeSpans``."""

    spans: list[PlainSpan] = []
    scope: Any = None
    schema_url: Any = None


class PlainGroup(msgspec.Struct, rename="camel", gc=False, forbid_unknown_fields=True):
    """A ``ResourceSpans``."""

    scope_spans: list[PlainScope] = []
    resource: Any = None
    schema_url: Any = None


class _Document(msgspec.Struct, rename="camel", gc=False, forbid_unknown_fields=True):
    resource_spans: list[PlainGroup]


_decode: Final = msgspec.json.Decoder(_Document).decode


class PlainDocument:
    """A ``TracesData``, or a request to export traces.

    Args:
        text: its bytes.

    Raises:
        ValueError: It is none, or not to the letter.
    """

    __slots__ = ("_document", "_text", "groups")

    def __init__(self, text: bytes) -> None:
        try:
            self.groups: list[PlainGroup] = _decode(text).resource_spans
        except REFUSED as error:
            raise ValueError(str(error)) from None
        self._text = text
        self._document: Any = None

    def raw_span(self, group: int, scoped: int, index: int) -> Any:
        """One of its spans as ``json.loads`` gives it."""
        if self._document is None:
            self._document = json.loads(self._text)
        return self._document["resourceSpans"][group]["scopeSpans"][scoped]["spans"][index]


def read_plain(span: PlainSpan, resource: Resource, scope: Scope) -> SpanRecord | None:
    """The record of a span that has nothing unusual; ``None`` of any other."""
    faults: list[Fault] = []
    try:
        attributes = _attributes(span.attributes, faults) if span.attributes else {}
        status, message = read_status(span.status) if span.status else (0, "")
        record = SpanRecord(
            trace_id=required_id(span.trace_id, TRACE_ID_BYTES, "traceId"),
            span_id=required_id(span.span_id, SPAN_ID_BYTES, "spanId"),
            parent_span_id=hex_id(span.parent_span_id, SPAN_ID_BYTES, "parentSpanId"),
            name=as_text(span.name, "name"),
            kind=read_enum(span.kind, KINDS, "SPAN_KIND_", "kind"),
            start_ns=read_time(span.start_time_unix_nano, "startTimeUnixNano", faults),
            end_ns=read_time(span.end_time_unix_nano, "endTimeUnixNano", faults) or None,
            status=status,
            status_message=message,
            attributes=attributes,
            events=read_events(span.events, faults) if span.events else (),
            links=read_links(span.links, faults) if span.links else (),
            resource=resource,
            scope=scope,
            trace_state=as_text(span.trace_state, "traceState"),
            flags=read_count(span.flags, "flags", faults),
            dropped_attributes=read_count(span.dropped_attributes_count, "droppedAttributesCount", faults),
            dropped_events=read_count(span.dropped_events_count, "droppedEventsCount", faults),
            dropped_links=read_count(span.dropped_links_count, "droppedLinksCount", faults),
        )
    except FormatError:
        return None
    return None if faults else record


def _attributes(items: list[_KeyValue], faults: list[Fault]) -> dict[str, Value]:
    out: dict[str, Value] = {}
    for item in items:
        value = item.value
        text = value.string_value
        if text is None or not (
            value.int_value is value.double_value is value.bool_value is None
            and value.array_value is value.kvlist_value is value.bytes_value is None
        ):
            out[item.key] = _read_value(value, faults)
        else:
            out[item.key] = text
    if len(out) != len(items):
        raise FormatError("attributes", "each key once", "one again")
    return out


def _read_value(value: _Value, faults: list[Fault]) -> Value:
    given = astuple(value)
    absent = given.count(None)
    if absent == len(given):
        return None
    if absent < len(given) - 1:
        raise FormatError("", "a value of one kind", "one of several")
    raw: Any = value.int_value
    if raw is not None:
        return int(raw) if raw.__class__ is str and len(raw) < INT64_DIGITS and raw.isdigit() and raw.isascii() else read_int(raw, faults)
    raw = value.double_value
    if raw is not None and raw.__class__ is float:
        return raw
    return next(read(raw, faults, 0) for read, raw in zip(_READERS, given, strict=True) if raw is not None)
