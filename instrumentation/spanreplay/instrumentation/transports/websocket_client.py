"""``websocket-client``: named while recording, refused in a replay."""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.unreplayable import WEBSOCKET, announce, named


def _patch(module: ModuleType, patches: Patches) -> None:
    expect(module.WebSocket, "connect", ["self", "url"])
    patches.replace(module.WebSocket, "connect", _named)


_hooks: Final = Hooks("websocket_client", {"websocket._core": _patch})
NAME: Final = _hooks.name
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


def _named(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def connect(self: Any, url: str, *args: Any, **more: Any) -> Any:
        announce(WEBSOCKET, str(url))
        with named():
            return original(self, url, *args, **more)

    return connect
