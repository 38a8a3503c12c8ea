"""The seam of httpx and of httpx2: one design, two import names, and sometimes (``httpx2.alias_httpx()``) one module under both.

Both libraries choose the transport of every single request in ``_transport_for_url(url)`` of ``Client`` and ``AsyncClient`` (httpx 0.28,
httpx2 2.16). Replacing these two methods on the classes reaches clients made earlier, mounts, proxies and custom transports, which patching
``HTTPTransport`` does not. Nothing here imports either library.
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
from spanreplay.instrumentation.httpx_shell import Library
from spanreplay.instrumentation.patching import Removals

_log = logging.getLogger("spanreplay")

_METHOD: Final = "_transport_for_url"
_PARAMETERS: Final = ["self", "url"]
_MARK: Final = "__spanreplay_users__"
"""On a replaced method: the import names under which it is installed."""


class Seam:
    """The seam of one import name.

    Args:
        name: ``httpx`` or ``httpx2``.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._wanted = False
        self._hooked = False
        self._status = "off"

    @property
    def status(self) -> str:
        """``off``, ``waiting`` (not imported yet), ``active``, or why this version of the library cannot be observed."""
        return self._status

    def install(self) -> None:
        """Observe the library: now if it is imported, else as soon as it is. Idempotent; raises nothing."""
        if self._wanted:
            return
        self._wanted = True
        module = sys.modules.get(self.name)
        if module is not None and hasattr(module, "Client"):
            self._patch(module)
            return
        self._status = "waiting"
        if not self._hooked:
            self._hooked = True
            register_post_import_hook(self._patch, self.name)

    def uninstall(self) -> None:
        """Leave the library as it was, unless somebody has patched on top since. Idempotent."""
        Removals.times += 1
        self._wanted = False
        self._status = "off"
        module = sys.modules.get(self.name)
        for owner in _client_classes(module):
            method = vars(owner).get(_METHOD)
            users: set[str] | None = getattr(method, _MARK, None)
            if method is not None and users is not None:
                users.discard(self.name)
                if not users:
                    setattr(owner, _METHOD, method.__wrapped__)

    def _patch(self, module: ModuleType) -> None:
        if not self._wanted:
            return
        owners = _client_classes(module)
        problem = _problem(owners)
        if problem:
            self._status = f"unsupported: {problem}"
            _log.warning("spanreplay cannot observe %s %s: %s", self.name, getattr(module, "__version__", "?"), problem)
            return
        library = Library(module)
        for owner in owners:
            original = vars(owner)[_METHOD]
            users: set[str] | None = getattr(original, _MARK, None)
            if users is None:
                setattr(owner, _METHOD, _observed(original, library, {self.name}))
            else:
                users.add(self.name)
        self._status = "active"


def _client_classes(module: ModuleType | None) -> list[Any]:
    return [owner for name in ("Client", "AsyncClient") if (owner := getattr(module, name, None)) is not None]


def _problem(owners: list[Any]) -> str:
    """Why the seam is not the one known here; empty when it is. httpx 1.0 pre-releases are a different library under the same name."""
    if len(owners) != 2:
        return "wanted the classes Client and AsyncClient, found " + (", ".join(owner.__name__ for owner in owners) or "neither")
    for owner in owners:
        method = vars(owner).get(_METHOD)
        if not callable(method):
            return f"wanted a method {owner.__name__}.{_METHOD}, found none"
        found = list(inspect.signature(method).parameters)
        if found != _PARAMETERS:
            return f"wanted {owner.__name__}.{_METHOD}({', '.join(_PARAMETERS)}), found the parameters ({', '.join(found)})"
    return ""


def _observed(original: Callable[[Any, Any], Any], library: Library, users: set[str]) -> Callable[[Any, Any], Any]:
    @functools.wraps(original)
    def _transport_for_url(self: Any, url: Any) -> Any:
        transport = original(self, url)
        scope = here()
        return transport if scope is None else library.observed(transport, scope)

    setattr(_transport_for_url, _MARK, users)
    return _transport_for_url
