"""``grpc`` channels, sync and asyncio: calls are named while recording, refused in a replay; OTLP exports are telemetry.

gRPC connects in C, past every audit event: here is the only place where a replay can stop it. An export that a replay drops is answered
with an empty response, which is a success in OTLP.
"""

import errno
import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import here
from spanreplay.instrumentation import http_telemetry
from spanreplay.instrumentation.hooks import Hooks, UnsupportedError
from spanreplay.instrumentation.http_request import Head
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.unreplayable import GRPC, announce

_OTLP: Final = "/opentelemetry.proto.collector."
_SYNC: Final = (
    ("_UnaryUnaryMultiCallable", ("__call__", "with_call", "future")),
    ("_UnaryStreamMultiCallable", ("__call__",)),
    ("_SingleThreadedUnaryStreamMultiCallable", ("__call__",)),
    ("_StreamUnaryMultiCallable", ("__call__", "with_call", "future")),
    ("_StreamStreamMultiCallable", ("__call__",)),
)
_ASYNC: Final = tuple((f"{kind}MultiCallable", ("__call__",)) for kind in ("UnaryUnary", "UnaryStream", "StreamUnary", "StreamStream"))


def _patch(kinds: tuple[tuple[str, tuple[str, ...]], ...]) -> Callable[[ModuleType, Patches], None]:
    def patch(module: ModuleType, patches: Patches) -> None:
        for class_name, methods in kinds:
            owner = getattr(module, class_name, None)
            if owner is None:
                raise UnsupportedError(f"wanted a class {class_name} in {module.__name__}, found none")
            for name in methods:
                patches.replace(owner, name, functools.partial(_named, is_async=kinds is _ASYNC))

    return patch


_hooks: Final = Hooks("grpc", {"grpc._channel": _patch(_SYNC), "grpc.aio._channel": _patch(_ASYNC)})
NAME: Final = _hooks.name
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


def _named(original: Callable[..., Any], *, is_async: bool) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **more: Any) -> Any:
        scope = here()
        if scope is None:
            return original(self, *args, **more)
        method, target = _text(getattr(self, "_method", "")), _text(getattr(self, "_target", ""))
        if not method.startswith(_OTLP):
            announce(GRPC, f"{target}{method}")
        elif scope.session.mode == "replay":
            http_telemetry.drop(scope.session, Head(method="POST", scheme="grpc", host=target, port=None, target=method, headers=()))
            if is_async or original.__name__ != "__call__":
                raise ConnectionRefusedError(errno.ECONNREFUSED, f"telemetry is not sent during a replay ({target})")
            return self._response_deserializer(b"")
        return original(self, *args, **more)

    return call


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
