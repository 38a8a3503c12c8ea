"""One export request: bytes to records."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from spanreplay.receiver.answers import Form, Signal
from spanreplay.receiver.unpacking import TooLargeError, unpacked
from spanreplay.spans import otlp_json, otlp_proto
from spanreplay.spans.errors import FormatError, Problems
from spanreplay.spans.record import Record

JSON_MEMORY: Final = 1 << 30
"""Bytes of memory that the values of one JSON body may take, about. A body of ``{},{},…`` would take 40 times its size."""
_VALUE_BYTES: Final = ((b"{", 184), (b"[", 88), (b",", 56), (b":", 56))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as it came."""

    signal: Signal
    form: Form
    encoding: str
    """One of :data:`spanreplay.receiver.unpacking.ENCODINGS`."""
    body: bytes


def read(request: Request, limit: int, problems: Problems) -> Iterator[Record]:
    """The records of a request, one at a time.

    Args:
        request: the request.
        limit: bytes that its body may have, unpacked.
        problems: told about every record that is left out, and about what is altered.

    Raises:
        TooLargeError: the body is larger.
        FormatError: the body is no such request. Never after the first record.
    """
    body = unpacked(request.body, request.encoding, limit)
    if request.form == "protobuf":
        otlp_proto.check_whole(body)
        yield from otlp_proto.decode(body, problems=problems, kind=request.signal)
    elif body.strip():
        yield from otlp_json.decode(_parsed(body), problems=problems)


def _parsed(body: bytes) -> object:
    if sum(body.count(sign) * size for sign, size in _VALUE_BYTES) > JSON_MEMORY:
        raise TooLargeError
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        found = "values in each other too deeply" if isinstance(error, RecursionError) else str(error)
        raise FormatError("", "JSON", found) from None
