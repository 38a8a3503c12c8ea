"""The model proxy as an ASGI application: what comes in goes out through httpx, where it is recorded, or answered from the record.

Bytes are passed on as they are: compressed bodies stay compressed, streams come chunk by chunk, a client that leaves ends its stream.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from contextlib import nullcontext
from typing import Any, Final, TypeAlias

import httpx

from spanreplay.boundary.errors import ControlSignal
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.session import entered
from spanreplay.replay.proxy.told import Told
from spanreplay.replay.proxy.upstreams import Upstream

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

STOP: Final = "/.spanreplay/stop"
MAX_REQUEST: Final = 256 * 2**20
"""Bytes of a request body that are taken in."""

_HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""Headers of one connection, not of the message (RFC 9110, section 7.6.1)."""
_OURS: Final = frozenset({b"host", b"content-length", b"expect"})


class ModelProxy:
    """The application.

    Args:
        upstreams: where requests go.
        token: opens :data:`STOP`.
        stop: called there.
    """

    def __init__(self, upstreams: Iterable[Upstream], *, token: str, stop: Callable[[], None]) -> None:
        self._upstreams = {upstream.name: upstream for upstream in upstreams}
        self._token = token
        self._stop = stop
        self._client = httpx.AsyncClient(timeout=None, follow_redirects=False, limits=httpx.Limits(max_connections=None))  # noqa: S113
        self.scope: Scope | None = None
        """From where its requests are made: of its own order, whichever connection and task they come in."""
        self._told = Told()

    async def close(self) -> None:
        """Close the client."""
        await self._client.aclose()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers: list[tuple[bytes, bytes]] = list(scope["headers"])
        path = scope.get("raw_path") or scope["path"].encode()
        if path.decode("latin-1") == STOP and dict(headers).get(b"authorization") == f"Bearer {self._token}".encode():
            await _say(send, 200, {"stopped": True})
            self._stop()
            return
        if not _is_local(headers, scope.get("server")):
            await _say(send, 403, _error("this proxy answers to its own address only", "wrong_host"))
            return
        target = self._target(path.decode("latin-1"), scope.get("query_string", b"").decode("latin-1"))
        if target is None:
            known = ", ".join(f"/{name}" for name in self._upstreams)
            await _say(send, 404, _error(f"no model API is known at {path.decode('latin-1')}; there are {known}", "unknown_upstream"))
            return
        body = await _body(receive)
        if body is None:
            await _say(send, 413, _error(f"the request has more than {MAX_REQUEST} bytes", "too_large"))
            return
        with nullcontext() if self.scope is None else entered(self.scope):
            await self._pass_on(scope["method"], target, headers, body, receive, send)

    def _target(self, path: str, query: str) -> str | None:
        name, slash, rest = path.lstrip("/").partition("/")
        upstream = self._upstreams.get(name) if name else None
        if upstream is None:
            upstream, slash, rest = self._upstreams.get(""), "/", path.lstrip("/")
        return None if upstream is None else f"{upstream.url}{slash}{rest}{f'?{query}' if query else ''}"

    async def _pass_on(
        self, method: str, target: str, headers: list[tuple[bytes, bytes]], body: bytes, receive: Receive, send: Send
    ) -> None:
        given = [(name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP | _OURS]
        if not any(name.lower() == b"accept-encoding" for name, _ in given):
            given.append((b"accept-encoding", b"identity"))
        request = httpx.Request(method, target, headers=given, content=body)
        if self.scope is not None and not await self._has_told(self.scope, request, body, send):
            return
        gone = asyncio.ensure_future(_gone(receive))
        try:
            response = await _unless(gone, self._client.send(request, stream=True))
            if response is not None:
                await self._answer(response, gone, send)
        except ControlSignal as stop:
            await _say(send, 400, _error(str(stop), "replay_stopped"))
        except httpx.HTTPError as error:
            await _say(send, 502, _error(f"{type(error).__name__}: {error}", "upstream_failed"))
        finally:
            gone.cancel()

    async def _has_told(self, scope: Scope, request: httpx.Request, body: bytes, send: Send) -> bool:
        """Keep the tool calls of which the request tells; ``False`` where a replay stops there."""
        try:
            self._told.steps(scope, request.method, request.url.raw_path.decode("ascii"), dict(request.headers), body)
        except ControlSignal as stop:
            await _say(send, 400, _error(str(stop), "replay_stopped"))
            return False
        except Exception:
            if scope.session.mode == "replay":
                raise
            scope.session.failed("the tool calls of which a request tells")
        return True

    async def _answer(self, response: httpx.Response, gone: "asyncio.Future[None]", send: Send) -> None:
        kept = [(name, value) for name, value in response.headers.raw if name.lower() not in _HOP_BY_HOP]
        await send({"type": "http.response.start", "status": response.status_code, "headers": kept})
        chunks: AsyncIterator[bytes] = response.aiter_raw()
        try:
            while (chunk := await _unless(gone, anext(chunks, None))) is not None:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except (ControlSignal, httpx.HTTPError):
            # The head is out: the client sees that the body ends before its time.
            raise ConnectionAbortedError("the response ended before its end") from None
        finally:
            await response.aclose()
        if not gone.done():
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _unless(gone: "asyncio.Future[None]", wanted: Awaitable[Any]) -> Any:
    """What is awaited; ``None``, and it is cancelled, where the client goes first."""
    task = asyncio.ensure_future(wanted)
    await asyncio.wait({gone, task}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        return task.result()
    task.cancel()
    await asyncio.wait({task})
    return None


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _body(receive: Receive) -> bytes | None:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b""
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_REQUEST:
            return None
        if not message.get("more_body"):
            return b"".join(parts)


def _is_local(headers: list[tuple[bytes, bytes]], server: tuple[str, int] | None) -> bool:
    """A page in a browser that has another name for this address may not use it (DNS rebinding)."""
    host = dict(headers).get(b"host", b"").decode("latin-1").rpartition(":")[0].strip("[]").lower()
    return host in ("127.0.0.1", "localhost", "::1") or (server is not None and host == server[0])


def _error(message: str, kind: str) -> dict[str, object]:
    """In the shape in which the SDKs of model APIs read errors."""
    return {"error": {"message": message, "type": f"spanreplay_{kind}"}}


async def _say(send: Send, status: int, body: object) -> None:
    data = json.dumps(body).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})
