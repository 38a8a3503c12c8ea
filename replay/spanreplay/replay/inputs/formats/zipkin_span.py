"""One span of Zipkin, read back into what OpenTelemetry gave to it.

Zipkin has texts only: attributes are tags, and status, scope, trace state and what was dropped are tags of agreed names. Exporters put the
resource among the tags too. An event with attributes is JSON in the text of an annotation. Links exist only as the Collector writes them.
"""

import json
from typing import Any, Final

from spanreplay.replay.inputs.formats.notes import Notes, Table
from spanreplay.replay.inputs.formats.plain import first, plain_value
from spanreplay.semconv.attributes import SERVICE_NAME
from spanreplay.spans._anyvalue import Fault, as_text, read_int
from spanreplay.spans._fields import MAX_TIME, SPAN_ID_BYTES, TRACE_ID_BYTES, hex_id, required_id
from spanreplay.spans.errors import ATTRIBUTE_DROPPED, EVENT_DROPPED, FormatError, describe
from spanreplay.spans.record import (
    STATUS_ERROR,
    STATUS_OK,
    STATUS_UNSET,
    EventRecord,
    LinkRecord,
    Resource,
    Scope,
    SpanRecord,
    Value,
)

_OTLP: Final = "export OTLP instead: Zipkin's form has no place for it"
_TAG_LIMIT: Final = 128
"""Characters at which the exporter of the Python SDK cuts every tag by default (``max_tag_value_length``)."""
TABLE: Final[Table] = {
    "time-us": ("has times in microseconds only", _OTLP),
    "values-text": ("has every attribute as a text: numbers, booleans, lists and maps are told apart no more", _OTLP),
    "scope-attributes-lost": ("is without the attributes and schema urls of its scope and resource, if there were any", _OTLP),
    "tags-cut": (
        f"has values of {_TAG_LIMIT} characters, at which the Python SDK cuts by default",
        "give the exporter a larger limit: ZipkinExporter(max_tag_value_length=…), or export OTLP",
    ),
    "id-shared": ("shared its id with its client, as Zipkin's servers do, and has one of its own now", ""),
    "time-missing": ("has no time at which it began", ""),
}
ALWAYS: Final = ("time-us", "values-text", "scope-attributes-lost")

