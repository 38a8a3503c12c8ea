"""Where the program's own code registers a callback at an event loop is part of the causal path of what the callback calls.

Timers are due in whatever order their lengths say, and tasks end as they end. So a task that a callback starts is not the third one that
was started: it is the one of this timer, or of the end of that task. ``call_soon`` needs nothing: its callbacks run in the order in which
they were registered, in a copy of the context of whoever did it.

``add_done_callback`` of asyncio's tasks is written in C and cannot be replaced. So the callback is recognised when it starts something: by
the task that has ended, which its handle has.
"""

import asyncio
import asyncio.events
import functools
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final
from weakref import WeakKeyDictionary

from spanreplay.boundary import scope as scopes
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.jobs import path_of
from spanreplay.instrumentation.shims.own_code import caller, is_own
from spanreplay.instrumentation.shims.threads import label_of

_patches = Patches()
_RUN: Final[CodeType] = asyncio.events.Handle._run.__code__
_DEEPEST: Final = 50
_of_handle: Final[WeakKeyDictionary[Any, Scope]] = WeakKeyDictionary()


def _registering(original: Callable[..., Any], place: int) -> Callable[..., Any]:
    """``place``: of the callback in the arguments, from 0."""
    process, current_scope, in_force = scopes.process, scopes.current_scope, scopes._scope

    @functools.wraps(original)
    def register(self: Any, *args: Any, **kwargs: Any) -> Any:
        scope = current_scope() if process.active and len(args) > place and is_own(caller()) else None
        if scope is None or kwargs.get("context") is not None:  # the caller's own context: not ours to write to
            return original(self, *args, **kwargs)
        token = in_force.set(scope.fork(label_of(args[place])))
        try:
            return original(self, *args, **kwargs)
        finally:
            in_force.reset(token)

    return register


def of_callback(scope: Scope) -> Scope:
    """The scope of a task's end, where a callback of it runs that was registered in ``scope``; else ``scope``.

    To be asked where no task runs.
    """
    handle = _handle(sys._getframe(2))
    arguments = getattr(handle, "_args", None)
    path = path_of(arguments[0]) if arguments and len(arguments) == 1 else None
    if path is None:
        return scope
    found = _of_handle.get(handle)
    if found is None:
        name = label_of(handle._callback)
        found = _of_handle[handle] = scope.fork(f"{name} of {path}")
    return found


def _handle(frame: FrameType | None) -> Any:
    """The handle whose callback runs; ``None`` where there is none that shows itself (uvloop's do not)."""
    for _ in range(_DEEPEST):
        if frame is None:
            return None
        if frame.f_code is _RUN:
            return frame.f_locals.get("self")
        frame = frame.f_back
    return None


def install() -> None:
    """Patch asyncio."""
    for name, place in (("call_later", 1), ("call_at", 1), ("call_soon_threadsafe", 0)):
        _patches.replace(asyncio.BaseEventLoop, name, functools.partial(_registering, place=place))


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
