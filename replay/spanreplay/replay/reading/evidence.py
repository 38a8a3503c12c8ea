"""What spanreplay's own attributes prove about a step: whether each value is whole, what was left off, replaced or kept as text only."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from spanreplay.content.canonical import digest
from spanreplay.content.codec import plain
from spanreplay.content.errors import CodecError
from spanreplay.replay.model import Grade, Json, Reason
from spanreplay.replay.reading.fields import Fields, too_deep
from spanreplay.replay.reasons import CUT, DROPPED_ATTRIBUTES, LEFT_OFF, LOSSY, REDACTED_HEADER, REDACTED_INPUT, REDACTED_RESULT
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord

ANSWERS: Final = frozenset(
    {
        a.WIRE_RESPONSE_BODY,
        a.STEP_RESULT,
        a.STEP_ITEMS,
        a.STEP_ERROR,
        a.STEP_LEFT,
        a.GEN_AI_TOOL_CALL_RESULT,
        a.GEN_AI_OUTPUT_MESSAGES,
        a.RUN_OUTPUT,
    }
)
"""What a replay hands back to the agent: a replacement in one of these changes what the agent gets."""
HEADERS: Final = frozenset({a.WIRE_REQUEST_HEADERS, a.WIRE_RESPONSE_HEADERS})
_MARK: Final = re.compile(r"(?:\[|%5B)redacted:", re.IGNORECASE)
_UNREAD: Final = {"request": ("headers", "url"), "response": ("headers",)}
"""What no agent reads of the requests and responses that errors of HTTP clients carry, by their type tags."""


def proof(span: SpanRecord, fields: Fields) -> tuple[list[tuple[Grade, Reason]], frozenset[str]]:
    """The findings, each with the grade that it allows at best, and the names of values that were left off this copy of the span."""
    findings, left_off = _digests(fields)
    listed = _names(fields.json(a.STEP_LOSSY))
    if listed:
        findings.append(("semantic", Reason(code=LOSSY, detail=f"kept as text only: {', '.join(sorted(listed))}")))
    for name, count in sorted(_counts(fields.json(a.STEP_REDACTED)).items()):
        detail = f"{count} replaced in {name}"
        if name in HEADERS or (name == a.STEP_ERROR and count <= _of_requests(fields.text(name))):
            findings.append(("exact", Reason(code=REDACTED_HEADER, detail=f"{detail}; no agent reads them")))
        elif name in ANSWERS:
            findings.append(("semantic", Reason(code=REDACTED_RESULT, detail=detail)))
        else:
            findings.append(("exact", Reason(code=REDACTED_INPUT, detail=f"{detail}; both sides of a match are redacted alike")))
    if span.dropped_attributes:
        findings.append(
            ("incomplete", Reason(code=DROPPED_ATTRIBUTES, detail=f"{span.dropped_attributes} attributes were dropped on the way"))
        )
    return findings, left_off


def _of_requests(error: str | None) -> int:
    """How many marks in a typed error stand where the request that it carries holds credentials: in headers, in a URL."""
    try:
        waiting: list[Any] = [json.loads(error or "null")]
    except (ValueError, RecursionError):
        return 0
    count = 0
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
            parts = value.get("v")
            if isinstance(parts, dict):
                unread = [parts.get(name) for name in _UNREAD.get(str(value.get("$t")), ())]
                count += len(_MARK.findall(json.dumps(unread, ensure_ascii=False)))
    return count


def _digests(fields: Fields) -> tuple[list[tuple[Grade, Reason]], frozenset[str]]:
    findings: list[tuple[Grade, Reason]] = []
    left_off: list[str] = []
    listed = fields.json(a.STEP_DIGESTS)
    for name, expected in listed.items() if isinstance(listed, dict) else ():
        if not (isinstance(expected, list) and len(expected) == 2 and isinstance(expected[0], str)):
            continue
        value = fields.attributes.get(name)
        if value is None:
            left_off.append(name)
        elif not _proved(value, expected[0]):
            found = len(value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else "a value that is no text"
            detail = f"{name} was recorded with {expected[1]} bytes, found {found}"
            if found == expected[1]:
                detail += " of another content"
            findings.append(("incomplete", Reason(code=CUT, detail=detail, field=name, size=found if isinstance(found, int) else None)))
    if left_off:
        findings.append(("exact", Reason(code=LEFT_OFF, detail=f"not on this copy of the span: {', '.join(sorted(left_off))}")))
    return findings, frozenset(left_off)


def _proved(value: object, expected: str) -> bool:
    return isinstance(value, str) and digest(value).removeprefix("sha256:") == expected.removeprefix("sha256:").lower()


def _names(value: Json) -> set[str]:
    items: list[Any] = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return {item for item in items if isinstance(item, str)}


def _counts(value: Json) -> Mapping[str, int]:
    given: dict[str, Any] = value if isinstance(value, dict) else {}
    return {name: count for name, count in given.items() if isinstance(count, int) and count > 0}


def typed_view(text: str) -> tuple[Json, bool]:
    """A typed JSON text as people and the command line's JSON see it, without type tags; and whether it is JSON at all.

    A text that is none is itself: it is what was found of a longer one.
    """
    try:
        value = json.loads(plain(text))
    except (CodecError, ValueError):
        return text, False
    except RecursionError:
        return text, True
    return (text if too_deep(value) else value), True
