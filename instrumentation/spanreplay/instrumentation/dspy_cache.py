"""DSPy's cache of what models answered, in memory and on disk: it is on by default, and decides whether a model is called at all.

Each look into it is a read, whether it finds something or not. A replay is given what the record says was found, whatever its own cache
holds; it neither opens the cache on the disk nor puts anything into one.
"""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.asked import said
from spanreplay.boundary.boundary import begin, give, here
from spanreplay.boundary.call import Call
from spanreplay.content import codec
from spanreplay.instrumentation.framework import attempt
from spanreplay.instrumentation.hooks import expect
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims import untaped

READ: Final = "dspy.cache"


def patch(module: ModuleType, patches: Patches) -> None:
    """Observe the class ``Cache`` of ``dspy.clients.cache``.

    Raises:
        UnsupportedError: it is not as it is known here.
    """
    expect(module.Cache, "__init__", ["self", "enable_disk_cache", "enable_memory_cache"])
    expect(module.Cache, "cache_key", ["self", "request", "ignored_args_for_cache_key"])
    expect(module.Cache, "get", ["self", "request", "ignored_args_for_cache_key"])
    expect(module.Cache, "put", ["self", "request", "value"])
    patches.replace(module.Cache, "__init__", _closed)
    patches.replace(module.Cache, "get", _observed_get)
    patches.replace(module.Cache, "put", _observed_put)


def _replaying() -> bool:
    scope = here()
    return scope is not None and scope.session.mode == "replay"


def _closed(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def through(self: Any, enable_disk_cache: bool, *args: Any, **options: Any) -> None:
        if not _replaying():
            with untaped.unnamed():  # its databases: what is read of them is
                original(self, enable_disk_cache, *args, **options)
            return
        original(self, False, *args, **options)
        self.enable_disk_cache = enable_disk_cache

    return through


def _observed_get(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def get(self: Any, request: Any, ignored_args_for_cache_key: Any = None) -> Any:
        scope = here()
        if scope is None or not (self.enable_memory_cache or self.enable_disk_cache):
            return original(self, request, ignored_args_for_cache_key)
        made = attempt(scope, "a look into DSPy's cache", lambda: _look(self, request, ignored_args_for_cache_key))
        step = None if made is None else begin(scope, made)
        if step is None:
            return original(self, request, ignored_args_for_cache_key)
        answer = step.ask()
        if answer is not None:
            found = give(step, answer)
            if hasattr(found, "usage"):
                object.__setattr__(found, "cache_hit", True)
        else:
            try:
                with step.body(), untaped.unnamed():
                    found = original(self, request, ignored_args_for_cache_key)
            except BaseException as error:
                step.fail(error)
                raise
            step.succeed(found)
        if found is not None:
            said(step)
        return found

    return get


def _look(cache: Any, request: Any, ignored: Any) -> Call | None:
    try:
        key = cache.cache_key(request, ignored)
    except Exception:  # noqa: BLE001 — such a request is not cached, and DSPy says so itself
        return None
    asked = {name: request[name] for name in ("model", "messages") if name in request}
    return Call(kind="io", name=READ, input=codec.encode({"key": key, **asked}), effect="read")


def _observed_put(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def put(self: Any, *args: Any, **options: Any) -> Any:
        if _replaying():
            return None
        with untaped.unnamed():
            return original(self, *args, **options)

    return put