_KINDS: Final = {"SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
_MICRO: Final = 1000
_SCOPE_NAMES: Final = ("otel.scope.name", "otel.library.name")
_SCOPE_VERSIONS: Final = ("otel.scope.version", "otel.library.version")
_STATES: Final = ("w3c.tracestate", "otel.trace_state")
_CODES: Final = {
    "OK": STATUS_OK,
    "ERROR": STATUS_ERROR,
    "STATUS_CODE_OK": STATUS_OK,
    "STATUS_CODE_ERROR": STATUS_ERROR,
    "UNSET": STATUS_UNSET,
}
_OF_RESOURCE: Final = ("service.", "telemetry.sdk.", "telemetry.distro.")
_LINK: Final = "otlp.link."
_LINK_PARTS: Final = 5


def read_span(raw: dict[str, Any], faults: list[Fault], notes: Notes) -> SpanRecord:
    """Reads one span.

    Raises:
        FormatError: An id or a time cannot be read; ``where`` is the field.
    """
    tags = _tags(raw, faults)
    notes.of("tags-cut", max((len(value) for value in tags.values() if isinstance(value, str)), default=0) == _TAG_LIMIT)
    start = _micros(raw.get("timestamp"), "timestamp")
    notes.of("time-missing", start is None)
    start = start or 0
    duration = _micros(raw.get("duration"), "duration")
    status, message = _status(tags)
    scope = Scope(name=_take(tags, *_SCOPE_NAMES), version=_take(tags, *_SCOPE_VERSIONS))
    trace_state = _take(tags, *_STATES)
    counts = [_count(tags, f"otel.dropped_{what}_count") for what in ("attributes", "events", "links")]
    kind = 1 if tags.get("span.kind") == "internal" and raw.get("kind") is None else _KINDS.get(str(raw.get("kind")), 0)
    if kind == 1:
        del tags["span.kind"]
    resource = _resource(raw, tags)
    _endpoints(raw, tags)
    events = _events(raw, faults)
    return SpanRecord(
        trace_id=required_id(_padded(raw.get("traceId"), TRACE_ID_BYTES), TRACE_ID_BYTES, "traceId"),
        span_id=required_id(_padded(raw.get("id"), SPAN_ID_BYTES), SPAN_ID_BYTES, "id"),
        parent_span_id=hex_id(_padded(raw.get("parentId"), SPAN_ID_BYTES), SPAN_ID_BYTES, "parentId"),
        name=as_text(raw.get("name"), "name"),
        kind=kind,
        start_ns=start * _MICRO,
        end_ns=None if duration is None or start + duration > MAX_TIME // _MICRO else (start + duration) * _MICRO,
        status=status,
        status_message=message,
        links=_links(tags),
        attributes=tags,
        events=events,
        resource=resource,
        scope=scope,
        trace_state=trace_state,
        dropped_attributes=counts[0],
        dropped_events=counts[1],
        dropped_links=counts[2],
    )


def _tags(raw: dict[str, Any], faults: list[Fault]) -> dict[str, Value]:
    tags = raw.get("tags")
    if tags is None:
        return {}
    if not isinstance(tags, dict):
        faults.append((ATTRIBUTE_DROPPED, "tags", "an object", describe(tags)))
        return {}
    return {key: plain_value(value, faults, f"tags.{key}") for key, value in tags.items()}


def _padded(raw: Any, size: int) -> Any:
    return raw.rjust(2 * size, "0") if isinstance(raw, str) and 0 < len(raw) < 2 * size and not raw.endswith("=") else raw


def _micros(raw: Any, field: str) -> int | None:
    if raw is None:
        return None
    try:
        value = read_int(raw, [])
    except FormatError:
        value = -1
    if not 0 <= value <= MAX_TIME // _MICRO:
        raise FormatError(field, "microseconds", describe(raw))
    return value


def _take(tags: dict[str, Value], *names: str) -> str:
    """Takes the tags of these names, which say the same, and gives the first text."""
    found = [tags.pop(name) for name in names if isinstance(tags.get(name), str)]
    return str(found[0]) if found else ""


def _count(tags: dict[str, Value], name: str) -> int:
    text = tags.get(name)
    if not (isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 10):
        return 0
    del tags[name]
    return int(text)


def _status(tags: dict[str, Value]) -> tuple[int, str]:
    """The status; Zipkin's own sign of an error is that there is a tag ``error``, whatever it says, unless it says ``false``."""
    code = tags.get("otel.status_code")
    known = code.upper() if isinstance(code, str) else ""
    status = _CODES.get(known)
    if status is not None:
        del tags["otel.status_code"]
    message = _take(tags, "otel.status_description")
    error = tags.get("error")
    if status in (STATUS_OK, STATUS_UNSET) or not isinstance(error, str) or (status is None and error == "false"):
        return status or STATUS_UNSET, message
    del tags["error"]
    return STATUS_ERROR, message or ("" if error == "true" else error)


def _resource(raw: dict[str, Any], tags: dict[str, Value]) -> Resource:
    endpoint = raw.get("localEndpoint")
    service = endpoint.get("serviceName") if isinstance(endpoint, dict) else None
    attributes: dict[str, Value] = {SERVICE_NAME: service} if isinstance(service, str) and service else {}
    for key in [key for key in tags if key.startswith(_OF_RESOURCE)]:
        attributes[key] = tags.pop(key)
    return Resource(attributes=attributes)


def _endpoints(raw: dict[str, Any], tags: dict[str, Value]) -> None:
    """Adds what the endpoints say of the network, by the names that OpenTelemetry has for it."""
    for name, side in (("localEndpoint", "local"), ("remoteEndpoint", "peer")):
        endpoint = raw.get(name)
        if not isinstance(endpoint, dict):
            continue
        address, port = first(endpoint, ("ipv4", "ipv6")), endpoint.get("port")
        if isinstance(address, str):
            tags.setdefault(f"network.{side}.address", address)
        if isinstance(port, int):
            tags.setdefault(f"network.{side}.port", port)
        service = endpoint.get("serviceName")
        if side == "peer" and isinstance(service, str) and service:
            tags.setdefault("peer.service", service)


def _events(raw: dict[str, Any], faults: list[Fault]) -> tuple[EventRecord, ...]:
    items = raw.get("annotations")
    events: list[EventRecord] = []
    for index, item in enumerate(items if isinstance(items, list) else ()):
        time = None
        if isinstance(item, dict) and isinstance(item.get("value"), str):
            try:
                time = _micros(item.get("timestamp"), "timestamp")
            except FormatError:
                time = None
        if time is None:
            faults.append((EVENT_DROPPED, f"annotations[{index}]", "a timestamp and a text", describe(item)))
            continue
        name, attributes, dropped = _annotation(item["value"])
        values = {str(key): plain_value(value, faults, f"annotations[{index}]") for key, value in attributes.items()}
        events.append(EventRecord(name=name, time_ns=time * _MICRO, attributes=values, dropped_attributes=dropped))
    return tuple(events)


def _annotation(text: str) -> tuple[str, dict[str, Any], int]:
    """The event in an annotation: ``{"name": {…}}`` or ``"name": {…}`` of the SDKs, ``name|{…}|dropped`` of the Collector, or a name."""
    if text.startswith('"') and text.endswith("}"):
        text = f"{{{text}}}"
    if text.startswith("{"):
        value = _json(text)
        if isinstance(value, dict) and len(value) == 1:
            ((name, attributes),) = value.items()
            if isinstance(attributes, dict):
                return name, attributes, 0
    head, _, dropped = text.rpartition("|")
    name, bar, inner = head.partition("|")
    attributes = _json(inner) if bar and dropped.isascii() and dropped.isdigit() and len(dropped) < 10 else None
    return (name, attributes, int(dropped)) if isinstance(attributes, dict) else (text, {}, 0)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _links(tags: dict[str, Value]) -> tuple[LinkRecord, ...]:
    """Takes the links that the Collector writes: trace id, span id, state, attributes and count of dropped ones, with bars between."""
    links: list[LinkRecord] = []
    for key in [key for key in tags if key.startswith(_LINK)]:
        text = tags[key]
        parts = text.split("|") if isinstance(text, str) else []
        if len(parts) < _LINK_PARTS:
            continue
        attributes = _json("|".join(parts[3:-1]))
        try:
            link = LinkRecord(
                trace_id=required_id(parts[0], TRACE_ID_BYTES, ""),
                span_id=required_id(parts[1], SPAN_ID_BYTES, ""),
                trace_state=parts[2],
                attributes={key: plain_value(value, []) for key, value in attributes.items()} if isinstance(attributes, dict) else {},
                dropped_attributes=int(parts[-1]) if parts[-1].isascii() and parts[-1].isdigit() and len(parts[-1]) < 10 else 0,
            )
        except FormatError:
            continue
        del tags[key]
        links.append(link)
    return tuple(links)
