"""OTLP ``AnyValue`` and attribute lists in their JSON form, both ways.

Form: opentelemetry-proto ``common.proto`` and "JSON Protobuf Encoding" of its ``docs/specification.md`` (1.11.0). Reading accepts more
than that: snake_case names, numbers as text and text as numbers, ints over 64 bits, url-safe base64, bare lists.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from math import isfinite, isnan
from typing import Any, Final

from spanreplay.spans.errors import (
    ATTRIBUTE_DROPPED,
    DEPTH_AS_TEXT,
    DUPLICATE_KEY,
    INT_AS_TEXT,
    INT_FLOAT,
    FormatError,
    ProblemCode,
    describe,
    join,
)
from spanreplay.spans.record import Value

MAX_DEPTH: Final = 64
"""Arrays and key-value lists within each other. Deeper values break the JSON writers of a later step, so they stop here."""

EXACT_FLOAT_INT: Final = 2**53
INT64_DIGITS: Final = 19

Fault = tuple[ProblemCode, str, str, str]
"""A problem seen from the value being read: code, relative path, expected, found."""

_INT: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NON_FINITE: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def read_attributes(items: object, faults: list[Fault], depth: int = 0) -> dict[str, Value]:
    """Reads a list of ``KeyValue``. A key given twice keeps its last value; a malformed entry is left out. Both are added to ``faults``.

    Args:
        items: The parsed JSON list; ``None`` counts as empty.
        faults: Receives what was wrong, with paths relative to the list (``[2].value.intValue``).
        depth: Levels of nesting around this list.

    Raises:
        FormatError: ``items`` is not a list.
    """
    if items is None:
        return {}
    if not isinstance(items, list):
        raise FormatError("", "an array of attributes", describe(items))
    out: dict[str, Value] = {}
    lost = 0
    for index, item in enumerate(items):
        # The shape that nearly every attribute has, read without a call; anything else goes the careful way.
        try:
            ((kind, raw),) = item["value"].items()
            key = item["key"]
        except (TypeError, ValueError, KeyError, AttributeError):
            kind = raw = key = None
        if isinstance(key, str):
            if kind == "stringValue":
                if isinstance(raw, str):
                    out[key] = raw
                    continue
            elif kind == "intValue":
                if isinstance(raw, str) and len(raw) < INT64_DIGITS and raw.isdigit() and raw.isascii():
                    out[key] = int(raw)
                    continue
            elif kind == "doubleValue" and isinstance(raw, float):
                out[key] = raw
                continue
        lost += not _read_attribute(index, item, out, faults, depth)
    if len(out) + lost != len(items):
        _note_duplicates(items, faults)
    return out


def _read_attribute(index: int, item: object, out: dict[str, Value], faults: list[Fault], depth: int) -> bool:
    """Reads one entry with its place known. Gives whether it could be kept."""
    mark = len(faults)
    try:
        entry = as_object(item)
        key = as_text(entry.get("key"), "key")
        out[key] = read_value(entry.get("value"), faults, depth)
    except FormatError as error:
        del faults[mark:]
        place = error.where if error.where == "key" or not isinstance(item, dict) else join("value", error.where)
        name = item.get("key") if isinstance(item, dict) else None
        named = f"{error.found} in attribute {name[:80]!a}" if isinstance(name, str) else error.found
        faults.append((ATTRIBUTE_DROPPED, join(f"[{index}]", place), error.expected, named))
        return False
    if len(faults) != mark:
        prefix_faults(faults, mark, f"[{index}].value")
    return True


def _note_duplicates(items: Any, faults: list[Fault]) -> None:
    seen: set[str] = set()
    for index, item in enumerate(items):
        key = item.get("key", "") if isinstance(item, dict) else None
        if not isinstance(key, str):
            continue
        if key in seen:
            faults.append((DUPLICATE_KEY, f"[{index}].key", "each key once", f"{describe(key)} again; the last value is kept"))
        seen.add(key)


def read_value(value: object, faults: list[Fault], depth: int = 0) -> Value:
    """Reads one ``AnyValue``; absent, ``null`` and ``{}`` are the empty value, ``None``.

    Raises:
        FormatError: It is none, or of a kind that is not known; ``where`` is the place in it (``arrayValue.values[1].intValue``).
    """
    if value is None:
        return None
    if not isinstance(value, dict):
        raise FormatError("", 'an object such as {"stringValue": …}', describe(value))
    result: Value = None
    mark = len(faults)
    known = not value
    for kind, raw in value.items():
        reader = READERS.get(kind)
        known = known or reader is not None or raw is None
        if reader is None or raw is None:
            continue
        try:
            result = reader(raw, faults, depth)
        except FormatError as error:
            raise error.within(kind) from None
        if len(faults) != mark:
            prefix_faults(faults, mark, kind)
            mark = len(faults)
    if not known:
        raise FormatError("", "a value of a kind that OTLP has, such as stringValue", describe(value))
    return result


def as_object(raw: object, where: str = "") -> dict[str, Any]:
    """Gives ``raw`` as the object it must be.

    Raises:
        FormatError: It is none; ``where`` is its name.
    """
    if isinstance(raw, dict):
        return raw
    raise FormatError(where, "an object", describe(raw))


def as_text(raw: object, where: str) -> str:
    """Gives ``raw`` as the text it must be; absent is empty.

    Raises:
        FormatError: It is something else; ``where`` is its name.
    """
    if isinstance(raw, str):
        return raw
    if raw is None:
        return ""
    raise FormatError(where, "a text", describe(raw))


def read_int(raw: object, faults: list[Fault], expected: str = "an integer") -> int:
    """Reads an integer given as a number, as decimal text, or (noted when it may have lost digits) as a floating point number.

    Raises:
        FormatError: It is none of these.
    """
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and _INT.fullmatch(raw):
        try:
            return int(raw)
        except ValueError:
            raise FormatError("", expected, f"a number of {len(raw)} digits") from None
    if isinstance(raw, float) and isfinite(raw) and raw.is_integer():
        if abs(raw) > EXACT_FLOAT_INT:
            faults.append((INT_FLOAT, "", "an integer", f"the floating point number {raw!r}, which may have lost digits"))
        return int(raw)
    raise FormatError("", expected, describe(raw))


def read_base64(text: str) -> bytes | None:
    """Decodes standard or url-safe base64, padded or not; ``None`` if it is neither."""
    try:
        data = text.encode("ascii").translate(_FROM_URL_SAFE).rstrip(b"=")
        return base64.b64decode(data + b"=" * (-len(data) % 4), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None


_FROM_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")


def _string(raw: object, faults: list[Fault], depth: int) -> Value:
    if not isinstance(raw, str):
        raise FormatError("", "a text", describe(raw))
    return raw


def _bool(raw: object, faults: list[Fault], depth: int) -> Value:
    if isinstance(raw, bool):
        return raw
    if raw == "true" or raw == "false":
        return raw == "true"
    raise FormatError("", "true or false", describe(raw))


def _int(raw: object, faults: list[Fault], depth: int) -> Value:
    return read_int(raw, faults)


def _double(raw: object, faults: list[Fault], depth: int) -> Value:
    if isinstance(raw, float):
        return raw
    try:
        if isinstance(raw, str):
            return _NON_FINITE[raw] if raw in _NON_FINITE else float(raw)
        if isinstance(raw, int) and not isinstance(raw, bool):
            return float(raw)
    except (ValueError, OverflowError):
        pass
    raise FormatError("", 'a number, "NaN" or "Infinity"', describe(raw))


def _bytes(raw: object, faults: list[Fault], depth: int) -> Value:
    data = read_base64(raw) if isinstance(raw, str) else None
    if data is None:
        raise FormatError("", "base64 text", describe(raw))
    return data


def _items(raw: object, depth: int) -> list[Any]:
    if depth >= MAX_DEPTH:
        raise FormatError("", f"at most {MAX_DEPTH} levels of nesting", "more")
    items = raw.get("values") if isinstance(raw, dict) else raw
    if items is None:
        return []
    if not isinstance(items, list):
        raise FormatError("values", "an array", describe(items))
    return items


def _array(raw: object, faults: list[Fault], depth: int) -> Value:
    out: list[Value] = []
    for index, item in enumerate(_items(raw, depth)):
        mark = len(faults)
        try:
            out.append(read_value(item, faults, depth + 1))
        except FormatError as error:
            raise error.within(f"values[{index}]") from None
        if len(faults) != mark:
            prefix_faults(faults, mark, f"values[{index}]")
    return tuple(out)


def _kvlist(raw: object, faults: list[Fault], depth: int) -> Value:
    mark = len(faults)
    out = read_attributes(_items(raw, depth), faults, depth + 1)
    for code, path, expected, found in faults[mark:]:
        if code == ATTRIBUTE_DROPPED:
            # Half a map is not the value that was recorded: the attribute as a whole is given up.
            raise FormatError(join("values", path), expected, found)
    prefix_faults(faults, mark, "values")
    return out


def prefix_faults(faults: list[Fault], mark: int, prefix: str) -> None:
    """Makes the paths of ``faults[mark:]`` relative to the enclosing value."""
    for index in range(mark, len(faults)):
        code, path, expected, found = faults[index]
        faults[index] = (code, join(prefix, path), expected, found)


READERS: Final[Mapping[str, Callable[[object, list[Fault], int], Value]]] = {
    name: reader
    for names, reader in (
        (("stringValue", "string_value"), _string),
        (("boolValue", "bool_value"), _bool),
        (("intValue", "int_value"), _int),
        (("doubleValue", "double_value"), _double),
        (("arrayValue", "array_value"), _array),
        (("kvlistValue", "kvlist_value"), _kvlist),
        (("bytesValue", "bytes_value"), _bytes),
    )
    for name in names
}
"""By the kind of a value, as it is named in JSON."""


def write_attributes(attributes: Mapping[str, Value], faults: list[Fault], depth: int = 0) -> list[dict[str, Any]]:
    """Gives the list of ``KeyValue`` of a mapping, in its order."""
    return [
        {"key": key, "value": {"stringValue": value} if value.__class__ is str else write_value(value, faults, depth)}
        for key, value in attributes.items()
    ]


def write_value(value: Value, faults: list[Fault], depth: int = 0) -> dict[str, Any]:
    """Gives the ``AnyValue`` of a value: 64-bit ints (and longer ones) as decimal text, bytes as base64, ``None`` as ``{}``.

    What JSON or the readers cannot hold (an int of thousands of digits, nesting beyond :data:`MAX_DEPTH`) is written as text and
    added to ``faults``.
    """
    match value:
        case None:
            return {}
        case str():
            return {"stringValue": value}
        case bool():
            return {"boolValue": value}
        case int():
            try:
                return {"intValue": str(int(value))}
            except ValueError:
                faults.append((INT_AS_TEXT, "", "an integer that can be written", f"a number of {value.bit_length()} bits"))
                return {"stringValue": hex(value)}
        case float():
            return {"doubleValue": float(value) if isfinite(value) else _non_finite(value)}
        case bytes() | bytearray() | memoryview():
            return {"bytesValue": base64.b64encode(value).decode("ascii")}
    if depth >= MAX_DEPTH:
        faults.append((DEPTH_AS_TEXT, "", f"at most {MAX_DEPTH} levels of nesting", "more"))
        return {"stringValue": f"<nested deeper than {MAX_DEPTH} levels>"}
    if isinstance(value, Mapping):
        pairs = write_attributes(value, faults, depth + 1)
        return {"kvlistValue": {"values": pairs} if pairs else {}}
    values = [write_value(item, faults, depth + 1) for item in value]
    return {"arrayValue": {"values": values} if values else {}}


def _non_finite(value: float) -> str:
    if isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
