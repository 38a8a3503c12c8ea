"""A shortcut of a replay: a model SDK's method gives the object of the recorded response, and no request is made of its arguments.

It can only hit. Where the arguments are, as JSON, the very body that was recorded at this place, and the record has a whole response, the
step is made and answered as the transport would have it; everything else goes the ordinary way, which knows more. An SDK spends most of a
replayed step on turning arguments into a request and a response into an object. Where the caller gets more than an object, a stream or the
response itself, the request is made of the arguments as they are, and answered by the transport.

A module in :mod:`spanreplay.instrumentation.shortcuts` says what the methods of one SDK send, and makes its objects.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from spanreplay.boundary.boundary import here
from spanreplay.boundary.call import Answer, Call
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation import http
from spanreplay.instrumentation.http_body import Headers, content_decoded, header
from spanreplay.instrumentation.http_exchange import Exchange
from spanreplay.instrumentation.http_request import Head
from spanreplay.instrumentation.http_telemetry import is_telemetry
from spanreplay.instrumentation.provider import Provider, recognise_parsed

KEPT: Final = 256
"""Objects made of recorded responses that are kept, to be copied where they are given again."""


class Sdk(Protocol):
    """One SDK."""

    def __hash__(self) -> int:
        """What is made of responses is kept by it."""
        ...

    def endpoint(self, client: Any) -> str | None:
        """The URL that a client's paths are appended to; ``None`` for a client that may send something of its own."""
        ...

    def body(self, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """The request body of a method's arguments, not yet JSON everywhere; ``None`` where they say more than a body."""
        ...

    def write(self, body: object, /) -> str:
        """Canonical JSON of something with such a body in it.

        Raises:
            TypeError: something in it is no JSON, and not known to be sent as some; also what the SDK raises.
        """
        ...

    def copies(self, made: Any) -> Callable[[], Any]:
        """What gives deep copies of what :meth:`build` made."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """A call that the record answers as it stands."""

    scope: Scope
    head: Head
    body: Mapping[str, Any]
    """Not yet JSON everywhere."""
    call: Call
    known: tuple[Provider, object]
    """The codec of the API, and what it is asked."""


def foreseen(method: Method, client: Any, arguments: Mapping[str, Any]) -> Foreseen | None:
    """What the record answers as it stands; ``None``: go the ordinary way. Nothing is begun."""
    scope = here()
    if scope is None or scope.session.foresees is None:
        return None
    endpoint = method.sdk.endpoint(client)
    head = None if endpoint is None else _head(endpoint, method.path)
    body = None if head is None else method.sdk.body(arguments)
    if head is None or body is None or type(body.get("model")) is not str:
        return None
    known = recognise_parsed(head.method, head.target, body)
    if known is None:
        return None
    try:
        call = http.known_call(scope, head, known, method.sdk.write)
    except (TypeError, ValueError, RecursionError):
        return None
    if call is None or not scope.session.foresees(scope, call):
        return None
    return Foreseen(scope=scope, head=head, body=body, call=call, known=known)


def begun(method: Method, found: Foreseen) -> "Hit":
    """The step of a foreseen call.

    Raises:
        ControlSignal: the replay has stopped.
    """
    exchange = http.begin_known(found.scope, found.head, found.call, found.known)
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
            made = _copies(self._method.sdk, self._method.returned, tuple(recorded.response_headers), recorded.response_body)()
        except BaseException as error:
            self._exchange.failed(error)
            raise
        self._exchange.responded(recorded.status or 0, recorded.response_headers)
        self._exchange.chunk(recorded.response_body)
        self._exchange.exhausted()
        return made


@lru_cache(maxsize=64)
def _head(endpoint: str, path: str) -> Head | None:
    """The request but its body; ``None`` where it would be telemetry."""
    url = urlsplit(endpoint)
    head = Head(method="POST", scheme=url.scheme, host=url.hostname or "", port=url.port, target=url.path.rstrip("/") + path, headers=())
    return None if is_telemetry(head) else head


@lru_cache(maxsize=KEPT)
def _copies(sdk: Sdk, returned: Any, headers: Headers, body: bytes) -> Callable[[], Any]:
    """What gives the object of a response, made once and copied for each caller: an SDK takes far longer to make one."""
    view = content_decoded(body, header(headers, "content-encoding"))
    data = json.loads(body if view is None else view)
    return sdk.copies(sdk.build(returned, data, {name.lower(): value for name, value in headers}))
