"""Calls that cannot be recorded: WebSockets, gRPC and libcurl. Named while recording, refused in a replay, never silently live in one.

A WebSocket or a stream of gRPC is a long exchange in both directions, not one request with one response; libcurl does it all in C. The run
says that there was one, so that nobody takes its record for whole; inside a tool it belongs to the tool, and is answered with it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from opentelemetry import context as otel_context

from spanreplay.boundary import boundary
from spanreplay.boundary.boundary import here
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope
from spanreplay.content import codec
from spanreplay.instrumentation import http_telemetry
from spanreplay.instrumentation.shims import untaped

WEBSOCKET: Final = "WebSocket opened"
GRPC: Final = "gRPC call made"
CURL: Final = "libcurl request made"

_QUIET: Final = "suppress_http_instrumentation"


def announce(what: str, target: str) -> Scope | None:
    """Say, before it happens, that something is done that cannot be recorded.

    Args:
        what: :data:`WEBSOCKET`, :data:`GRPC` or :data:`CURL`.
        target: URL, or address and method.

    Returns:
        Where it is done, if a recording named it; ``None`` if nobody looks, or it is telemetry.

    Raises:
        ControlSignal: a replay refuses it, and has entered that.
    """
    scope = here()
    if scope is None:
        return None
    clean = scope.session.redactor.url(target)[0] if "://" in target else target
    if scope.session.mode != "replay":
        untaped.note(what, clean)
        return scope
    if http_telemetry.is_suppressed():
        return None
    step = boundary.begin(scope, Call(kind="io", name=f"{what} {clean}", input=codec.encode({"what": what, "target": clean})))
    if step is not None and step.ask() is not None:
        step.end("unknown")
    return None


@contextmanager
def named() -> Iterator[None]:
    """What connects inside has been announced: its sockets are not named a second time."""
    token = otel_context.attach(otel_context.set_value(_QUIET, True))
    try:
        yield
    finally:
        otel_context.detach(token)
