"""Thin shells around an exchange: the transports and responses of httpx and httpx2, sync and async.

The library's classes reach this module as values; it never imports them, and what it has to subclass it subclasses at run time.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.scope import Scope
from spanreplay.content import codec
from spanreplay.instrumentation.http_exchange import Exchange
from spanreplay.instrumentation.http_reply import Reply
from spanreplay.instrumentation.http_request import Head
from spanreplay.instrumentation.http_sending import asend, send
from spanreplay.instrumentation.httpx_streams import AsyncStream, RecordedAsync, RecordedSync, SyncStream

_FAMILY: Final = frozenset({"httpx", "httpx2"})
_EXTENSIONS: Final = {"http_version": b"HTTP/1.1"}


class Library:
    """One imported module, httpx or httpx2, and what is made of its classes.

    Args:
        module: the module.
    """

    def __init__(self, module: ModuleType) -> None:
        lib: Any = module
        self._response: Callable[..., Any] = lib.Response
        self._request_error: type[Exception] = lib.RequestError
        self._in_memory: Any = lib.ByteStream
        self._module = module
        self.timeouts: tuple[type[BaseException], ...] = (lib.TimeoutException,)
        self.read_timeout: Callable[..., BaseException] = lib.ReadTimeout
        self._sync_stream = type("ObservedStream", (SyncStream, lib.SyncByteStream), {})
        self._async_stream = type("AsyncObservedStream", (AsyncStream, lib.AsyncByteStream), {})

    def observed(self, transport: Any, scope: Scope) -> "ObservedTransport":
        """The transport to use for one request that is made from ``scope``."""
        return ObservedTransport(self, transport, scope)

    def head(self, request: Any, transport: Any) -> Head:
        """What of a request does not need its body.

        Transports that call an application of this process have it as ``app``: ``ASGITransport`` and ``WSGITransport`` of the libraries
        (0.28, 2.16), that of the test client of Starlette and FastAPI (starlette 1.10).
        """
        url = request.url
        return Head(
            method=request.method,
            scheme=url.scheme,
            host=url.host,
            port=url.port,
            target=url.raw_path.decode("ascii", "backslashreplace"),
            headers=_pairs(request.headers),
            inside=callable(getattr(transport, "app", None)),
        )

    def change(self, request: Any, target: str, body: bytes, *, same: bool) -> None:
        """Make a request send another body, and, unless it is the same, another target."""
        request._content = body
        request.stream = self._in_memory(body)
        for name in ("content-encoding", "transfer-encoding"):
            request.headers.pop(name, None)
        request.headers["content-length"] = str(len(body))
        if not same:
            request.url = request.url.copy_with(raw_path=target.encode("ascii"))

    def empty(self, request: Any) -> Any:
        """The answer to dropped telemetry."""
        return self._response(200, request=request)

    def watch(self, response: Any, exchange: Exchange, *, is_async: bool) -> None:
        """Capture the body of a response as it is read."""
        headers = _pairs(response.headers)
        if response.is_stream_consumed:
            self._take_preloaded(response, exchange, headers)
            return
        exchange.responded(response.status_code, headers)
        if response.status_code == 101:
            exchange.exhausted()
            return
        wrap = self._async_stream if is_async else self._sync_stream
        response.stream = wrap(response.stream, exchange)

    def _take_preloaded(self, response: Any, exchange: Exchange, headers: list[tuple[str, str]]) -> None:
        if isinstance(response.stream, self._in_memory):
            body = b"".join(response.stream)
        else:  # only the decoded body is left
            body = response.content
            headers = [(name, value) for name, value in headers if name.lower() not in ("content-encoding", "content-length")]
        exchange.responded(response.status_code, headers)
        exchange.chunk(body)
        exchange.exhausted()

    # ---- from the record ----

    def response(self, given: Reply, exchange: Exchange, request: Any, *, is_async: bool) -> Any:
        """A response of this library that gives the recorded chunks one by one."""
        headers = [(name.encode("latin-1", "replace"), value.encode("latin-1", "replace")) for name, value in given.headers]
        if is_async:
            stream = self._async_stream(RecordedAsync(given, exchange), exchange)
        else:
            stream = self._sync_stream(RecordedSync(given, exchange), exchange)
        exchange.responded(given.status, given.headers)
        return self._response(given.status, headers=headers, stream=stream, request=request, extensions=dict(_EXTENSIONS))

    def recorded_error(self, text: str) -> BaseException:
        """The recorded exception; the client attaches the request to it, as it does to those of its own transports."""
        error = codec.decode_exception(text)
        return error if isinstance(error, self._request_error) else self._own_error(error) or error

    def _own_error(self, error: BaseException) -> BaseException | None:
        """The class of the same name here, for a run that was recorded with the other of the two libraries."""
        kind = type(error)
        recorded = error.type_name if isinstance(error, codec.RecordedError) else f"{kind.__module__}.{kind.__qualname__}"
        module, _, name = recorded.replace(":", ".").rpartition(".")
        own = getattr(self._module, name, None) if module.partition(".")[0] in _FAMILY else None
        return own(str(error)) if isinstance(own, type) and issubclass(own, self._request_error) else None


def _pairs(headers: Any) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers.raw]


class ObservedTransport:
    """Stands before the transport of one request. Everything that is not a request goes to that transport."""

    def __init__(self, library: Library, inner: Any, scope: Scope) -> None:
        self._library = library
        self._inner = inner
        self._scope = scope

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def handle_request(self, request: Any) -> Any:
        """Send a request, or answer it from the record."""
        sent = _Sent(self._library, self._scope, request, self._inner, is_async=False)
        return send(sent, request.read, lambda: self._inner.handle_request(request))

    async def handle_async_request(self, request: Any) -> Any:
        """Send a request, or answer it from the record."""
        sent = _Sent(self._library, self._scope, request, self._inner, is_async=True)
        return await asend(sent, request.aread, lambda: self._inner.handle_async_request(request))


class _Sent:
    """A :class:`~spanreplay.instrumentation.http_sending.Sender`."""

    def __init__(self, library: Library, scope: Scope, request: Any, transport: Any, *, is_async: bool) -> None:
        self.scope = scope
        self.head = library.head(request, transport)
        self._library = library
        self._request = request
        self._is_async = is_async

    def ran_out(self, error: BaseException) -> bool:
        return isinstance(error, self._library.timeouts)

    def drop(self) -> Any:
        return self._library.empty(self._request)

    def watch(self, response: Any, exchange: Exchange) -> None:
        self._library.watch(response, exchange, is_async=self._is_async)

    def respond(self, given: Reply, exchange: Exchange) -> Any:
        return self._library.response(given, exchange, self._request, is_async=self._is_async)

    def decode_error(self, text: str) -> BaseException:
        return self._library.recorded_error(text)

    def time_out(self) -> BaseException:
        return self._library.read_timeout("The read operation timed out", request=self._request)

    def change(self, target: str, body: bytes) -> None:
        self._library.change(self._request, target, body, same=target == self.head.target)
