"""google-genai's asynchronous client: over httpx, as its synchronous one, also where aiohttp is installed.

It prefers aiohttp wherever that can be imported, as a dependency of anything (google-genai 1.75 to 3.6). Its own httpx client does the same
work, whatever version of aiohttp is there, so calls made while spanreplay is on use that one. A client that was given an aiohttp session of
the program's own keeps it while recording.
"""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import here
from spanreplay.instrumentation.hooks import Hooks, UnsupportedError, expect
from spanreplay.instrumentation.patching import Patches

_CLASS: Final = "BaseApiClient"
_METHOD: Final = "_use_aiohttp"


def _patch(module: ModuleType, patches: Patches) -> None:
    owner = getattr(module, _CLASS, None)
    if owner is None or _METHOD not in vars(owner):  # a version that knows httpx only
        return
    method = expect(owner, _METHOD, ["self"])
    if method.__code__.co_argcount != 1:
        raise UnsupportedError(f"wanted {_CLASS}.{_METHOD}(self), found {method.__code__.co_argcount} parameters")
    patches.replace(owner, _METHOD, _over_httpx)


_hooks: Final = Hooks("google_genai", {"google.genai._api_client": _patch})
NAME: Final = _hooks.name
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


def _over_httpx(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(original)
    def _use_aiohttp(self: Any) -> Any:
        scope = here()
        if scope is None or getattr(self, "_async_httpx_client", None) is None:
            return original(self)
        own = getattr(getattr(self, "_http_options", None), "aiohttp_client", None)
        return original(self) if own is not None and scope.session.mode == "record" else False

    return _use_aiohttp
