"""One JSON form for attribute values, in the journal and in the database.

A value is written as the JSON value it looks like. What JSON cannot say gets an object with one key that starts with ``$``:

==================================  ==========================================================================
``{"$bytes": "<base64>"}``          bytes; long ones are ``{"$bytes": {"$blob": "sha256:…"}}``
``{"$blob": "sha256:…"}``           a string kept once under the digest of its UTF-8 bytes (from 512 bytes on)
``{"$double": "NaN"}``              also ``Infinity`` and ``-Infinity``
``{"$int": "-0x1f…"}``              an integer of more than 4096 bits
``{"$map": [[key, value], …]}``     a map with a key that starts with ``$`` or that JSON cannot hold
==================================  ==========================================================================

``1`` and ``1.0`` stay different. A string with lone surrogates goes to a blob whatever its length (UTF-8 with ``surrogatepass``), because
neither an escape pair in JSON nor a database column gives it back unchanged. A form that a reader does not know is an
:class:`EncodingError`.
"""

import binascii
import hashlib
import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from spanreplay.content.json_text import encoder
from spanreplay.spans.record import Value
from spanreplay.store.errors import EncodingError
from spanreplay.store.late import Joined, whole

Json: TypeAlias = Any
"""A JSON value as ``json.loads`` gives it."""
Content: TypeAlias = bytes | str | Joined
Keep: TypeAlias = Callable[[str | bytes], str]
"""Keeps content under its digest and returns that digest; raises :class:`ContentLostError` if it could not."""

BLOB_BYTES: Final = 512
"""Strings and bytes of at least this many bytes are kept once, by digest. Part of the format: a span's digest depends on it."""
MAX_DEPTH: Final = 100
_NATURAL_INT_BITS: Final = 4096
_LARGE_INT: Final = 2**63
_NESTED: Final = (dict, list)


_to_text: Final = encoder(allow_nan=False)
_to_readable: Final = encoder(ascii_only=False, allow_nan=False)
_to_sorted: Final = encoder(sort_keys=True, allow_nan=False)


class WrittenMap(dict[str, Json]):
    """The form of a map whose JSON is at hand as it was written, and need not be made again."""

    __slots__ = ("text",)
    text: str
    """Compact JSON with its characters as they are."""


def written_map(form: Mapping[str, Json], text: str) -> WrittenMap:
    """A map, and its JSON."""
    made = WrittenMap(form)
    made.text = text
    return made


class ContentLostError(OSError):
    """Content could not be kept, so nothing may refer to it."""


class UnencodableError(ValueError):
    """A value is nested too deeply to be kept."""


