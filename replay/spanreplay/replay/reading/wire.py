"""The exact HTTP exchange behind a step, from its ``spanreplay.wire.*`` attributes."""

import base64
import binascii
from typing import Any, Final

from spanreplay.replay.model import Reason, Wire
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reasons import CUT, WIRE_ABSENT, WIRE_INCOMPLETE
from spanreplay.semconv import attributes as a

_FAILED: Final = frozenset({"error", "timeout", "cancelled"})


def read_wire(fields: Fields) -> tuple[Wire | None, list[Reason]]:
    """The exchange, or ``None`` where the span does not hold it, and what is wrong with it."""
    method, url = fields.text(a.HTTP_REQUEST_METHOD), fields.text(a.URL_FULL)
    if a.WIRE_REQUEST_HEADERS not in fields and a.WIRE_REQUEST_BODY not in fields:
        return None, []
    reasons: list[Reason] = []
    status = fields.integer(a.HTTP_RESPONSE_STATUS_CODE)
    request = _body(fields, a.WIRE_REQUEST_BODY, a.WIRE_REQUEST_BODY_ENCODING, reasons)
    response = _body(fields, a.WIRE_RESPONSE_BODY, a.WIRE_RESPONSE_BODY_ENCODING, reasons)
    if method is None or url is None or (status is not None and response is None):
        lost = a.HTTP_REQUEST_METHOD if method is None else a.URL_FULL if url is None else a.WIRE_RESPONSE_BODY
        return None, [*reasons, Reason(code=WIRE_ABSENT, detail=f"the span has a part of the HTTP exchange but no {lost}")]
    received = response or b""
    return (
        Wire(
            provider=fields.text(a.WIRE_PROVIDER),
            method=method,
            url=url,
            request_headers=_headers(fields, a.WIRE_REQUEST_HEADERS, reasons),
            request_body=request or b"",
            status=status,
            response_headers=_headers(fields, a.WIRE_RESPONSE_HEADERS, reasons),
            response_body=received,
            chunks=_chunks(fields, len(received), reasons),
            complete=fields.true(a.WIRE_RESPONSE_COMPLETE),
        ),
        reasons,
    )


def wire_gap(wire: Wire, outcome: str, *, raised: bool) -> Reason | None:
    """Why an exchange is less than what happened, or ``None``.

    A stream that the agent left early is all that the agent got; so is a failure whose exception is kept. Anything else that stopped before
    its end is a part; but SDKs close an error's response without reading all of it.

    Args:
        wire: the exchange.
        outcome: how the step ended.
        raised: whether the exception that ended the step is kept.
    """
    if wire.complete or outcome == "abandoned" or (raised and outcome in _FAILED):
        return None
    if wire.status is not None and wire.status >= 400 and outcome == "error":
        return None
    if wire.status is None:
        return Reason(code=WIRE_INCOMPLETE, detail="no response was recorded and no exception that says why")
    return Reason(code=WIRE_INCOMPLETE, detail=f"the response stopped after {len(wire.response_body)} bytes, before its end was seen")


def _body(fields: Fields, name: str, encoding_name: str, reasons: list[Reason]) -> bytes | None:
    value = fields.attributes.get(name)
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        return None
    encoding = fields.text(encoding_name) or "utf-8"
    if encoding == "utf-8":
        return value.encode("utf-8", "surrogatepass")
    if encoding != "base64":
        reasons.append(Reason(code=CUT, detail=f"{name} is encoded as {encoding!r}; known are 'utf-8' and 'base64'"))
        return None
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        reasons.append(Reason(code=CUT, detail=f"{name} ({len(value)} characters) is not whole base64"))
        return None


def _headers(fields: Fields, name: str, reasons: list[Reason]) -> tuple[tuple[str, str], ...]:
    if name not in fields:
        return ()
    value = fields.json(name)
    pairs: list[Any] = value if isinstance(value, list) else []
    good = [pair for pair in pairs if isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)]
    if not isinstance(value, list) or len(good) != len(pairs):
        reasons.append(Reason(code=CUT, detail=f"{name} is not a JSON list of [name, value]"))
    return tuple((pair[0], pair[1]) for pair in good)


def _chunks(fields: Fields, size: int, reasons: list[Reason]) -> tuple[tuple[int, int], ...]:
    value = fields.json(a.WIRE_RESPONSE_CHUNKS)
    pairs: list[Any] = value if isinstance(value, list) else []
    chunks = tuple((pair[0], pair[1]) for pair in pairs if isinstance(pair, list) and len(pair) == 2 and all(type(n) is int for n in pair))
    total = sum(length for length, _ in chunks)
    if chunks and len(chunks) == len(pairs) and total == size and min(length for length, _ in chunks) >= 0:
        return chunks
    if a.WIRE_RESPONSE_CHUNKS in fields and (pairs or size):
        reasons.append(Reason(code=CUT, detail=f"{a.WIRE_RESPONSE_CHUNKS} adds up to {total} bytes, the body has {size}"))
    return ((size, 0),) if size else ()
