"""The key-value lists of Jaeger's JSON: tags of spans and processes, fields of logs."""

import binascii
from collections.abc import Callable
from typing import Any, Final

from spanreplay.replay.inputs.formats.plain import plain_value
from spanreplay.spans._anyvalue import Fault, as_object, as_text, read_base64, read_int
from spanreplay.spans.errors import ATTRIBUTE_DROPPED, DUPLICATE_KEY, FormatError, describe, join
from spanreplay.spans.record import Value

Tags = list[tuple[str, Value]]
"""In the order of the input; a key may come more than once."""

DOT: Final = "@"
"""What Elasticsearch's ``tag`` objects have for the dots of a key (``es.tags-as-fields.dot-replacement``)."""


def read_tags(message: dict[str, Any], name: str, faults: list[Fault], *, texts: bool = False) -> Tags:
    """The tags of a span, a process or a log, in their order; one that cannot be read is left out and told.

    Args:
        message: the span, process or log.
        name: the field that has the list.
        faults: receives what was wrong, with paths from ``message``.
        texts: whether this is the Elasticsearch form: every value a text, bytes in hex, some tags as fields of ``tag``.
    """
    items = message.get(name)
    if items is not None and not isinstance(items, list):
        faults.append((ATTRIBUTE_DROPPED, name, "an array", describe(items)))
        items = None
    tags: Tags = []
    for index, item in enumerate(items or ()):
        mark = len(faults)
        try:
            tag = as_object(item)
            key = as_text(tag.get("key"), "key")
            tags.append((key, _value(tag, faults, texts)))
        except FormatError as error:
            del faults[mark:]
            given = item.get("key") if isinstance(item, dict) else None
            named = f"{error.found} in tag {given[:80]!a}" if isinstance(given, str) else error.found
            faults.append((ATTRIBUTE_DROPPED, join(f"{name}[{index}]", error.where), error.expected, named))
    fields = message.get("tag")
    if texts and isinstance(fields, dict):
        tags += [(key.replace(DOT, "."), plain_value(raw, faults, f"tag.{key}")) for key, raw in fields.items()]
    return tags


def as_attributes(tags: Tags, name: str, faults: list[Fault]) -> dict[str, Value]:
    """Tags as attributes; a key given twice keeps its last value, and is told."""
    attributes = dict(tags)
    if len(attributes) != len(tags):
        faults.append((DUPLICATE_KEY, name, "each key once", "one that comes again; the last value is kept"))
    return attributes


def take(tags: Tags, key: str, fits: Callable[[Value], bool], *, last: bool = False) -> Value:
    """Takes the first (or last) tag of this key whose value fits out of the list; ``None`` if there is none."""
    places = reversed(range(len(tags))) if last else range(len(tags))
    for place in places:
        if tags[place][0] == key and fits(tags[place][1]):
            return tags.pop(place)[1]
    return None


def _value(tag: dict[str, Any], faults: list[Fault], texts: bool) -> Value:
    raw = tag.get("value")
    reader = _READERS.get(str(tag.get("type", "")).lower())
    if reader is None or raw is None:
        return plain_value(raw, faults, str(tag.get("key")))
    try:
        return reader(raw, faults, texts)
    except FormatError as error:
        raise error.within("value") from None


def _string(raw: object, faults: list[Fault], texts: bool) -> Value:
    return plain_value(raw, faults)


def _bool(raw: object, faults: list[Fault], texts: bool) -> Value:
    if raw is True or raw is False:
        return raw
    if raw in ("true", "false"):
        return raw == "true"
    raise FormatError("", "true or false", describe(raw))


def _int(raw: object, faults: list[Fault], texts: bool) -> Value:
    return read_int(raw, faults)


def _float(raw: object, faults: list[Fault], texts: bool) -> Value:
    if isinstance(raw, int | float | str) and not isinstance(raw, bool):
        try:
            return float(raw)
        except (ValueError, OverflowError):
            pass
    raise FormatError("", "a number", describe(raw))


def _binary(raw: object, faults: list[Fault], texts: bool) -> Value:
    if isinstance(raw, str):
        if texts:
            try:
                return binascii.unhexlify(raw)
            except (ValueError, binascii.Error):
                pass
        data = read_base64(raw)
        if data is not None:
            return data
    raise FormatError("", "base64 text", describe(raw))


_READERS: Final[dict[str, Callable[[object, list[Fault], bool], Value]]] = {
    "string": _string,
    "bool": _bool,
    "int64": _int,
    "float64": _float,
    "binary": _binary,
}
