"""The response that the record answers a request with, before a client library's own classes are made of it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from spanreplay.boundary.call import Answer
from spanreplay.boundary.call import Exchange as RecordedExchange
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


def reply(exchange: Exchange, answer: Answer, decode_error: Callable[[str], BaseException]) -> Reply:
    """The recorded response.

    Args:
        exchange: the exchange to answer.
        answer: what the interceptors found. Where it has no recorded exchange, ``answer.result`` is JSON:
            ``{"messages": [gen_ai.output.messages], "model": …, "response_id": …, "usage": {…}}``, all but the messages optional, and the
            provider makes a body of it; for a request that is no model call it is the body itself (a string as it is, else its JSON).
        decode_error: makes the client library's exception of typed JSON text.

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
    if answer.result is not None and answer.outcome in ("ok", "abandoned"):
        content_type, body = _rendered(exchange, json.loads(answer.result))
        return Reply(status=200, headers=(("content-type", content_type),), chunks=(body,))
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


def _rendered(exchange: Exchange, result: Any) -> tuple[str, bytes]:
    if exchange.provider is None:
        return (
            ("text/plain; charset=utf-8", result.encode()) if isinstance(result, str) else ("application/json", json.dumps(result).encode())
        )
    given = result if isinstance(result, dict) else {}
    usage = given.get("usage")
    return exchange.provider.render(
        given.get("messages") or [],
        request=exchange.request,
        response_id=given.get("response_id"),
        model=given.get("model"),
        usage=usage if isinstance(usage, dict) else {},
    )


def _nothing() -> BaseException:
    return NothingRecordedError("wanted a recorded HTTP response or exception, found neither: the recording ends before this point")
