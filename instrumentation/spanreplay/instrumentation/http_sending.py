"""The way of one request through the Boundary, sync and async, the same for every client library.

A transport knows how its library looks; this knows what happens: decide, open the step, ask for an answer, wait for its turn, hand it over;
or send, and watch the response.
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar, cast

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Answer
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation import http
from spanreplay.instrumentation.http import Course
from spanreplay.instrumentation.http_body import content_decoded, header
from spanreplay.instrumentation.http_exchange import Exchange
from spanreplay.instrumentation.http_reply import Reply, reply
from spanreplay.instrumentation.http_request import Head
from spanreplay.instrumentation.shims import untaped

R = TypeVar("R")


class Sender(Protocol):
    """One request of a client library."""

    scope: Scope
    head: Head

    def ran_out(self, error: BaseException) -> bool:
        """Does this exception of the library say that a time ran out?"""
        ...

    def drop(self) -> Any:
        """An empty 200, or an awaitable of it: the answer to telemetry, which a replay does not send."""
        ...

    def watch(self, response: Any, exchange: Exchange) -> None:
        """Tell the exchange what comes of a live response: its head now, its body as it is read."""
        ...

    def respond(self, given: Reply, exchange: Exchange) -> Any:
        """A response of the library that gives the recorded chunks one by one, watched as a live one is; or an awaitable of it."""
        ...

    def decode_error(self, text: str) -> BaseException:
        """The library's exception, of its typed JSON text."""
        ...

    def time_out(self) -> BaseException:
        """What the library raises when a response does not come in time."""
        ...

    def change(self, target: str, body: bytes) -> Any:
        """Send this target and this body instead; may give an awaitable that does it."""
        ...


def send(sender: Sender, read: Callable[[], bytes], transmit: Callable[[], R]) -> R:
    """Send a request, or answer it from the record.

    Args:
        sender: the request.
        read: gives its body as it will be sent; called only where it is needed.
        transmit: sends it.

    Raises:
        BaseException: what ``transmit`` raises, the same object; what the record says it raised; a replay that stops it.
    """
    course = http.consider(sender.scope, sender.head)
    body = read() if course is Course.STEP else b""
    exchange = _begun(sender, body) if course is Course.STEP else course
    if not isinstance(exchange, Exchange):
        if exchange is Course.DROP:
            return cast("R", sender.drop())
        with untaped.telling():
            return transmit()
    answer = exchange.step.ask()
    if answer is not None:
        exchange.answered(answer)
        try:
            if answer.never_came:
                boundary.stay(answer)
            if answer.turn is not None:
                answer.turn.wait()
            given = reply(exchange, answer, sender.decode_error, sender.time_out)
        except BaseException as error:
            exchange.failed(error)
            raise
        return cast("R", sender.respond(given, exchange))
    try:
        if exchange.step.rewrite is not None:
            _rewrite(sender, exchange, body)
        with exchange.step.body():
            response = transmit()
    except BaseException as error:
        exchange.failed(error)
        raise
    return _watched(sender, response, exchange)


async def asend(sender: Sender, read: Callable[[], Awaitable[bytes]], transmit: Callable[[], Awaitable[R]]) -> R:
    """As :func:`send`, asynchronously."""
    course = http.consider(sender.scope, sender.head)
    body = await read() if course is Course.STEP else b""
    exchange = _begun(sender, body) if course is Course.STEP else course
    if not isinstance(exchange, Exchange):
        if exchange is Course.DROP:
            return cast("R", await _awaited(sender.drop()))
        with untaped.telling():
            return await transmit()
    exchange.step.will_be_awaited()
    answer = exchange.step.ask()
    if answer is not None:
        exchange.answered(answer)
        try:
            await _turn_of(answer)
            given = reply(exchange, answer, sender.decode_error, sender.time_out)
        except BaseException as error:
            exchange.failed(error)
            raise
        return cast("R", await _awaited(sender.respond(given, exchange)))
    try:
        if exchange.step.rewrite is not None:
            await _awaited(_rewrite(sender, exchange, body))
        with exchange.step.body():
            response = await transmit()
    except BaseException as error:
        exchange.failed(error)
        raise
    return _watched(sender, response, exchange)


async def _awaited(made: Any) -> Any:
    return await made if inspect.isawaitable(made) else made


def _rewrite(sender: Sender, exchange: Exchange, body: bytes) -> Any:
    """Send what a fork has made of the request, and keep that it did."""
    rewrite = exchange.step.rewrite
    assert rewrite is not None  # noqa: S101 — asked by the caller
    view = content_decoded(body, header(sender.head.headers, "content-encoding"))
    target, made = rewrite(sender.head.target, body if view is None else view)
    http.rewritten(exchange, target, made)
    return sender.change(target, made)


def _begun(sender: Sender, body: bytes) -> Exchange | Course:
    return http.begin(sender.scope, sender.head, body, sender.ran_out)


async def _turn_of(answer: Answer) -> None:
    if answer.never_came or (answer.outcome == "cancelled" and (answer.exchange is None or answer.exchange.status is None)):
        await boundary.pend(answer)
    elif answer.turn is not None:
        await answer.turn.wait_async()


def _watched(sender: Sender, response: R, exchange: Exchange) -> R:
    session = exchange.step.session
    try:
        sender.watch(response, exchange)
    except Exception as error:
        if session.mode == "replay":
            raise
        session.failed(f"the response to {exchange.step.path}")
        exchange.failed(error)
    return response
