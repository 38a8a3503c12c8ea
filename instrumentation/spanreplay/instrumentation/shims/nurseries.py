"""Where a task of trio is started is part of the causal path of what it calls: ``start_soon``, ``start``, and all that anyio starts there.

``Runner.spawn_impl`` is what they all pass. It copies the context of whoever starts the task, so the scope is set around the call.

Trio decides by chance which of the tasks that can go on does so first, as no program may rely on it. Here it is the one that could first,
and of those that are cancelled together the one that was started first; a recorded program and its replay go the same way. In which order
its threads report is kept, see :mod:`spanreplay.instrumentation.shims.callbacks`.
"""

import functools
import random
import sys
from collections.abc import Callable
from typing import Any

import wrapt

from spanreplay.boundary import scope as scopes
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.ordered_sets import keeping_order
from spanreplay.instrumentation.shims.threads import label_of

_MODULE = "trio._core._run"
_patches = Patches()
_hooked = False


class _FirstComeFirst(random.Random):
    """What trio draws from. It takes tasks from the end, and turns them around where it draws less than a half."""

    def random(self) -> float:
        """Nothing."""
        return 0.0


def _spawning(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def spawn_impl(
        self: Any, async_fn: Any, args: Any, nursery: Any, name: Any, *, system_task: bool = False, context: Any = None, **more: Any
    ) -> Any:
        known = {"system_task": system_task, "context": context, **more}
        scope = scopes.current_scope() if scopes.process.active and not system_task and nursery is not None else None
        if scope is None or context is not None:  # a context of the caller's is not ours to write to
            return original(self, async_fn, args, nursery, name, **known)
        token = scopes.enter(scope.fork(label_of(async_fn)))
        try:
            return original(self, async_fn, args, nursery, name, **known)
        finally:
            scopes.leave(token)

    return spawn_impl


def install() -> None:
    """Patch trio when it is there or comes."""
    global _hooked  # noqa: PLW0603 — a post-import hook cannot be taken back
    if _MODULE in sys.modules:
        _trio(sys.modules[_MODULE])
    elif not _hooked:
        wrapt.register_post_import_hook(_trio, _MODULE)
        _hooked = True


def _trio(module: Any) -> None:
    from spanreplay.instrumentation import shims

    if shims._installed and hasattr(module, "Runner"):
        _patches.replace(module.Runner, "spawn_impl", _spawning)
        if type(getattr(module, "_r", None)) is random.Random:
            _patches.replace(module, "_r", lambda _: _FirstComeFirst())
        if hasattr(module, "CancelStatus"):
            _patches.replace(module.CancelStatus, "__init__", functools.partial(keeping_order, names=("_tasks", "_children")))


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
