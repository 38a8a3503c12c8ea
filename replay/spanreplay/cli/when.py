"""Moments as people write them: how long ago, or a date."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import click

_UNITS: Final = {"m": 60, "h": 3600, "d": 86400, "w": 604800}
_AGO: Final = re.compile(r"([0-9]{1,9})([mhdw])")


def moment(text: str, option: str) -> int:
    """Nanoseconds since the epoch.

    Args:
        text: ``30m``, ``2h``, ``7d``, ``4w``, or a date or time of ISO 8601; without a zone it is local.
        option: that it was given with.

    Raises:
        click.BadParameter: it is neither.
    """
    ago = _AGO.fullmatch(text)
    try:
        back = timedelta(seconds=int(ago[1]) * _UNITS[ago[2]]) if ago else None
        found = datetime.fromisoformat(text) if back is None else datetime.now(UTC) - back
        return min(int(found.timestamp()) * 10**9 + found.microsecond * 1000, 2**63 - 1)
    except (ValueError, OverflowError):
        raise click.BadParameter(f"wanted 30m, 2h, 7d or a date such as 2026-11-29, found {text!r}", param_hint=option) from None