def digest_of(data: bytes) -> str:
    """``sha256:`` and the hex digest of these bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def to_json(form: Json) -> str:
    """Compact ASCII JSON, as in a journal line."""
    return _to_text(form)


def to_readable_json(form: Json) -> str:
    """Compact JSON with its characters as they are, as in a database column."""
    return form.text if type(form) is WrittenMap else _to_readable(form)


def to_sorted_json(form: Json) -> str:
    """Compact ASCII JSON with sorted keys: equal forms give equal texts."""
    return _to_sorted(form)


def text_bytes(text: str) -> tuple[bytes, bool]:
    """The UTF-8 bytes of a string, and whether they are valid UTF-8 (false with lone surrogates)."""
    try:
        return text.encode(), True
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass"), False


def encode_text(text: str, keep: Keep) -> Json:
    """A name, key or message: inline however long, unless it has lone surrogates."""
    if text.isascii() or text_bytes(text)[1]:
        return text
    return {"$blob": keep(text)}


def encode_value(value: Value, keep: Keep, depth: int = 0) -> Json:
    """The JSON form of an attribute value.

    Args:
        value: any value; what is not one of the OTLP kinds becomes its ``str()``.
        keep: gets the long strings and bytes.
        depth: how deep inside another value this one is.

    Raises:
        ContentLostError: ``keep`` could not keep something.
        UnencodableError: nested deeper than 100.
    """
    kind = type(value)
    if kind is str:
        text: str = value  # type: ignore[assignment]
        if len(text) < BLOB_BYTES and text.isascii():
            return text
        return _encode_long_text(text, keep)
    if kind is bool or value is None:
        return value
    if kind is int:
        return _encode_int(value)  # type: ignore[arg-type]
    if kind is float:
        return _encode_float(value)  # type: ignore[arg-type]
    return _encode_other(value, keep, depth)


def encode_map(items: Mapping[str, Any], keep: Keep, depth: int = 0) -> Json:
    """The JSON form of a map, such as the attributes of a span."""
    if depth > MAX_DEPTH:
        raise UnencodableError(f"nested deeper than {MAX_DEPTH}")
    form: dict[str, Json] = {}
    for key, value in items.items():
        if type(key) is not str or key[:1] == "$" or not key.isascii():
            return _encode_odd_map(items, keep, depth)
        kind = type(value)
        # The two most frequent kinds without a call: this runs on the agent's thread.
        if (kind is str and len(value) < BLOB_BYTES and value.isascii()) or (kind is int and -_LARGE_INT < value < _LARGE_INT):
            form[key] = value
        else:
            form[key] = encode_value(value, keep, depth + 1)
    return form


def _encode_odd_map(items: Mapping[str, Value], keep: Keep, depth: int) -> Json:
    pairs = [(encode_text(str(key), keep), encode_value(value, keep, depth + 1)) for key, value in items.items()]
    if all(type(key) is str and key[:1] != "$" for key, _ in pairs):
        return dict(pairs)
    return {"$map": [list(pair) for pair in pairs]}


def _encode_long_text(text: str, keep: Keep) -> Json:
    if len(text) < BLOB_BYTES:
        data, clean = text_bytes(text)
        if clean and len(data) < BLOB_BYTES:
            return text
    return {"$blob": keep(text)}


def _encode_int(value: int) -> Json:
    return int(value) if value.bit_length() <= _NATURAL_INT_BITS else {"$int": hex(value)}


def _encode_float(value: float) -> Json:
    if math.isfinite(value):
        return float(value)
    return {"$double": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}


def _encode_other(value: object, keep: Keep, depth: int) -> Json:
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        return {"$bytes": b64encode(data).decode() if len(data) < BLOB_BYTES else {"$blob": keep(data)}}
    if isinstance(value, Mapping):
        return encode_map(value, keep, depth)
    if isinstance(value, list | tuple):
        if depth > MAX_DEPTH:
            raise UnencodableError(f"nested deeper than {MAX_DEPTH}")
        return [encode_value(item, keep, depth + 1) for item in value]
    if isinstance(value, str):
        return _encode_long_text(str(value), keep)
    if isinstance(value, int):
        return _encode_int(int(value))
    if isinstance(value, float):
        return _encode_float(float(value))
    return _encode_long_text(str(value), keep)


def blob_refs(form: Json) -> set[str]:
    """Digests of all content that a form refers to.

    Raises:
        EncodingError: the form has a part this version does not know.
    """
    found: set[str] = set()
    stack = [form]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, dict):
            tag = _tag(item)
            if tag == "$blob":
                found.add(_digest(item["$blob"]))
            elif tag in ("$bytes", "$map"):
                stack.append(item[tag])
            elif tag is None:
                stack += [value for value in item.values() if isinstance(value, _NESTED)]
    return found


class MissingContentError(EncodingError):
    """A form refers to content that is not there."""


def decode_value(form: Json, content: Mapping[str, Content]) -> Value:
    """The value of a form; the reverse of :func:`encode_value` (tuples come back as lists).

    Args:
        form: what ``json.loads`` gave.
        content: bytes, or text, by digest.

    Raises:
        MissingContentError: a digest is not in ``content``.
        EncodingError: a form this version does not know, or a damaged one.
    """
    if isinstance(form, list):
        return [decode_value(item, content) for item in form]
    if not isinstance(form, dict):
        return form  # type: ignore[no-any-return]
    tag = _tag(form)
    if tag is None:  # most values are what they are, and a call takes longer than to see it
        return {key: decode_value(value, content) if isinstance(value, _NESTED) else value for key, value in form.items()}
    inner = form[tag]
    try:
        return _DECODERS[tag](inner, content)
    except (ValueError, TypeError, KeyError, binascii.Error) as error:
        raise EncodingError(f"a stored value {_short(form)} is damaged: expected what {tag} stands for ({error})") from error


def decode_map(form: Json, content: Mapping[str, Content]) -> dict[str, Value]:
    """The map of a form; anything but a map is an :class:`EncodingError`."""
    value = decode_value(form, content)
    if not isinstance(value, dict):
        raise EncodingError(f"expected a map of attributes, found {_short(form)}")
    return value


def map_pairs(form: Json) -> list[tuple[Json, Json]]:
    """Keys and values of the form of a map, still encoded."""
    if isinstance(form, dict):
        if _tag(form) == "$map":
            return [(key, value) for key, value in form["$map"]]
        return list(form.items())
    raise EncodingError(f"expected a map of attributes, found {_short(form)}")


def merge_maps(first: Json, second: Json) -> Json:
    """The form of a map that has the pairs of both; the second wins."""
    if "$map" not in first and "$map" not in second:
        return _merged(first, second)
    pairs = {to_sorted_json(key): (key, value) for key, value in (*map_pairs(first), *map_pairs(second))}
    if all(isinstance(key, str) and key[:1] != "$" for key, _ in pairs.values()):
        return dict(pairs.values())
    return {"$map": [list(pair) for pair in pairs.values()]}


def _merged(first: dict[str, Json], second: dict[str, Json]) -> dict[str, Json]:
    both = {**first, **second}
    if type(second) is WrittenMap:
        if len(both) == len(second) and [*both] == [*second]:
            return second
        if type(first) is WrittenMap and first and second and len(both) == len(first) + len(second):
            return written_map(both, f"{first.text[:-1]},{second.text[1:]}")
    return both


def decode_text(form: Json, content: Mapping[str, Content]) -> str:
    """The string of a form; anything but a string is an :class:`EncodingError`."""
    value = decode_value(form, content)
    if not isinstance(value, str):
        raise EncodingError(f"expected a text, found {_short(form)}")
    return value


def _tag(form: Mapping[str, Json]) -> str | None:
    for key in form:
        if key[:1] == "$":
            if len(form) == 1 and key in _DECODERS:
                return key
            raise EncodingError(
                f"a stored value has the form {_short(form)}, which this version of spanreplay does not know."
                " Use a newer version to read it."
            )
    return None


def _digest(value: Json) -> str:
    if not isinstance(value, str):
        raise EncodingError(f"expected a digest, found {_short(value)}")
    return value


def _content(digest: Json, content: Mapping[str, Content]) -> bytes | str:
    try:
        found = content[_digest(digest)]
    except KeyError:
        raise MissingContentError(f"content {digest} is not in the store") from None
    return whole(found)


def _decode_blob(inner: Json, content: Mapping[str, Content]) -> str:
    found = _content(inner, content)
    return found if isinstance(found, str) else found.decode("utf-8", "surrogatepass")


def _decode_bytes(inner: Json, content: Mapping[str, Content]) -> bytes:
    if isinstance(inner, dict):
        found = _content(inner["$blob"], content)
        return found.encode() if isinstance(found, str) else found
    return b64decode(inner, validate=True)


def _decode_double(inner: Json, _content: Mapping[str, Content]) -> float:
    return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}[inner]


def _decode_int(inner: Json, _content: Mapping[str, Content]) -> int:
    return int(inner, 16)


def _decode_pairs(inner: Sequence[Json], content: Mapping[str, Content]) -> dict[str, Value]:
    return {decode_text(key, content): decode_value(value, content) for key, value in inner}


_DECODERS: Final[Mapping[str, Callable[[Json, Mapping[str, Content]], Value]]] = {
    "$blob": _decode_blob,
    "$bytes": _decode_bytes,
    "$double": _decode_double,
    "$int": _decode_int,
    "$map": _decode_pairs,
}


def _short(form: Json) -> str:
    text = repr(form)
    return text if len(text) <= 80 else text[:77] + "..."
