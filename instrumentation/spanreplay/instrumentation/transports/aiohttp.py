"""HTTP through ``aiohttp`` (3.12.4 or later): every request of its client sessions, each redirect and retry by itself.

The seam is a client middleware of our own, the innermost of each request: it is called with what goes out and gives what comes in. It sees
no bytes, so ``ResponseHandler.data_received`` is looked at too, and ``StreamReader._wait`` where a recorded body is read.
"""

import functools
import sys
from collections.abc import Callable
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import here
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation.aiohttp_shell import ARRIVING, FEEDER, Sent
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.http_sending import asend
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.unreplayable import WEBSOCKET, announce, named

_upgrading: Final[ContextVar[bool]] = ContextVar("spanreplay.aiohttp.upgrading", default=False)
"""The request made in this context opens a WebSocket, and has been named."""

_TEE: Final = "_spanreplay_arriving"


def _patch_client(module: ModuleType, patches: Patches) -> None:
    expect(module.ClientSession, "_request", ["self", "method", "str_or_url", "auto_decompress", "middlewares"])
    expect(module.payload.Payload, "as_bytes", ["self"])
    expect(module.ClientSession, "_ws_connect", ["self", "url"])
    patches.replace(module.ClientSession, "_request", _observed)
    patches.replace(module.ClientSession, "_ws_connect", _named)


def _patch_protocol(module: ModuleType, patches: Patches) -> None:
    handler = module.ResponseHandler
    expect(handler, "set_response_params", ["self", "timer", "skip_payload", "read_until_eof", "auto_decompress", "read_bufsize"])
    expect(handler, "data_received", ["self", "data"])
    patches.replace(handler, "set_response_params", _looked_at)
    patches.replace(handler, "data_received", _arriving)
    for name in ("close", "abort"):
        if hasattr(handler, name):
            patches.replace(handler, name, _left)


def _patch_streams(module: ModuleType, patches: Patches) -> None:
    expect(module.StreamReader, "_wait", ["self", "func_name"])
    patches.replace(module.StreamReader, "_wait", _fed)


_hooks: Final = Hooks(
    "aiohttp",
    {"aiohttp.client": _patch_client, "aiohttp.client_proto": _patch_protocol, "aiohttp.streams": _patch_streams},
)
NAME: Final = _hooks.name
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


def _observed(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def _request(self: Any, method: str, str_or_url: Any, **more: Any) -> Any:
        scope = here()
        if scope is None or _upgrading.get() or _hooks.status() != "active":
            return await original(self, method, str_or_url, **more)
        given = more.get("middlewares")
        wanted = more.get("auto_decompress")
        decompresses = getattr(self, "_auto_decompress", True) if wanted is None else wanted
        ours = _middleware(scope, decompresses=bool(decompresses))
        more["middlewares"] = (*(self._middlewares if given is None else given), ours)
        return await original(self, method, str_or_url, **more)

    return _request


def _named(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def _ws_connect(self: Any, url: Any, *args: Any, **more: Any) -> Any:
        announce(WEBSOCKET, str(url))
        token = _upgrading.set(True)
        try:
            with named():
                return await original(self, url, *args, **more)
        finally:
            _upgrading.reset(token)

    return _ws_connect


def _middleware(scope: Scope, *, decompresses: bool) -> Callable[..., Any]:
    async def observe(request: Any, handler: Callable[[Any], Any]) -> Any:
        sent = Sent(sys.modules["aiohttp"], scope, request, decompresses=decompresses)
        return await asend(sent, sent.read, lambda: sent.transmit(handler))

    return observe


def _looked_at(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def set_response_params(self: Any, **more: Any) -> Any:
        setattr(self, _TEE, ARRIVING.get())
        return original(self, **more)

    return set_response_params


def _arriving(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def data_received(self: Any, data: bytes) -> Any:
        arriving = getattr(self, _TEE, None)
        if arriving is not None:
            arriving.feed(data)
        return original(self, data)

    return data_received


def _left(original: Callable[..., Any]) -> Callable[..., Any]:
    """Also where a session is closed under a response that nobody has closed."""

    @functools.wraps(original)
    def close(self: Any) -> Any:
        made = original(self)
        arriving = getattr(self, _TEE, None)
        if arriving is not None:
            arriving.left()
        return made

    return close


def _fed(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def _wait(self: Any, func_name: str) -> Any:
        feeder = getattr(self._protocol, FEEDER, None)
        return await (original(self, func_name) if feeder is None else feeder.next())

    return _wait
