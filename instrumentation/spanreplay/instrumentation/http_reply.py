"""The response that the record answers a request with, before a client library's own classes are made of it."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from spanreplay.boundary.call import Answer, Turn
from spanreplay.boundary.call import Exchange as RecordedExchange
from spanreplay.instrumentation import http_meaning
from spanreplay.instrumentation.http_body import Headers
from spanreplay.instrumentation.http_exchange import Exchange


class NothingRecordedError(Exception):
    """The record has neither a response nor an exception for this request, and the session knows nothing better to raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A response to give."""

    status: int
    headers: Headers
    chunks: Sequence[bytes]
    ending: Callable[[], BaseException] | None = field(default=None)
    """Makes what is raised to a reader who asks for more than ``chunks``; ``None``: the body ends there."""
    pends: bool = False
    """The recorded reader was cancelled while it waited for more: so must this one be."""


class BeforeTheEnd:
    """The last piece of a whole body waits for its turn, where the response that it is of has not: a stream that was opened beside others.

    Args:
        given: the response.
        answer: what it was made of.
    """

    def __init__(self, given: Reply, answer: Answer | None) -> None:
        whole = given.ending is None and not given.pends
        self._turn = answer.turn if answer is not None and whole else None
        self._left = sum(map(bool, given.chunks))

    def turn(self, data: bytes) -> Turn | None:
        """What is to be waited for before the next piece is given, which is ``data``."""
        self._left -= bool(data)
        turn = self._turn
        return turn if turn is not None and data and not self._left and turn.is_to_come else None


def reply(
    exchange: Exchange,
    answer: Answer,
    decode_error: Callable[[str], BaseException],
    time_out: Callable[[], BaseException] = TimeoutError,
) -> Reply:
    """The recorded response.

    Args:
        exchange: the exchange to answer.
        answer: what the interceptors found. Where it has no recorded exchange, ``answer.result`` is the response's meaning, of which the
            provider makes a body; see :mod:`~spanreplay.instrumentation.http_meaning`.
        decode_error: makes the client library's exception of typed JSON text.
        time_out: makes its exception of a response that does not come in time.

    Raises:
        BaseException: the recorded exception, where no response had come; what ``answer.beyond`` makes, where nothing is known.
    """
    recorded = answer.exchange
    if recorded is not None and recorded.status is not None:
        ending: Callable[[], BaseException] | None = None
        if answer.error is not None:
            text = answer.error
            ending = lambda: exchange.gave(decode_error(text))  # noqa: E731
        elif not recorded.complete:
            ending = answer.beyond or _nothing
        return Reply(
            status=recorded.status,
            headers=recorded.response_headers,
            chunks=chunks_of(recorded),
            ending=ending,
            pends=answer.outcome == "cancelled",
        )
    if answer.error is not None:
        raise exchange.gave(decode_error(answer.error))
    if answer.outcome == "timeout":
        raise exchange.gave(time_out())
    if answer.result is not None and answer.outcome in ("ok", "abandoned"):
        content_type, body = http_meaning.render(answer.result, exchange.provider, exchange.request)
        return Reply(status=200, headers=(("content-type", content_type),), chunks=(body,))
    if answer.outcome == "cancelled":
        raise exchange.gave(asyncio.CancelledError())
    stop = answer.beyond or _nothing
    raise stop()


def chunks_of(recorded: RecordedExchange) -> list[bytes]:
    """The body cut as it was received; in one piece where the recorded sizes do not add up to it."""
    body = recorded.response_body
    sizes = [size for size, _ in recorded.chunks]
    if sum(sizes) != len(body):
        return [body] if body else []
    pieces: list[bytes] = []
    start = 0
    for size in sizes:
        pieces.append(body[start : start + size])
        start += size
    return pieces


def _nothing() -> BaseException:
    return NothingRecordedError("wanted a recorded HTTP response or exception, found neither: the recording ends before this point")
