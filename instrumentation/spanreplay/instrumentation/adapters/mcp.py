"""MCP clients, the Python SDK's and what stands on it (fastmcp and most frameworks): every request is a step, ``tools/call`` a tool call.

Version 2 of the SDK sends everything through ``JSONRPCDispatcher.send_raw_request`` or, in memory, ``DirectDispatcher.send_raw_request``
(``ClientSession.send_request`` misses the probe that a ``Client`` begins with); version 1 through ``BaseSession.send_request``. The
transports are connections, see :mod:`spanreplay.instrumentation.mcp_connections`. Seen in mcp 2.3.0 and 1.30.0.
"""

import functools
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from types import ModuleType
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakValueDictionary

from spanreplay.boundary import boundary
from spanreplay.boundary import scope as scopes
from spanreplay.boundary.boundary import here
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation import mcp_connections, mcp_requests
from spanreplay.instrumentation.hooks import Hooks, UnsupportedError, expect
from spanreplay.instrumentation.mcp_connections import Connection, Nowhere, Place, by_stream, within
from spanreplay.instrumentation.mcp_requests import FROM_SERVER, Server
from spanreplay.instrumentation.mcp_told import Message, heard
from spanreplay.instrumentation.patching import Patches

NAME: Final = "mcp"

_servers: Final[WeakKeyDictionary[Any, Server]] = WeakKeyDictionary()
"""By the dispatcher, or in version 1 the session, that talks to them."""
_sessions: Final[WeakValueDictionary[int, Any]] = WeakValueDictionary()
"""The session above each dispatcher, by that one's identity."""


def _server(owner: Any) -> Server:
    return _servers.setdefault(owner, Server())


# ---- requests ---------------------------------------------------------------------------------------------------


def _patch_jsonrpc(module: ModuleType, patches: Patches) -> None:
    dispatcher = module.JSONRPCDispatcher
    expect(dispatcher, "send_raw_request", ["self", "method", "params", "opts"])
    expect(dispatcher, "notify", ["self", "method", "params", "opts"])
    patches.replace(dispatcher, "send_raw_request", _observed_raw)
    patches.replace(dispatcher, "notify", _observed_notification)


def _patch_direct(module: ModuleType, patches: Patches) -> None:
    expect(module.DirectDispatcher, "send_raw_request", ["self", "method", "params", "opts"])
    patches.replace(module.DirectDispatcher, "send_raw_request", _observed_raw)


