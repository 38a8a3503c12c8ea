"""``websockets``, as OpenAI's realtime API, openai-agents and Gemini Live use it: named while recording, refused in a replay."""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.unreplayable import WEBSOCKET, announce, named


def _patch_class(name: str) -> Callable[[ModuleType, Patches], None]:
    def patch(module: ModuleType, patches: Patches) -> None:
        owner = getattr(module, name)
        expect(owner, "__init__", ["self", "uri"])
        patches.replace(owner, "__init__", _named_method)

    return patch


def _patch_function(module: ModuleType, patches: Patches) -> None:
    expect(module, "connect", ["uri"])
    patches.rebind(module, "connect", _named_function, everywhere=True)


_hooks: Final = Hooks(
    "websockets",
    {
        "websockets.asyncio.client": _patch_class("connect"),
        "websockets.legacy.client": _patch_class("Connect"),
        "websockets.sync.client": _patch_function,
    },
)
NAME: Final = _hooks.name
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


def _named_method(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def __init__(self: Any, uri: str, *args: Any, **more: Any) -> None:  # noqa: N807 — it takes that one's place
        announce(WEBSOCKET, str(uri))
        original(self, uri, *args, **more)

    return __init__


def _named_function(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def connect(uri: str, *args: Any, **more: Any) -> Any:
        announce(WEBSOCKET, str(uri))
        with named():
            return original(uri, *args, **more)

    return connect
