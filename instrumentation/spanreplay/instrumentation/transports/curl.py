"""``curl_cffi`` and ``pycurl``: requests of libcurl are named while recording, refused in a replay.

libcurl connects in C, past every seam that could record it and every audit event: here is the only place where it is seen. ``pycurl.Curl``
is a class of C, so that a subclass takes its place in the module.
"""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.unreplayable import CURL, announce

_URL: Final = 10002
"""``CURLOPT_URL``, https://curl.se/libcurl/c/CURLOPT_URL.html."""
_AT: Final = "_spanreplay_url"


def _patch_cffi(module: ModuleType, patches: Patches) -> None:
    expect(module.Curl, "setopt", ["self", "option", "value"])
    expect(module.Curl, "perform", ["self"])
    patches.replace(module.Curl, "setopt", _remembering)
    patches.replace(module.Curl, "perform", _named)


def _patch_aio(module: ModuleType, patches: Patches) -> None:
    expect(module.AsyncCurl, "add_handle", ["self", "curl"])
    patches.replace(module.AsyncCurl, "add_handle", _named_handle)


def _patch_pycurl(module: ModuleType, patches: Patches) -> None:
    patches.rebind(module, "Curl", _named_class)
    patches.rebind(module, "CurlMulti", _named_multi)


_hooks: Final = Hooks("curl", {"curl_cffi.curl": _patch_cffi, "curl_cffi.aio": _patch_aio, "pycurl": _patch_pycurl})
NAME: Final = _hooks.name
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


def _announce(handle: Any) -> None:
    announce(CURL, str(getattr(handle, _AT, "libcurl")))


def _remember(handle: Any, option: Any, value: Any) -> None:
    if option == _URL:
        setattr(handle, _AT, value.decode("utf-8", "replace") if isinstance(value, bytes) else value)


def _remembering(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def setopt(self: Any, option: Any, value: Any, *args: Any, **more: Any) -> Any:
        _remember(self, option, value)
        return original(self, option, value, *args, **more)

    return setopt


def _named(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def perform(self: Any, *args: Any, **more: Any) -> Any:
        _announce(self)
        return original(self, *args, **more)

    return perform


def _named_handle(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def add_handle(self: Any, curl: Any, *args: Any, **more: Any) -> Any:
        _announce(curl)
        return original(self, curl, *args, **more)

    return add_handle


def _named_class(original: type[Any]) -> type[Any]:
    members: dict[str, Any] = {name: _named(getattr(original, name)) for name in ("perform", "perform_rb", "perform_rs")}
    return type("Curl", (original,), {**members, "setopt": _remembering(original.setopt), "__module__": original.__module__})


def _named_multi(original: type[Any]) -> type[Any]:
    added = _named_handle(original.add_handle)
    return type("CurlMulti", (original,), {"add_handle": added, "__module__": original.__module__})
