"""Ids of back ends that are no OpenTelemetry ids, to ids that are: the same id always becomes the same one."""

import base64
import binascii
import hashlib
import re
from typing import Final

from spanreplay.replay.model import Json

TRACE: Final = 32
SPAN: Final = 16

_DECIMAL: Final = 39
"""Digits of the largest trace id in decimal."""
_HEX: Final = re.compile(r"(?:0x)?([0-9a-f]+)", re.IGNORECASE)
_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


def trace_id(given: Json) -> str | None:
    """32 hex digits; ``None`` where nothing is given.

    Args:
        given: 32 hex digits or fewer, a number (or its decimal text, if longer), a UUID (whose 128 bits it becomes), 16 bytes in base64, or
            any other text, whose SHA-256 begins so.
    """
    return _otel_id(given, TRACE)


def span_id(given: Json) -> str | None:
    """16 hex digits; ``None`` where nothing is given.

    Args:
        given: 16 hex digits or fewer, a number (or its decimal text, if longer), a UUID (whose first 8 bytes it becomes, as in LangSmith's
            OpenTelemetry exporter), 8 bytes in base64, or any other text, whose SHA-256 begins with it (as in Langfuse's SDK).
    """
    return _otel_id(given, SPAN)


def digest_id(given: str, digits: int = SPAN) -> str:
    """The first hex digits of the SHA-256 of a text."""
    return hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


class SpanIds:
    """Span ids for the ids of one input: two ids of one trace that would become the same are kept apart."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], str] = {}
        self._taken: dict[tuple[str, str], str] = {}

    def of(self, trace: str, given: Json) -> str | None:
        """The span id, see :func:`span_id`; of two that begin alike, the second seen is made from its digest.

        Args:
            trace: the trace id, already as OpenTelemetry has it.
            given: the id to map.
        """
        made = span_id(given)
        if made is None or not isinstance(given, str) or not _UUID.fullmatch(given):
            return made
        known = self._made.get((trace, given))
        if known is None:
            known = made if self._taken.setdefault((trace, made), given) == given else digest_id(given)
            self._made[trace, given] = known
        return known


def _otel_id(given: Json, digits: int) -> str | None:
    if isinstance(given, int) and not isinstance(given, bool):
        given = f"{given:x}" if 0 <= given < 16**digits else str(given)
    if not isinstance(given, str) or not given:
        return None
    found = _HEX.fullmatch(given)
    if found is not None and len(found.group(1)) <= digits:
        made = found.group(1).lower().rjust(digits, "0")
    elif len(given) <= _DECIMAL and given.isascii() and given.isdecimal() and int(given) < 16**digits:
        made = f"{int(given):0{digits}x}"
    elif _UUID.fullmatch(given):
        made = given.replace("-", "").lower()[:digits]
    else:
        made = _from_base64(given, digits) or digest_id(given, digits)
    return made if made.strip("0") else None


def _from_base64(given: str, digits: int) -> str | None:
    if len(given) != -(-digits // 2 // 3) * 4 or not given.endswith("="):
        return None
    try:
        return base64.b64decode(given, validate=True).hex().rjust(digits, "0")[:digits]
    except (binascii.Error, ValueError):
        return None
