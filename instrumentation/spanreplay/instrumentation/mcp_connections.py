"""Connections to MCP servers: one step each while recorded; in a replay there is none.

A transport of the SDK is an asynchronous context manager that gives streams to read and to write. Connecting is a step of kind ``mcp``
named ``connect``: what the transport does in the background — the server process, the HTTP requests — belongs to it. In a replay the
streams lead nowhere: every request is answered before it is written, see :mod:`spanreplay.instrumentation.adapters.mcp`.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from types import TracebackType
from typing import Any, Final, TypeAlias, cast
from urllib.parse import urlsplit

from opentelemetry import context as otel_context
from opentelemetry.context import Context

from spanreplay.boundary import boundary
from spanreplay.boundary import scope as scopes
from spanreplay.boundary.body import detach
from spanreplay.boundary.call import AttributeValue, Call
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.step import Step
from spanreplay.content import codec
from spanreplay.instrumentation.commands import environment_digest
from spanreplay.semconv import attributes as names

CONNECT: Final = "connect"

Nowhere: TypeAlias = Callable[[], tuple[tuple[Any, ...], Callable[[], Any]]]
"""Makes what a connected transport gives, leading nowhere, and a function that closes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The inside of a connection: what is done in it belongs to its step, also when that has ended."""

    scope: Scope
    context: Context


by_stream: Final[dict[int, Place]] = {}
"""Of each open connection, by the identity of its writing stream: the SDK's are neither hashable nor weakly referable."""


@contextmanager
def within(place: Place) -> Iterator[None]:
    """Do what is in the block inside a connection."""
    token = scopes.enter(place.scope)
    otel = otel_context.attach(place.context)
    try:
        yield
    finally:
        scopes.leave(token)
        detach(otel)


class Connection:
    """Stands in for the context manager of a transport.

    Args:
        open: makes the transport's own; called when it is needed.
        describe: makes the step's call; called at the start.
        nowhere: what a replay gives instead of the transport's streams.
    """

    def __init__(self, open: Callable[[], Any], describe: Callable[[Scope], Call], nowhere: Nowhere) -> None:  # noqa: A002
        self._open = open
        self._describe = describe
        self._nowhere = nowhere
        self._inner: Any = None
        self._place: Place | None = None
        self._stream: int | None = None
        self._close: Callable[[], Any] | None = None

    async def __aenter__(self) -> Any:
        """Connect, or be answered from the record."""
        step = self._begin()
        if step is None:
            self._inner = self._open()
            return await self._inner.__aenter__()
        answer = step.ask()
        if answer is not None:
            await boundary.agive(step, answer)
            streams, self._close = self._nowhere()
            return streams
        self._place = Place(scope=step.inner, context=step.inner_context)
        try:
            with step.body():
                self._inner = self._open()
                streams = await self._inner.__aenter__()
        except BaseException as error:
            step.fail(error)
            raise
        step.succeed(None)
        if isinstance(streams, tuple) and len(streams) > 1:
            self._stream = id(streams[1])
            by_stream[self._stream] = self._place
        return streams

    def _begin(self) -> Step | None:
        scope = boundary.here()
        if scope is None or is_connecting(scope):
            return None
        try:
            call = self._describe(scope)
        except Exception:
            if scope.session.mode == "replay":
                raise
            scope.session.failed("a connection to an MCP server")
            return None
        return boundary.begin(scope, call)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool | None:
        """Disconnect."""
        if self._stream is not None:
            by_stream.pop(self._stream, None)
        if self._close is not None:
            self._close()
        if self._inner is None:
            return None
        if self._place is None:
            return cast("bool | None", await self._inner.__aexit__(kind, error, trace))
        with within(self._place):
            return cast("bool | None", await self._inner.__aexit__(kind, error, trace))


def is_connecting(scope: Scope) -> bool:
    """Whether a transport is opened by another one, whose step it belongs to."""
    return scope.step is not None and scope.step.call.kind == "mcp" and scope.step.call.name == CONNECT


# ---- what is connected to ---------------------------------------------------------------------------------------


def process(scope: Scope, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
    """A server that is started: its program and arguments are compared, its folder and the digest of its environment are kept."""
    server = args[0] if args else kwargs["server"]
    words = scope.session.redactor.arguments([str(server.command), *map(str, server.args)])
    executable = PurePath(words[0]).name
    attributes: dict[str, AttributeValue] = {
        names.MCP_METHOD_NAME: CONNECT,
        names.NETWORK_TRANSPORT: "pipe",
        names.PROCESS_EXECUTABLE_NAME: executable,
        names.PROCESS_COMMAND_ARGS: words,
    }
    if server.env is not None:
        attributes[names.ENVIRONMENT_DIGEST] = environment_digest({str(k): str(v) for k, v in server.env.items()})
    if server.cwd is not None:
        attributes[names.PROCESS_WORKING_DIRECTORY] = os.fspath(server.cwd)
    return _call({"transport": "stdio", "command": executable, "arguments": words[1:]}, attributes, executable)


def address(scope: Scope, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
    """A server with a URL: its path is compared, its host is kept. A replay of a test meets another port than its record."""
    url = urlsplit(scope.session.redactor.url(str(args[0] if args else kwargs["url"]))[0])
    attributes: dict[str, AttributeValue] = {names.MCP_METHOD_NAME: CONNECT, names.NETWORK_TRANSPORT: "tcp"}
    attributes[names.URL_FULL] = url.geturl()
    if url.hostname:
        attributes[names.SERVER_ADDRESS] = url.hostname
    if url.port:
        attributes[names.SERVER_PORT] = url.port
    return _call({"transport": url.scheme, "path": url.path or "/"}, attributes, url.hostname or url.path)


def _call(asked: Mapping[str, Any], attributes: Mapping[str, AttributeValue], target: str) -> Call:
    return Call(
        kind="mcp",
        name=CONNECT,
        input=codec.encode(asked),
        attributes=attributes,
        effect="unknown",
        span_name=f"{CONNECT} {target}",
        client=True,
    )