def _observed_raw(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def send_raw_request(self: Any, method: str, params: Mapping[str, Any] | None, opts: Any = None, **options: Any) -> Any:
        scope = here()
        if scope is None or method in FROM_SERVER:
            return await original(self, method, params, opts, **options)
        server, given = _server(self), opts or {}
        on_progress = given.get("on_progress")

        async def invoke() -> Any:
            kept = opts if on_progress is None else {**given, "on_progress": heard(here(), on_progress)}
            return await original(self, method, params, kept, **options)

        async def again(message: Message) -> None:
            session = _sessions.get(id(self))
            if "progress" not in message:
                await _told_2(session, message)
            elif on_progress is not None:
                await on_progress(*message["progress"])

        return await _sent(scope, server, method, params, invoke, again)

    return send_raw_request


async def _told_2(session: Any, message: Message) -> None:
    if session is not None:
        await session._on_notify(None, message["method"], message.get("params"))


def _patch_session_1(module: ModuleType, patches: Patches) -> None:
    expect(module.BaseSession, "send_request", ["self", "request", "result_type"])
    patches.replace(module.BaseSession, "send_request", _observed_typed)


def _observed_typed(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def send_request(self: Any, request: Any, result_type: Any, *args: Any, **options: Any) -> Any:
        scope = here()
        if scope is None:
            return await original(self, request, result_type, *args, **options)
        asked = _plain(request)
        method = asked.get("method", "")
        if method in FROM_SERVER:
            return await original(self, request, result_type, *args, **options)
        live: list[Any] = []
        on_progress = options.get("progress_callback")

        async def invoke() -> Any:
            kept = {} if on_progress is None else {"progress_callback": heard(here(), on_progress)}
            with _answered_in(self):
                live.append(await original(self, request, result_type, *args, **options | kept))
            return _plain(live[0])

        async def again(message: Message) -> None:
            if "progress" not in message:
                told = self._receive_notification_type.model_validate(message)
                await self._received_notification(told)
                await self._handle_incoming(told)
            elif on_progress is not None:
                await on_progress(*message["progress"])

        raw = await _sent(scope, _server(self), method, asked.get("params"), invoke, again)
        return live[0] if live else result_type.model_validate(raw)

    return send_request


_answering: Final[dict[tuple[int, Any], Place]] = {}
"""In version 1, by channel and id of a request: the step that a server in this process is to do it in. Version 2 does so itself."""


@contextmanager
def _answered_in(session: Any) -> Iterator[None]:
    scope = here()
    step = None if scope is None else scope.step
    channel = getattr(getattr(session, "_write_stream", None), "_state", None)
    if step is None or channel is None:
        yield
        return
    key = (id(channel), getattr(session, "_request_id", None))
    _answering[key] = Place(scope=step.inner, context=step.inner_context)
    try:
        yield
    finally:
        _answering.pop(key, None)


def _patch_server_1(module: ModuleType, patches: Patches) -> None:
    if hasattr(module.Server, "_handle_message"):
        expect(module.Server, "_handle_message", ["self", "message", "session"])
        patches.replace(module.Server, "_handle_message", _observed_server_1)


def _observed_server_1(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def _handle_message(self: Any, message: Any, session: Any, *args: Any, **options: Any) -> Any:
        place = None
        if _answering:
            channel = getattr(getattr(session, "_read_stream", None), "_state", None)
            place = _answering.get((id(channel), getattr(message, "request_id", None)))
        with nullcontext() if place is None else within(place):
            return await original(self, message, session, *args, **options)

    return _handle_message


def _plain(model: Any) -> dict[str, Any]:
    made: dict[str, Any] = model.model_dump(by_alias=True, mode="json", exclude_none=True)
    return made


async def _sent(
    scope: Scope,
    server: Server,
    method: str,
    params: Mapping[str, Any] | None,
    invoke: Callable[[], Awaitable[dict[str, Any]]],
    again: Callable[[Message], Awaitable[None]],
) -> dict[str, Any]:
    call = mcp_requests.call_of(scope, server, method, params)
    recorded: list[Message] = []
    if call is not None:
        call.held = server.told(recorded.append)
    ran = False

    async def sent() -> dict[str, Any]:
        nonlocal ran
        ran = True
        if server.answered:
            raise ConnectionError(f"{method}: the connection to this MCP server was answered from the record, so nobody is there")
        return await _while_open(server, invoke)

    try:
        raw = await (sent() if call is None else boundary.acall(scope, call, sent))
    finally:
        for message in recorded:
            with suppress(Exception):  # the SDK goes on where a callback fails, too
                await again(message)
    server.answered = server.answered or not ran
    server.learn(method, raw)
    return raw


async def _while_open(server: Server, invoke: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    """Let what the server asks meanwhile know whose body this is."""
    scope = here()
    step = None if scope is None else scope.step
    if step is None:
        return await invoke()
    server.open.append(step)
    try:
        return await invoke()
    finally:
        server.open.remove(step)


# ---- what the server asks, and notifications --------------------------------------------------------------------


def _patch_client(module: ModuleType, patches: Patches) -> None:
    session = module.ClientSession
    if hasattr(session, "_on_request"):
        expect(session, "_on_request", ["self", "dctx", "method", "params"])
        expect(session, "_on_notify", ["self", "dctx", "method", "params"])
        expect(session, "__aenter__", ["self"])
        patches.replace(session, "_on_request", _observed_inbound)
        patches.replace(session, "_on_notify", _observed_told)
        patches.replace(session, "__aenter__", _opened)
    else:
        expect(session, "_received_request", ["self", "responder"])
        expect(session, "_received_notification", ["self", "notification"])
        patches.replace(session, "_received_request", _observed_inbound_1)
        patches.replace(session, "_received_notification", _observed_told_1)


def _opened(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def __aenter__(self: Any) -> Any:  # noqa: N807
        _sessions[id(self._dispatcher)] = self
        return await original(self)

    return __aenter__


def _observed_told(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def _on_notify(self: Any, dctx: Any, method: str, params: Any) -> Any:
        _hear(self._dispatcher, {"method": method, "params": params})
        return await original(self, dctx, method, params)

    return _on_notify


def _observed_told_1(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def _received_notification(self: Any, notification: Any) -> Any:
        if scopes.process.active:
            _hear(self, _plain(notification))
        return await original(self, notification)

    return _received_notification


def _hear(owner: Any, message: Message) -> None:
    server = _servers.get(owner) if scopes.process.active else None
    if server is not None and not server.answered:
        server.hear(message)


def _observed_inbound(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def _on_request(self: Any, dctx: Any, method: str, params: Any) -> Any:
        return await _asked(getattr(self, "_dispatcher", self), method, params, lambda: original(self, dctx, method, params))

    return _on_request


def _observed_inbound_1(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def _received_request(self: Any, responder: Any) -> Any:
        if here() is None:
            return await original(self, responder)
        asked = _plain(responder.request)
        return await _asked(self, asked.get("method", "request"), asked.get("params"), lambda: original(self, responder))

    return _received_request


async def _asked(owner: Any, method: str, params: Any, invoke: Callable[[], Awaitable[Any]]) -> Any:
    """A request of the server's, as a step inside the request that it is answering, else inside the connection."""
    scope = here()
    if scope is None:
        return await invoke()
    server = _server(owner)
    place = _place(owner)
    if len(server.open) == 1:
        place = Place(scope=server.open[0].inner, context=server.open[0].inner_context)
    with nullcontext() if place is None else within(place):
        now = here()
        if now is None or now.session.mode == "replay":
            return await invoke()
        return await boundary.acall(now, mcp_requests.inbound(server, method, params), invoke)


def _observed_notification(original: Callable[..., Any]) -> Callable[..., Any]:
    """The SDK sends a message in the context of who wrote it, so that its HTTP request would be taken for the agent's own."""

    @functools.wraps(original)
    async def notify(self: Any, *args: Any, **options: Any) -> Any:
        place = _place(self) if scopes.process.active else None
        if place is None:
            return await original(self, *args, **options)
        with within(place):
            return await original(self, *args, **options)

    return notify


def _place(owner: Any) -> Place | None:
    return by_stream.get(id(getattr(owner, "_write_stream", None)))


# ---- connections ------------------------------------------------------------------------------------------------


def _transport(name: str, describe: Callable[..., Any], parameters: list[str]) -> Callable[[ModuleType, Patches], None]:
    def patch(module: ModuleType, patches: Patches) -> None:
        expect(module, name, parameters)
        if not hasattr(module, "anyio"):
            raise UnsupportedError(f"wanted {module.__name__} to use anyio")
        nowhere = _nowhere(module, session_id=hasattr(module, "streamablehttp_client"))

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def connect(*args: Any, **kwargs: Any) -> Any:
                if here() is None:
                    return original(*args, **kwargs)
                return Connection(lambda: original(*args, **kwargs), lambda scope: describe(scope, args, kwargs), nowhere)

            return connect

        patches.rebind(module, name, make, everywhere=True)

    return patch


def _nowhere(module: ModuleType, *, session_id: bool) -> Nowhere:
    """Streams of which the one to read gives nothing, and the one to write leads nowhere."""

    def make() -> tuple[tuple[Any, ...], Callable[[], Any]]:
        silent, reading = module.anyio.create_memory_object_stream(0)
        writing, unread = module.anyio.create_memory_object_stream(math.inf)
        ends = (silent, reading, writing, unread)
        streams = (reading, writing, lambda: None) if session_id else (reading, writing)
        return streams, lambda: [end.close() for end in ends]

    return make


def _patch_http(module: ModuleType, patches: Patches) -> None:
    for name in ("streamable_http_client", "streamablehttp_client"):
        if hasattr(module, name):
            _transport(name, mcp_connections.address, ["url"])(module, patches)


_hooks: Final = Hooks(
    NAME,
    {
        "mcp.shared.jsonrpc_dispatcher": _patch_jsonrpc,
        "mcp.shared.direct_dispatcher": _patch_direct,
        "mcp.shared.session": _patch_session_1,
        "mcp.server.lowlevel.server": _patch_server_1,
        "mcp.client.session": _patch_client,
        "mcp.client.stdio": _transport("stdio_client", mcp_connections.process, ["server"]),
        "mcp.client.streamable_http": _patch_http,
        "mcp.client.sse": _transport("sse_client", mcp_connections.address, ["url"]),
        "mcp.client.websocket": _transport("websocket_client", mcp_connections.address, ["url"]),
    },
)
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status
