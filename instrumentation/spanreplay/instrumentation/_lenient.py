"""JSON of unknown shape, read and written without surprises: a wrong type is absence, never an exception."""

import json
import math
from typing import Final, NoReturn

from spanreplay.content.json_text import encoder

_compact: Final = encoder(ascii_only=False, allow_nan=False)
_INT64: Final = 2**63
_DEPTH: Final = 200
"""Deeper values are written as text; ``json.loads`` itself gives up between 500 and 1000 levels."""


def loads(data: bytes | str) -> object:
    """Parses JSON.

    Raises:
        ValueError: it does not parse, for whatever reason (syntax, encoding, depth, digits).
    """
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deep to parse") from error


def dumps(value: object) -> str:
    """Compact JSON that every reader accepts, for any value; key order is kept.

    Infinite and undefined numbers become their names, lone surrogates stay escaped, what nests deeper than 200 levels becomes text.
    """
    try:
        return plainly(value)
    except (ValueError, TypeError, RecursionError):
        return json.dumps(_tame(value, 0), separators=(",", ":"))


def plainly(value: object) -> str:
    """The same of a value that is plain JSON.

    Raises:
        ValueError: it is not, as the other two say as well.
        TypeError: see there.
        RecursionError: see there.
    """
    text = _compact(value)
    if not text.isascii():
        text.encode()
    return text


def _tame(value: object, depth: int) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return "…" if depth > _DEPTH else {str(key): _tame(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return "…" if depth > _DEPTH else [_tame(item, depth + 1) for item in value]
    if isinstance(value, (str, float, bool)) or value is None:
        return value
    if isinstance(value, int):
        return value if value.bit_length() < 4096 else hex(value)
    return str(value)


def mapping(value: object) -> dict[str, object]:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[object]:
    """The array, or an empty one."""
    return value if isinstance(value, list) else []


def text(value: object) -> str | None:
    """The string, or ``None``."""
    return value if isinstance(value, str) else None


def as_text(value: object) -> str:
    """The string, or the JSON of anything else."""
    return value if isinstance(value, str) else dumps(value)


def integer(value: object) -> int | None:
    """The number if it is whole and fits 64 bits, or ``None``."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and -_INT64 <= value < _INT64 else None


def number(value: object) -> float | None:
    """The number if it is finite, or ``None``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def strict_object(data: str) -> dict[str, object] | list[object] | None:
    """The object or array that the text is, or ``None``; ``NaN`` and its like do not parse here, writing them again would change them."""
    if data[:1] not in "{[" and data.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = _strictly(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list)) else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_strictly: Final = json.JSONDecoder(parse_constant=_refuse).decode
