"""The body of an ``HTTPError`` of urllib: read for the record, and put back, so that the agent reads all of it."""

import io
from typing import Any, Final

from spanreplay.content.urllib_errors import is_http_error

MOST: Final = 1 << 20
"""Bytes; of a longer body nothing is kept."""
_PIECE: Final = 1 << 16
_CAUSES: Final = 5


def hold_bodies(error: BaseException) -> None:
    """Take the bodies of an error and of its causes off their connections, and let the errors give them from memory."""
    at: BaseException | None = error
    for _ in range(_CAUSES):
        if at is None:
            return
        if is_http_error(type(at)):
            _hold(getattr(at, "fp", None))
        at = at.__cause__


def _hold(response: Any) -> None:
    from http.client import HTTPResponse

    if type(response) is HTTPResponse:
        _hold_response(response, HTTPResponse.__new__(HTTPResponse))


def _hold_response(response: Any, rest: Any) -> None:
    """Take the body of a response into memory; ``rest`` is a blank one, which reads it from the connection."""
    if response.fp is None or isinstance(response.fp, io.BytesIO):
        return  # no connection, or all of the body is here
    if (response.length or 0) > MOST or "event-stream" in (response.getheader("content-type") or ""):
        return
    vars(rest).update(vars(response))  # so that it knows of lengths and chunks
    body, failure, ended = bytearray(), None, False
    try:
        while len(body) <= MOST and not ended:
            piece = rest.read(_PIECE)
            body += piece
            ended = not piece
    except Exception as problem:  # noqa: BLE001 - the agent meets it where it reads so far
        failure = problem
    response.chunked, response.chunk_left = False, None
    if ended:
        response.fp, response.length = io.BytesIO(body), len(body)
    else:
        response.fp, response.length = io.BufferedReader(_Again(bytes(body), rest, failure)), None


class _Again(io.RawIOBase):
    """A body of which the beginning was read: that, and then the rest or what was raised."""

    def __init__(self, beginning: bytes, rest: Any, failure: Exception | None) -> None:
        self._beginning = io.BytesIO(beginning)
        self._rest = rest
        self._failure = failure

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece: bytes = self._beginning.read(len(buffer))
        if not piece:
            if self._failure is not None:
                raise self._failure
            piece = self._rest.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._rest.close()
        super().close()
