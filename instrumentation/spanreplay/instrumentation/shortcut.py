"""A shortcut of a replay: a model SDK's method gives the object of the recorded response, and no request is made of its arguments.

It can only hit. Where the arguments are, as JSON, the very body that was recorded at this place, and the record has a whole response, the
step is made and answered as the transport would have it; everything else goes the ordinary way, which knows more. An SDK spends most of a
replayed step on turning arguments into a request and a response into an object.

A module in :mod:`spanreplay.instrumentation.shortcuts` says what the methods of one SDK send, and makes its objects.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import urlsplit

from spanreplay.boundary.boundary import here
from spanreplay.boundary.call import Answer
from spanreplay.instrumentation import http
from spanreplay.instrumentation.http_body import Headers, content_decoded, header
from spanreplay.instrumentation.http_exchange import Exchange
from spanreplay.instrumentation.http_request import Head
from spanreplay.instrumentation.provider import recognise_parsed

KEPT: Final = 256
"""Objects made of recorded responses that are kept, to be copied where they are given again."""

Convert: TypeAlias = Callable[[Any], Any]
"""Makes JSON of a value that is none, as the SDK does; raises ``TypeError`` or ``ValueError`` where it does not know how."""


class Sdk(Protocol):
    """One SDK."""

    def endpoint(self, client: Any) -> str | None:
        """The URL that a client's paths are appended to; ``None`` for a client that may send something of its own."""
        ...

    def body(self, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """The request body of a method's arguments, not yet JSON everywhere; ``None`` where they say more than a body."""
        ...

    def convert(self, value: Any) -> Any:
        """See :data:`Convert`."""
        ...

    def copy(self, made: Any) -> Any:
        """A deep copy of what :meth:`build` made."""
        ...

    def build(self, returned: Any, data: object, headers: Mapping[str, str]) -> Any:
        """The object of a response.

        Args:
            returned: the SDK's class of the object.
            data: the response body.
            headers: of the response, by name in lower case.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method of an SDK that sends one request."""

    sdk: Sdk
    path: str
    """Below the client's endpoint."""
    returned: Any
    """The SDK's class of what it gives."""


def begun(method: Method, client: Any, arguments: Mapping[str, Any]) -> "Hit | None":
    """The step of a call that the record answers as it stands; ``None``: go the ordinary way.

    Raises:
        ControlSignal: the replay has stopped.
    """
    scope = here()
    if scope is None or scope.session.foresees is None:
        return None
    known = _request(method, client, arguments)
    if known is None:
        return None
    head, body = known
    model_call = recognise_parsed(head.method, head.target, body)
    call = None if model_call is None else http.known_call(scope, head, model_call)
    if model_call is None or call is None or not scope.session.foresees(scope, call):
        return None
    exchange = http.begin_known(scope, head, call, model_call)
    return Hit(method, exchange, exchange.step.ask())


class Hit:
    """A step that the record answers."""

    __slots__ = ("_answer", "_exchange", "_method")

    def __init__(self, method: Method, exchange: Exchange, answer: Answer | None) -> None:
        assert answer is not None  # noqa: S101 — it was foreseen
        assert answer.exchange is not None  # noqa: S101
        exchange.answered(answer)
        self._method = method
        self._exchange = exchange
        self._answer = answer

    def value(self) -> Any:
        """Wait for the turn of this answer, and give it."""
        if self._answer.turn is not None:
            try:
                self._answer.turn.wait()
            except BaseException as error:
                self._exchange.failed(error)
                raise
        return self._value()

    async def value_async(self) -> Any:
        """As :meth:`value`, leaving the event loop free."""
        if self._answer.turn is not None:
            try:
                await self._answer.turn.wait_async()
            except BaseException as error:
                self._exchange.failed(error)
                raise
        return self._value()

    def _value(self) -> Any:
        recorded = self._answer.exchange
        assert recorded is not None  # noqa: S101 — see the constructor
        try:
            made = self._method.sdk.copy(_pattern(self._method, tuple(recorded.response_headers), recorded.response_body))
        except BaseException as error:
            self._exchange.failed(error)
            raise
        self._exchange.responded(recorded.status or 0, recorded.response_headers)
        self._exchange.chunk(recorded.response_body)
        self._exchange.exhausted()
        return made


def _request(method: Method, client: Any, arguments: Mapping[str, Any]) -> tuple[Head, dict[str, Any]] | None:
    endpoint = method.sdk.endpoint(client)
    given = None if endpoint is None else method.sdk.body(arguments)
    if endpoint is None or given is None:
        return None
    try:
        body = plain(given, method.sdk.convert)
    except (TypeError, ValueError, RecursionError):
        return None
    return _head(endpoint, method.path), body


@lru_cache(maxsize=64)
def _head(endpoint: str, path: str) -> Head:
    url = urlsplit(endpoint)
    return Head(
        method="POST",
        scheme=url.scheme,
        host=url.hostname or "",
        port=url.port,
        target=url.path.rstrip("/") + path,
        headers=(("content-type", "application/json"),),
    )


def plain(value: Any, convert: Convert) -> Any:
    """A value as JSON has it.

    Raises:
        TypeError: there is something in it that is no JSON and that ``convert`` does not know; also what ``convert`` raises.
    """
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None or kind is float:
        return value
    if kind is dict:
        if not all(type(name) is str for name in value):
            raise TypeError("a name that is no text")
        return {name: plain(item, convert) for name, item in value.items()}
    if kind is list or kind is tuple:
        return [plain(item, convert) for item in value]
    return plain(convert(value), convert)


@lru_cache(maxsize=KEPT)
def _pattern(method: Method, headers: Headers, body: bytes) -> Any:
    """The object of a response, made once and copied for each caller: an SDK takes five times as long to make one."""
    view = content_decoded(body, header(headers, "content-encoding"))
    data = json.loads(body if view is None else view)
    return method.sdk.build(method.returned, data, {name.lower(): value for name, value in headers})
