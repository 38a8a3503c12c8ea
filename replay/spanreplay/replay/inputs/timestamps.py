"""Times as back ends write them in JSON, to nanoseconds since the epoch."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from spanreplay.replay.model import Json

_ISO: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,18}))?)?\s*(?:([Zz])|([+-])(\d\d):?(\d\d)(?::?(\d\d))?|UTC)?", re.ASCII
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = 1_000_000_000
_UNITS: Final = ((10**11, _SECOND), (10**14, 1_000_000), (10**17, 1_000))
"""Numbers below the first are counts of as many nanoseconds as the second."""


def nanoseconds(value: object) -> int | None:
    """Nanoseconds since the epoch from what tables have: a Python time, a text for :func:`iso_ns`, or a number.

    Args:
        value: a number counts seconds, milli-, micro- or nanoseconds since the epoch; which, its size tells (for times from 1973 to 5138).
    """
    if isinstance(value, datetime):
        value = value.isoformat()
    if isinstance(value, int) and not isinstance(value, bool):
        unit = next((unit for limit, unit in _UNITS if value < limit), 1)
        return value * unit if value >= 0 else None
    return iso_ns(value)


def iso_ns(value: Json) -> int | None:
    """Nanoseconds from an ISO 8601 date and time; ``None`` from anything else, and from times before 1970.

    Digits beyond the nanosecond are left out, none are rounded. A time without a zone is taken for UTC.

    Args:
        value: such as ``2025-06-11T14:01:32.598Z``, ``2025-06-11 14:01:32.598123`` or ``2025-06-11T16:01:32.598+02:00``.
    """
    found = _ISO.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, _, sign, hours, minutes, seconds = found.groups()
    zone = UTC
    try:
        if sign is not None:
            offset = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds or 0))
            zone = timezone(offset if sign == "+" else -offset)
        whole = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), tzinfo=zone) - _EPOCH
    except ValueError:
        return None
    total = (whole.days * 86_400 + whole.seconds) * _SECOND + int((fraction or "0")[:9].ljust(9, "0"))
    return total if total >= 0 else None
