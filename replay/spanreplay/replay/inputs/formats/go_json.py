"""JSON text as Go's ``encoding/json`` writes it: members sorted, the shortest numbers, no escapes for HTML."""

import base64
import json
import re
from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from typing import Final

from spanreplay.spans.record import Value

_MAX_DEPTH: Final = 64
_SEPARATORS: Final = re.compile("[\u2028\u2029\ud800-\udfff]")
_LARGE: Final = 1e21
_SMALL: Final = 1e-6


def go_json(value: Value, depth: int = 0) -> str:
    """The JSON text of an attribute's value, as the Collector's ``Value.AsString`` gives it for lists and maps.

    NaN and the infinities, for which Go has no JSON and gives up the whole value, become their names.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _string(value)
        case int():
            return _integer(value)
        case float():
            return go_float(value) if isfinite(value) else f'"{no_number(value)}"'
        case bytes() | bytearray() | memoryview():
            return f'"{base64.b64encode(value).decode("ascii")}"'
    if depth >= _MAX_DEPTH:
        return f'"<nested deeper than {_MAX_DEPTH} levels>"'
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{_string(key)}:{go_json(value[key], depth + 1)}' for key in sorted(value))}}}"
    return f"[{','.join(go_json(item, depth + 1) for item in value)}]"


def go_float(number: float) -> str:
    """The shortest decimal text of a finite number; with an exponent below 1e-6 and from 1e21 on."""
    if number and not _SMALL <= abs(number) < _LARGE:
        mantissa, _, exponent = f"{Decimal(repr(number)).normalize():e}".partition("e")
        return f"{mantissa}e{exponent[0]}{exponent[1:].lstrip('0')}"
    if number.is_integer():
        return f"{'-' if str(number).startswith('-') else ''}{abs(int(number))}"
    return f"{Decimal(repr(number)):f}"


def no_number(number: float) -> str:
    """What Go calls a number that is none, or has no end."""
    return "NaN" if number != number else "+Inf" if number > 0 else "-Inf"


def _string(text: str) -> str:
    return _SEPARATORS.sub(_escaped, json.dumps(text, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    # Go has no lone surrogates: what is no character is U+FFFD there.
    return f"\\u{ord(found.group()):04x}" if found.group() in "\u2028\u2029" else "\\ufffd"


def _integer(number: int) -> str:
    try:
        return str(number)
    except ValueError:  # beyond the digits that Python writes
        return f'"{number:#x}"'
