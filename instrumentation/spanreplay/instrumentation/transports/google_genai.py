"""google-genai's asynchronous client: over httpx, as its synchronous one, also where aiohttp is installed.

It prefers aiohttp wherever that can be imported, as a dependency of anything (google-genai 1.75 to 3.6), and no seam here sees aiohttp. Its
own httpx client does the same work, so calls made while spanreplay is on use that one. A client that was given an aiohttp session of the
program's own keeps it while recording.
"""

import functools
import inspect
import logging
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from wrapt import register_post_import_hook

from spanreplay.boundary.boundary import here
from spanreplay.instrumentation.shims.patching import Patches

NAME: Final = "google_genai"

_log: Final = logging.getLogger("spanreplay")
_MODULE: Final = "google.genai._api_client"
_CLASS: Final = "BaseApiClient"
_METHOD: Final = "_use_aiohttp"
_patches: Final = Patches()
_state: Final = {"wanted": False, "hooked": False}
_told: Final = {"status": "off"}


def install() -> None:
    """Observe ``google.genai``: now if it is imported, else as soon as it is. Idempotent; raises nothing."""
    if _state["wanted"]:
        return
    _state["wanted"] = True
    module = sys.modules.get(_MODULE)
    if module is not None and hasattr(module, _CLASS):
        _patch(module)
        return
    _told["status"] = "waiting"
    if not _state["hooked"]:
        _state["hooked"] = True
        register_post_import_hook(_patch, _MODULE)


def uninstall() -> None:
    """Leave ``google.genai`` as it was. Idempotent."""
    _state["wanted"] = False
    _told["status"] = "off"
    _patches.undo()


def status() -> str:
    """``off``, ``waiting`` (not imported yet), ``active``, or why this version cannot be observed."""
    return _told["status"]


def _patch(module: ModuleType) -> None:
    if not _state["wanted"]:
        return
    owner = getattr(module, _CLASS, None)
    method = None if owner is None else vars(owner).get(_METHOD)
    if method is None:  # a version that knows httpx only
        _told["status"] = "active"
        return
    if list(inspect.signature(method).parameters) != ["self"]:
        problem = f"wanted {_CLASS}.{_METHOD}(self), found {inspect.signature(method)}"
        _told["status"] = f"unsupported: {problem}"
        _log.warning("spanreplay cannot observe asynchronous calls of google-genai: %s", problem)
        return
    _patches.replace(owner, _METHOD, _over_httpx)
    _told["status"] = "active"


def _over_httpx(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(original)
    def _use_aiohttp(self: Any) -> Any:
        scope = here()
        if scope is None or getattr(self, "_async_httpx_client", None) is None:
            return original(self)
        own = getattr(getattr(self, "_http_options", None), "aiohttp_client", None)
        return original(self) if own is not None and scope.session.mode == "record" else False

    return _use_aiohttp
