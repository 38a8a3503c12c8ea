"""Where a task is started is part of the causal path of what it calls.

``BaseEventLoop.create_task`` is what ``asyncio.create_task``, ``ensure_future``, ``gather``, ``TaskGroup``, ``wait_for`` and anyio
pass. The scope is set around the call and not given as ``context=``, which task factories of users need not take.
"""

import asyncio
import functools
import sys
from collections.abc import Callable
from typing import Any, Final

import wrapt

from spanreplay.boundary import scope as scopes
from spanreplay.instrumentation.shims.jobs import named
from spanreplay.instrumentation.shims.patching import Patches

_patches = Patches()
_hooked: Final[set[str]] = set()
"""Modules with a post-import hook, which cannot be taken back."""


def _forking(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def create_task(self: Any, coro: Any, **kwargs: Any) -> Any:
        if not scopes.process.active:
            return original(self, coro, **kwargs)
        scope = scopes.current_scope()
        if scope is None:
            return original(self, coro, **kwargs)
        given = kwargs.get("context") is not None  # the caller's own context: not ours to write to
        if given and not self.is_running():  # the main task of asyncio.run
            return original(self, coro, **kwargs)
        child = scope.fork(getattr(coro, "__qualname__", type(coro).__name__))
        if given:
            task = original(self, coro, **kwargs)
            scopes.of_task[task] = child
            return named(task, child.path)
        token = scopes.enter(child)
        try:
            return named(original(self, coro, **kwargs), child.path)
        finally:
            scopes.leave(token)

    return create_task


def install() -> None:
    """Patch asyncio, and uvloop and anyio when they are there or come."""
    _patches.replace(asyncio.BaseEventLoop, "create_task", _forking)
    for name, patch in (("uvloop", _uvloop), ("anyio._backends._asyncio", _anyio)):
        if name in sys.modules:
            patch(sys.modules[name])
        elif name not in _hooked:
            wrapt.register_post_import_hook(patch, name)
            _hooked.add(name)


def _spawning(original: Callable[..., Any]) -> Callable[..., Any]:
    """Anyio makes tasks past the loop where the loop's are eager (Python 3.12)."""

    @functools.wraps(original)
    def _spawn(self: Any, coro: Any, *args: Any, **kwargs: Any) -> Any:
        scope = scopes.current_scope() if scopes.process.active and _is_eager() else None
        if scope is None:
            return original(self, coro, *args, **kwargs)
        token = scopes.enter(scope.fork(getattr(coro, "__qualname__", type(coro).__name__)))
        try:
            return original(self, coro, *args, **kwargs)
        finally:
            scopes.leave(token)

    return _spawn


def _is_eager() -> bool:
    eager = getattr(asyncio, "eager_task_factory", None)
    factory = asyncio.get_running_loop().get_task_factory()
    return eager is not None and getattr(factory, "__code__", None) is eager.__code__


def _anyio(module: Any) -> None:
    from spanreplay.instrumentation import shims

    if shims._installed and hasattr(module.TaskGroup, "_spawn"):
        _patches.replace(module.TaskGroup, "_spawn", _spawning)


def _uvloop(module: Any) -> None:
    from spanreplay.instrumentation import shims

    if shims._installed:
        _patches.replace(module.Loop, "create_task", _forking)


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
