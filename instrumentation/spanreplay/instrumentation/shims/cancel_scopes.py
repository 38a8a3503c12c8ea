"""The deadlines of anyio's and trio's cancel scopes, entered and left as :mod:`.deadlines` tells."""

import functools
import math
import sys
from collections.abc import Callable
from typing import Any, Final

import wrapt

from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims import deadlines

_ANYIO: Final = "anyio._backends._asyncio"
_TRIO: Final = "trio._core._run"
_patches = Patches()
_hooked: Final[set[str]] = set()


# ---- anyio on asyncio -------------------------------------------------------------------------------------------


def _entering_scope(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def enter(self: Any) -> Any:
        limited = self.deadline != math.inf  # as that of a group of tasks is
        deadlines.begin(self, _expire, limited=limited)
        return original(self)

    return enter


def _expire(one: Any) -> None:
    one.deadline = deadlines.loop_time()


def _cancelling(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def cancel(self: Any, *args: Any, **kwargs: Any) -> Any:
        deadline = deadlines.entered.get(self)
        if deadline is not None and deadlines.loop_time() >= self.deadline:
            deadline.expired()
        return original(self, *args, **kwargs)

    return cancel


def _anyio(module: Any) -> None:
    from spanreplay.instrumentation import shims

    if shims._installed and hasattr(module, "CancelScope"):
        _patches.replace(module.CancelScope, "__enter__", _entering_scope)
        _patches.replace(module.CancelScope, "__exit__", deadlines.leaving)
        _patches.replace(module.CancelScope, "cancel", _cancelling)


# ---- trio -------------------------------------------------------------------------------------------------------


def _entering_in_trio(original: Callable[..., Any], now: Callable[[], float]) -> Callable[..., Any]:
    @functools.wraps(original)
    def enter(self: Any) -> Any:
        if not self._has_been_entered:
            limited = min(self._deadline, getattr(self, "_relative_deadline", math.inf)) < math.inf
            deadlines.begin(self, lambda one: setattr(one, "deadline", now()), limited=limited)
        return original(self)

    return enter


def _cancelling_in_trio(original: Callable[..., Any], now: Callable[[], float]) -> Callable[..., Any]:
    @functools.wraps(original)
    def cancel(self: Any, *args: Any, **kwargs: Any) -> Any:
        deadline = deadlines.entered.get(self)
        if deadline is not None and now() >= self._deadline:
            deadline.expired()
        return original(self, *args, **kwargs)

    return cancel


def _trio(module: Any) -> None:
    from spanreplay.instrumentation import shims

    kind, now = getattr(module, "CancelScope", None), getattr(module, "current_time", None)
    known = getattr(kind, "__slots__", ())
    if shims._installed and now is not None and {"_deadline", "_has_been_entered", "__weakref__"} <= set(known):
        _patches.replace(kind, "__enter__", functools.partial(_entering_in_trio, now=now))
        _patches.replace(kind, "__exit__", deadlines.leaving)
        _patches.replace(kind, "_cancel" if hasattr(kind, "_cancel") else "cancel", functools.partial(_cancelling_in_trio, now=now))


def install() -> None:
    """Patch anyio and trio when they are there or come."""
    for name, patch in ((_ANYIO, _anyio), (_TRIO, _trio)):
        if name in sys.modules:
            patch(sys.modules[name])
        elif name not in _hooked:
            wrapt.register_post_import_hook(patch, name)
            _hooked.add(name)


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
