"""The scalar fields of OTLP JSON spans and log records: ids, times, enums, counts, names of fields."""

import re
from functools import lru_cache
from typing import Any, Final

from spanreplay.spans._anyvalue import Fault, read_base64, read_int
from spanreplay.spans.errors import TIME_FLOAT, FormatError, describe

TRACE_ID_BYTES: Final = 16
SPAN_ID_BYTES: Final = 8

MAX_TIME: Final = 2**63 - 1
"""The year 2262: the last nanosecond a signed 64-bit column holds."""

MAX_UINT32: Final = 2**32 - 1
MAX_INT32: Final = 2**31 - 1

_HEX: Final = re.compile(r"[0-9a-fA-F]+", re.ASCII)
_LOWER_HEX: Final = re.compile(r"[0-9a-f]+", re.ASCII)


@lru_cache(maxsize=4096)
def _id(text: str, size: int) -> str | None:
    """The id as lower-case hex, ``""`` for an all-zero one, ``None`` if the text is no id of ``size`` bytes."""
    digits = text.strip()
    if digits[:2] in ("0x", "0X") and _HEX.fullmatch(digits, 2):  # base64 begins so once in 4096 ids
        digits = digits[2:].rjust(2 * size, "0")
    elif size == TRACE_ID_BYTES and len(digits) == 2 * SPAN_ID_BYTES:
        digits = digits.rjust(2 * size, "0")
    if not (len(digits) == 2 * size and _HEX.fullmatch(digits)):
        data = read_base64(digits)
        if data is None:
            return None
        if len(data) == size:
            digits = data.hex()
            # Sixteen bytes that are all hex digits are the text of a short id, not an id of their own (1 in 10^17 by chance).
            if size == TRACE_ID_BYTES and _HEX.fullmatch(data.decode("latin-1")):
                digits = data.decode("latin-1").rjust(2 * size, "0")
        elif len(data) == 2 * size and _HEX.fullmatch(data.decode("latin-1")):
            digits = data.decode("latin-1")
        else:
            return None
    return digits.lower() if digits.strip("0") else ""


def hex_id(raw: object, size: int, field: str) -> str | None:
    """Reads an id. Absent, empty and all-zero ids give ``None``.

    Args:
        raw: Hex in any case, with or without ``0x``; base64 of the bytes or of the hex text.
        size: In bytes: 16 for a trace, 8 for a span.
        field: Its name, for the error.

    Returns:
        Lower-case hex, ``2 * size`` digits.

    Raises:
        FormatError: It is no id of that size.
    """
    if raw is None or raw == "":
        return None
    if isinstance(raw, str) and len(raw) == 2 * size and _LOWER_HEX.fullmatch(raw) and raw.strip("0"):
        return raw
    digits = _id(raw, size) if isinstance(raw, str) and len(raw) < 128 else None
    if digits is None:
        raise FormatError(field, f"an id of {2 * size} hex digits", describe(raw))
    return digits or None


def required_id(raw: object, size: int, field: str) -> str:
    """Reads an id that must not be empty.

    Raises:
        FormatError: It is absent, empty, all zeros or no id.
    """
    found = hex_id(raw, size, field)
    if found is None:
        raise FormatError(field, f"an id of {2 * size} hex digits", "an id of zeros" if raw else "an empty id")
    return found


def read_time(raw: object, field: str, faults: list[Fault]) -> int:
    """Reads nanoseconds since the epoch; absent is 0. A floating point number is taken and noted: it holds only every 256th nanosecond.

    Raises:
        FormatError: It is no number, or not within 0 and 2^63 - 1.
    """
    if isinstance(raw, str) and len(raw) < 20 and raw.isdigit() and raw.isascii() and (value := int(raw)) <= MAX_TIME:
        return value
    if raw is None or raw == "":
        return 0
    expected = "nanoseconds since 1970"
    number = raw
    if isinstance(raw, str) and not raw.isdigit():
        try:
            number = float(raw)
        except ValueError:
            raise FormatError(field, expected, describe(raw)) from None
    if isinstance(number, float):
        if not 0 <= number < MAX_TIME:
            raise FormatError(field, expected, describe(raw))
        faults.append((TIME_FLOAT, field, "whole nanoseconds", f"the floating point number {number!r}"))
        return int(number)
    try:
        value = read_int(number, faults)
    except FormatError:
        value = -1
    if not 0 <= value <= MAX_TIME:
        raise FormatError(field, expected, describe(raw))
    return value


def read_enum(raw: object, names: dict[str, int], prefix: str, field: str) -> int:
    """Reads an enum given as a number (any, as proto3 enums are open) or by name, with or without its prefix; absent is 0.

    Raises:
        FormatError: The name is unknown, or it is neither a number nor a name.
    """
    if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw <= MAX_INT32:
        return raw
    if raw is None or raw == "":
        return 0
    if isinstance(raw, str):
        name = raw.upper().rpartition(".")[2].removeprefix(prefix)
        if name in names:
            return names[name]
        if raw.isascii() and raw.isdigit() and len(raw) < 10:
            return int(raw)
    raise FormatError(field, f"a number, or a name such as {prefix}{next(reversed(names))}", describe(raw))


def read_count(raw: object, field: str, faults: list[Fault]) -> int:
    """Reads an unsigned 32-bit number; absent is 0.

    Raises:
        FormatError: It is none.
    """
    if raw is None:
        return 0
    expected = "a number of 32 bits"
    try:
        value = read_int(raw, faults, expected)
    except FormatError as error:
        raise error.within(field) from None
    if not 0 <= value <= MAX_UINT32:
        raise FormatError(field, expected, describe(raw))
    return value


def camel(message: dict[str, Any]) -> dict[str, Any]:
    """The same message with its snake_case field names in lowerCamelCase; a name given in both cases keeps the camel one."""
    out: dict[str, Any] = {}
    for key, value in message.items():
        if "_" in key:
            head, *rest = key.split("_")
            out.setdefault(head + "".join(part.capitalize() for part in rest), value)
        else:
            out[key] = value
    return out
