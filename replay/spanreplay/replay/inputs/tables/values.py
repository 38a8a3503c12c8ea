"""Values out of JSON, Parquet and data frames as values of attributes."""

from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from spanreplay.replay.reading.fields import MAX_DEPTH
from spanreplay.spans.record import Value


def plain(value: Any, depth: int = 0) -> Value:
    """A value as an attribute has it: lists as tuples, times and ids as text; empty members are left out, what nests too deep is text.

    Args:
        value: from a reader of any of these.
        depth: how deep it lies.
    """
    if value is None or isinstance(value, str | bool | int | float | bytes):
        return value
    if depth < MAX_DEPTH:
        if isinstance(value, Mapping):
            return {str(key): plain(inner, depth + 1) for key, inner in value.items() if inner is not None}
        if isinstance(value, list | tuple):
            return tuple(plain(inner, depth + 1) for inner in value)
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value) if depth < MAX_DEPTH else "<nested too deep>"
