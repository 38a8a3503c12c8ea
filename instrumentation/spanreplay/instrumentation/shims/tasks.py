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

from spanreplay.boundary import cancelled
from spanreplay.boundary import scope as scopes
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.jobs import named
from spanreplay.instrumentation.shims.own_code import is_of_python
from spanreplay.instrumentation.shims.registered import of_callback

_patches = Patches()
_current_task: Final[Callable[[Any], Any]] = (
    asyncio.current_task if sys.version_info >= (3, 12) else vars(asyncio.tasks)["_current_tasks"].get
)
"""Of a loop: before Python 3.12 the function is written in Python, and is asked for each task that is started."""
_hooked: Final[set[str]] = set()
"""Modules with a post-import hook, which cannot be taken back."""


def _forking(original: Callable[..., Any]) -> Callable[..., Any]:
    process, current_scope, in_force = scopes.process, scopes.current_scope, scopes._scope
    current_task, running_loop = _current_task, asyncio._get_running_loop

    @functools.wraps(original)
    def create_task(self: Any, coro: Any, **kwargs: Any) -> Any:
        scope = current_scope() if process.active else None
        if scope is None:
            return original(self, coro, **kwargs)
        if current_task(self) is None and running_loop() is self:
            scope = of_callback(scope)
        if kwargs.get("context") is not None:  # the caller's own context: not ours to write to
            return _in_context(original, scope, self, coro, kwargs)
        child = scope.fork(name_of(coro))
        token = in_force.set(child)
        try:
            return _watched(original(self, coro, **kwargs), coro, child)
        finally:
            in_force.reset(token)

    return create_task


def _in_context(original: Callable[..., Any], scope: Scope, loop: Any, coro: Any, kwargs: dict[str, Any]) -> Any:
    if not loop.is_running():  # the main task of asyncio.run
        return original(loop, coro, **kwargs)
    child = scope.fork(name_of(coro))
    task = original(loop, coro, **kwargs)
    scopes.of_task[task] = child
    return _watched(task, coro, child)


def _watched(task: Any, coro: Any, scope: Scope) -> Any:
    if isinstance(task, asyncio.Future) and is_of_program(coro):
        cancelled.started(scope, task)
    return named(task, scope.path)


def is_of_program(coro: Any) -> bool:
    """Whether this is a coroutine of a function that is not of the standard library."""
    code = getattr(coro, "cr_code", None)
    return code is not None and not is_of_python(code.co_filename)


def name_of(coro: Any) -> str:
    """What the scope of a task is called that runs this."""
    try:
        return coro.__qualname__  # type: ignore[no-any-return]
    except AttributeError:
        return type(coro).__name__


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
        token = scopes.enter(scope.fork(name_of(coro)))
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
