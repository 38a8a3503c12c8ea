"""The parts of a span in plain JSON: attributes, resource, scope, context, status and kind, by whatever names they come."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from spanreplay.replay.inputs.formats.notes import Notes
from spanreplay.replay.inputs.formats.plain import first, plain_value
from spanreplay.replay.inputs.nesting import joined
from spanreplay.spans._anyvalue import Fault, read_value
from spanreplay.spans._fields import MAX_UINT32, read_enum
from spanreplay.spans.errors import ATTRIBUTE_DROPPED, FormatError, describe
from spanreplay.spans.record import KIND_INTERNAL, KIND_UNSPECIFIED, STATUS_UNSET, Resource, Scope, Value

KINDS: Final = {"UNSPECIFIED": 0, "INTERNAL": 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
CODES: Final = {"UNSET": 0, "OK": 1, "ERROR": 2}

SCOPES: Final = (
    "scope",
    "instrumentation_scope",
    "instrumentationScope",
    "instrumentation_library",
    "instrumentationLibrary",
    "instrumentation_info",
)
SCOPE_NAMES: Final = ("scope_name", "scopeName", "otel_scope_name")
SCOPE_VERSIONS: Final = ("scope_version", "scopeVersion", "otel_scope_version")
RESOURCES: Final = ("resource", "resource_attributes", "resourceAttributes", "otel_resource_attributes")
_SCHEMA_URLS: Final = ("schema_url", "schemaUrl", "_schemaUrl")
_RAW_ATTRIBUTES: Final = ("attributes", "_rawAttributes", "_attributes")
_DROPPED: Final = ("dropped_attributes", "droppedAttributesCount", "dropped_attributes_count", "_droppedAttributesCount")
_CODE_NAMES: Final = ("code", "status_code", "statusCode")
_MESSAGE_NAMES: Final = ("message", "description", "status_message")
_ANY_VALUE: Final = re.compile(r"(?:string|bool|int|double|array|kvlist|bytes)_?value", re.IGNORECASE)
_ENTRY: Final = re.compile(r"\{key=([^,{}]*), value=([^{}]*)\}")
_LONGEST: Final = 1_000_000


def read_attributes(raw: Any, where: str, faults: list[Fault], notes: Notes | None = None) -> dict[str, Value]:
    """Attributes as an object, as a list of keys and values, or as the JSON text of either.

    Args:
        raw: The attributes.
        where: Their name, for what cannot be read.
        faults: Receives what was left out.
        notes: Told when names had been taken apart; without it they stay so.
    """
    if isinstance(raw, str) and raw[:1] in ("{", "[") and len(raw) < _LONGEST:
        with suppress(ValueError, RecursionError):
            raw = json.loads(raw)
    if raw is None or raw in ("", [], {}):
        return {}
    if isinstance(raw, list):
        return _listed(raw, where, faults)
    if not isinstance(raw, dict):
        faults.append((ATTRIBUTE_DROPPED, where, "an object of attributes", describe(raw)))
        return {}
    attributes: Mapping[str, Any] = raw
    if notes is not None:
        attributes, nested = joined(raw)
        notes.of("attributes-nested", nested)
    return {str(key): plain_value(value, faults, f"{where}.{key}") for key, value in attributes.items()}


def _listed(items: list[Any], where: str, faults: list[Fault]) -> dict[str, Value]:
    out: dict[str, Value] = {}
    for index, item in enumerate(items):
        place = f"{where}[{index}]"
        key, value = item if isinstance(item, list) and len(item) == 2 else (None, None)
        if isinstance(item, dict):
            key, value = item.get("key"), item.get("value")
        if not isinstance(key, str):
            faults.append((ATTRIBUTE_DROPPED, place, "a key and a value", describe(item)))
            continue
        if isinstance(item, dict) and isinstance(value, dict) and len(value) <= 1 and all(_ANY_VALUE.fullmatch(name) for name in value):
            try:
                out[key] = read_value(value, faults)
            except FormatError as error:
                faults.append((ATTRIBUTE_DROPPED, f"{place}.value", error.expected, f"{error.found} in attribute {key[:80]!a}"))
        else:
            out[key] = plain_value(value, faults, place)
    return out


def read_resource(raw: dict[str, Any], faults: list[Fault], notes: Notes) -> Resource:
    """What produced the span: an object with its attributes, or the attributes alone."""
    given = first(raw, RESOURCES)
    notes.of("resource-lost", given is None)
    if not isinstance(given, dict):
        return Resource(attributes=read_attributes(given if isinstance(given, list) else None, "resource", faults))
    owner = any(isinstance(given.get(name), dict | list) for name in _RAW_ATTRIBUTES)
    attributes = first(given, _RAW_ATTRIBUTES) if owner or not given.keys().isdisjoint(_SCHEMA_URLS) else given
    return Resource(
        attributes=read_attributes(attributes, "resource.attributes", faults),
        schema_url=text_of(first(given, _SCHEMA_URLS)) if owner else "",
    )


def read_scope(raw: dict[str, Any], faults: list[Fault], notes: Notes) -> Scope:
    """The instrumentation scope: an object, a name, or fields of the span beside each other."""
    given = first(raw, SCOPES)
    name, version = text_of(first(raw, SCOPE_NAMES)), text_of(first(raw, SCOPE_VERSIONS))
    if not isinstance(given, dict):
        name = name or text_of(given)
        notes.of("scope-lost", not name)
        return Scope(name=name, version=version)
    return Scope(
        name=text_of(given.get("name")) or name,
        version=text_of(given.get("version")) or version,
        attributes=read_attributes(given.get("attributes"), "scope.attributes", faults),
        schema_url=text_of(first(given, _SCHEMA_URLS)),
    )


def read_status(status: Any, message: Any) -> tuple[int, str]:
    """The status: an object, a word such as ``ok`` or ``StatusCode.ERROR``, or a number.

    Raises:
        FormatError: It is none that OpenTelemetry has.
    """
    if isinstance(status, dict):
        message = first(status, _MESSAGE_NAMES) if message is None else message
        status = first(status, _CODE_NAMES)
    try:
        code = read_enum(status, CODES, "STATUS_CODE_", "status")
    except FormatError:
        # Words of tools of their own: success is what spans have unless they say otherwise.
        code = CODES["ERROR"] if isinstance(status, str) and status.lower() in ("error", "failed", "failure") else STATUS_UNSET
    return code, text_of(message)


def read_kind(raw: Any, *, of_otlp: bool) -> int | None:
    """The kind, by word or number; ``None`` if the field says something else, as tools with kinds of their own do.

    Args:
        raw: The kind.
        of_otlp: Whether numbers are those of OTLP, which begin with "unspecified"; those of the SDKs begin with ``INTERNAL``.
    """
    if raw is None:
        return KIND_UNSPECIFIED
    try:
        kind = read_enum(raw, KINDS, "SPAN_KIND_", "kind")
    except FormatError:
        return None
    numbered = not isinstance(raw, str) or raw.isdigit()
    return kind + KIND_INTERNAL if numbered and not of_otlp else kind


def trace_state_of(raw: Any) -> str:
    """A trace state as its header, out of that, the ``repr`` that Python's ``to_json`` writes, or a dump of its entries."""
    if isinstance(raw, dict) and isinstance(raw.get("entries"), dict):
        return ",".join(f"{key}={value}" for key, value in raw["entries"].items())
    if not isinstance(raw, str):
        return ""
    if raw[:1] == "[" and raw[-1:] == "]":
        return ",".join(f"{key}={value}" for key, value in _ENTRY.findall(raw))
    return raw


def flags_of(raw: Any) -> int:
    """The flags of a span context, as a number or as an object that has it."""
    if isinstance(raw, dict):
        raw = raw.get("value")
    if isinstance(raw, str) and raw.isascii() and raw.isdigit() and len(raw) < 11:
        raw = int(raw)
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw <= MAX_UINT32 else 0


def count_of(raw: dict[str, Any], names: tuple[str, ...] = _DROPPED) -> int:
    """How many of something were dropped, as far as it is said."""
    return flags_of(first(raw, names))


def text_of(raw: Any) -> str:
    """A text, or the empty one for anything else."""
    return raw if isinstance(raw, str) else ""
