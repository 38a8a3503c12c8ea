"""HTTP through ``lm15`` (1.0 and later), which speaks it over sockets of its own; DSPy (3.3 and later) has a copy of it.

``StdlibTransport.stream`` and ``StdlibAsyncTransport._do_stream`` are one request on the wire each. The bodies that they give are decoded,
so their headers are kept without what they say of an encoding.
"""

import functools
import http
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import here
from spanreplay.boundary.scope import Scope
from spanreplay.content import codec
from spanreplay.instrumentation.hooks import Hooks, UnsupportedError, expect
from spanreplay.instrumentation.http_body import Headers, header, without_encoding
from spanreplay.instrumentation.http_exchange import Exchange
from spanreplay.instrumentation.http_reply import Reply
from spanreplay.instrumentation.http_request import Head
from spanreplay.instrumentation.http_sending import asend, send
from spanreplay.instrumentation.httpx_streams import AsyncStream, RecordedAsync, RecordedSync, SyncStream
from spanreplay.instrumentation.patching import Patches

_PORTS: Final = {"http": 80, "https": 443}


def _patch(owner: str, method: str, response: str, make: Callable[..., Any]) -> Callable[[ModuleType, Patches], None]:
    def patch(module: ModuleType, patches: Patches) -> None:
        transport = getattr(module, owner, None)
        expect(transport, method, ["self", "request"])
        expect(module, "parse_url", ["url"])
        expect(getattr(module, response, None), "__init__", ["self", "status", "reason", "headers", "http_version", "chunks", "release"])
        if not hasattr(module, "ReadTimeout"):
            raise UnsupportedError(f"wanted exceptions of {module.__name__} that tell of a time-out, found none")
        patches.replace(transport, method, functools.partial(make, module))

    return patch


def _observed(module: ModuleType, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def stream(self: Any, request: Any) -> Any:
        scope = here()
        if scope is None:
            return original(self, request)
        sent = _Sent(module, scope, request)
        return send(sent, sent.body, lambda: original(self, request))

    return stream


def _observed_async(module: ModuleType, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def _do_stream(self: Any, request: Any) -> Any:
        scope = here()
        if scope is None:
            return await original(self, request)
        sent = _AsyncSent(module, scope, request)
        return await asend(sent, sent.abody, lambda: original(self, request))

    return _do_stream


_SYNC: Final = _patch("StdlibTransport", "stream", "TransportResponse", _observed)
_ASYNC: Final = _patch("StdlibAsyncTransport", "_do_stream", "AsyncTransportResponse", _observed_async)
_PACKAGES: Final = ("lm15.transports", "dspy._vendor.lm15.transports")
_hooks: Final = Hooks("lm15", {f"{package}.{name}": seam for package in _PACKAGES for name, seam in (("_sync", _SYNC), ("_async", _ASYNC))})
NAME: Final = _hooks.name
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


class _Sent:
    """One request: a :class:`~spanreplay.instrumentation.http_sending.Sender`.

    Args:
        module: the one that the transport is in.
        scope: where the request is made.
        request: a ``TransportRequest``.
    """

    def __init__(self, module: ModuleType, scope: Scope, request: Any) -> None:
        self._module: Any = module
        self.scope = scope
        url = self._module.parse_url(request.url)
        self.head = Head(
            method=request.method.upper(),
            scheme=url.scheme,
            host=url.host,
            port=None if url.port == _PORTS.get(url.scheme) else url.port,
            target=url.target,
            headers=list(request.headers),
        )
        self._request = request

    def body(self) -> bytes:
        return self._request.body or b""

    def ran_out(self, error: BaseException) -> bool:
        return isinstance(error, self._module.ConnectTimeout | self._module.ReadTimeout | self._module.WriteTimeout)

    def drop(self) -> Any:
        return self._response(200, (), iter(()), lambda _: None)

    def watch(self, response: Any, exchange: Exchange) -> None:
        exchange.responded(response.status, _decoded(response.headers))
        response._chunks = SyncStream(response._chunks, exchange)
        response._release = _released(response._release, exchange)

    def respond(self, given: Reply, exchange: Exchange) -> Any:
        exchange.responded(given.status, given.headers)
        return self._response(given.status, given.headers, SyncStream(RecordedSync(given, exchange), exchange), lambda _: exchange.closed())

    def decode_error(self, text: str) -> BaseException:
        return codec.decode_exception(text)

    def time_out(self) -> BaseException:
        made: BaseException = self._module.ReadTimeout("The read operation timed out")
        return made

    def change(self, target: str, body: bytes) -> None:
        request = self._request
        dropped = ("content-encoding", "content-length", "transfer-encoding")
        request.headers = [pair for pair in request.headers if str(pair[0]).lower() not in dropped]
        request.body = body
        if target != self.head.target:
            request.url = self.head.url.removesuffix(self.head.target) + target

    def _response(self, status: int, headers: Headers, chunks: object, release: Callable[[bool], object]) -> Any:
        return self._module.TransportResponse(**_of(status, headers, chunks, release))


class _AsyncSent(_Sent):
    async def abody(self) -> bytes:
        return self.body()

    def drop(self) -> Any:
        return self._async_response(200, (), _Empty(), lambda: None)

    def watch(self, response: Any, exchange: Exchange) -> None:
        exchange.responded(response.status, _decoded(response.headers))
        response._chunks = AsyncStream(response._chunks, exchange)
        response._release = _areleased(response._release, exchange)

    def respond(self, given: Reply, exchange: Exchange) -> Any:
        exchange.responded(given.status, given.headers)
        return self._async_response(given.status, given.headers, AsyncStream(RecordedAsync(given, exchange), exchange), exchange.closed)

    def _async_response(self, status: int, headers: Headers, chunks: object, closed: Callable[[], object]) -> Any:
        async def release(_: bool) -> None:
            closed()

        return self._module.AsyncTransportResponse(**_of(status, headers, chunks, release))


class _Empty:
    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> bytes:
        raise StopAsyncIteration


def _of(status: int, headers: Headers, chunks: object, release: Callable[[bool], object]) -> dict[str, Any]:
    reason = http.HTTPStatus(status).phrase if status in http.HTTPStatus._value2member_map_ else ""
    return {
        "status": status,
        "reason": reason,
        "headers": list(headers),
        "http_version": "HTTP/1.1",
        "chunks": chunks,
        "release": release,
    }


def _decoded(headers: Headers) -> Headers:
    return without_encoding(headers) if header(headers, "content-encoding") else list(headers)


def _released(original: Callable[[bool], Any], exchange: Exchange) -> Callable[[bool], Any]:
    def release(body_consumed: bool) -> Any:
        try:
            return original(body_consumed)
        finally:
            exchange.closed()

    return release


def _areleased(original: Callable[[bool], Any], exchange: Exchange) -> Callable[[bool], Any]:
    async def release(body_consumed: bool) -> None:
        try:
            await original(body_consumed)
        finally:
            exchange.closed()

    return release
