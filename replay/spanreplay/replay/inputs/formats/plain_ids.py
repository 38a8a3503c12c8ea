"""Ids of spans in plain JSON: those of OpenTelemetry in any notation, and any other text or number."""

import re
from typing import Any, Final

from spanreplay.replay.inputs.formats.notes import Notes
from spanreplay.replay.inputs.identifiers import SPAN, TRACE, SpanIds, trace_id
from spanreplay.spans._fields import hex_id
from spanreplay.spans.errors import FormatError, describe

_OF_OTEL: Final = re.compile(r"(?:0x)?[0-9a-f]+|[0-9A-Za-z+/_-]+={1,2}", re.IGNORECASE | re.ASCII)
_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_LONGEST: Final = 44
"""Characters of a trace id as base64 of its hex digits."""


class Ids:
    """The ids of one document."""

    def __init__(self) -> None:
        self._spans = SpanIds()

    def trace(self, raw: Any, field: str, notes: Notes) -> str | None:
        """The id of a trace, 32 hex digits; ``None`` where none is given.

        Raises:
            FormatError: It is neither a text nor a number.
        """
        given = _given(raw, TRACE, field, notes)
        return trace_id(given) if isinstance(given, int) else _packed(given, TRACE) or trace_id(given)

    def span(self, trace: str, raw: Any, field: str, notes: Notes) -> str | None:
        """The id of a span of that trace, 16 hex digits; ``None`` where none is given.

        Raises:
            FormatError: It is neither a text nor a number.
        """
        given = _given(raw, SPAN, field, notes)
        return self._spans.of(trace, given) if isinstance(given, int) else _packed(given, SPAN) or self._spans.of(trace, given)


def _given(raw: Any, digits: int, field: str, notes: Notes) -> str | int:
    """The id as a text or a number of the right sign; what it lacks is noted."""
    if raw is None:
        return ""
    if isinstance(raw, float) and raw.is_integer():
        notes.of("id-float")
        raw = int(raw)
    if isinstance(raw, int) and not isinstance(raw, bool) and abs(raw) < 16**digits:
        # Languages without unsigned numbers write half of the ids as negative ones.
        return raw if raw >= 0 else raw + 16**digits
    if not isinstance(raw, str):
        raise FormatError(field, f"an id of {digits} hex digits", describe(raw))
    text = raw.strip()
    own = len(text) <= _LONGEST and _OF_OTEL.fullmatch(text) and not (digits == SPAN and len(text) == TRACE)
    notes.of("id-derived", bool(text) and not own and not (digits == TRACE and _UUID.fullmatch(text)))
    return text


def _packed(text: str | int, digits: int) -> str | None:
    """The id that a base64 text stands for, of its bytes or of its hex digits."""
    if not isinstance(text, str) or not text.endswith("="):
        return None
    try:
        return hex_id(text, digits // 2, "")
    except FormatError:
        return None
