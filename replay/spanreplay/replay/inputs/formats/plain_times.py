"""Times of spans in plain JSON, whatever their unit and form, to nanoseconds."""

import re
from typing import Any, Final

from spanreplay.replay.inputs.formats.notes import Notes
from spanreplay.replay.inputs.timestamps import iso_ns
from spanreplay.spans._anyvalue import Fault
from spanreplay.spans._fields import MAX_TIME
from spanreplay.spans.errors import TIME_FLOAT, FormatError, describe

_SECOND: Final = 1_000_000_000
_INTEGER: Final = re.compile(r"[0-9]{1,30}", re.ASCII)
_FRACTION: Final = re.compile(r"[.,]([0-9]+)", re.ASCII)
_NANOSECONDS: Final = ("nano", "_ns")
"""How names of fields end that say their unit."""
_UNITS: Final = (
    (10**17, 1, ""),
    (10**14, 1_000, "time-us"),
    (10**11, 1_000_000, "time-ms"),
    (10**8, _SECOND, "time-s"),
)
"""From this number on it is a time since 1973 in this unit of nanoseconds, which loses this; below all, nanoseconds of made-up times."""


def read_instant(raw: Any, field: str, faults: list[Fault], notes: Notes) -> int | None:
    """A time; ``None`` where none is given.

    Args:
        raw: Nanoseconds, microseconds, milliseconds or seconds since 1970, told apart by their size, as a number or its text; an ISO 8601
            text; JavaScript's pair of seconds and nanoseconds (``hrtime``); protobuf's ``{"seconds": …, "nanos": …}``.
        field: Its name, for the error; a name that says "nanoseconds" is believed.
        faults: Receives what was altered.
        notes: Told which precision it has.

    Raises:
        FormatError: It is none of these, or not within 1970 and 2262.
    """
    if raw is None or raw == "":
        return None
    found = _nanoseconds(raw, field, faults, notes)
    if found is None or not 0 <= found <= MAX_TIME:
        raise FormatError(field, "a time since 1970", describe(raw))
    return found


def read_duration(raw: Any) -> int | None:
    """A JavaScript pair of seconds and nanoseconds as nanoseconds; ``None`` from anything else."""
    return _pair(raw[0], raw[1]) if isinstance(raw, list) and len(raw) == 2 else None


def _nanoseconds(raw: Any, field: str, faults: list[Fault], notes: Notes) -> int | None:
    if isinstance(raw, bool):
        return None
    if isinstance(raw, str):
        if _INTEGER.fullmatch(raw):
            return _scaled(int(raw), field, notes)
        return _text(raw, field, faults, notes)
    if isinstance(raw, int):
        return _scaled(raw, field, notes)
    if isinstance(raw, float):
        return _float(raw, field, faults)
    if isinstance(raw, list) and len(raw) == 2:
        return _pair(raw[0], raw[1])
    if isinstance(raw, dict) and "seconds" in raw:
        return _pair(raw["seconds"], raw.get("nanos", 0))
    return None


def _scaled(number: int, field: str, notes: Notes) -> int:
    if field.lower().endswith(_NANOSECONDS):
        return number
    for least, unit, lost in _UNITS:
        if number >= least:
            notes.of(lost, bool(lost))
            return number * unit
    return number


def _float(number: float, field: str, faults: list[Fault]) -> int | None:
    if not 0 <= number < MAX_TIME:
        return None
    faults.append((TIME_FLOAT, field, "whole nanoseconds", f"the floating point number {number!r}"))
    unit = next((unit for least, unit, _ in _UNITS if number >= least), _SECOND)
    whole = int(number)
    return whole * unit + int((number - whole) * unit)


def _text(raw: str, field: str, faults: list[Fault], notes: Notes) -> int | None:
    found = iso_ns(raw)
    if found is not None:
        fraction = _FRACTION.search(raw)
        digits = len(fraction.group(1)) if fraction else 0
        notes.of("time-us", 3 < digits <= 6)
        notes.of("time-ms", digits <= 3)
        return found
    try:
        return _float(float(raw), field, faults)
    except ValueError:
        return None


def _pair(seconds: Any, nanoseconds: Any) -> int | None:
    try:
        whole, rest = int(seconds), int(nanoseconds)
    except (TypeError, ValueError, OverflowError):
        return None
    return whole * _SECOND + rest
