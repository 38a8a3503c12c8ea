"""``multiprocessing.pool.ThreadPool``: every job runs under the scope of where it was handed over.

Its workers answer with ``Exception`` only: a ``BaseException`` ends the worker, and whoever waits for the job waits for ever. What stops
a replay therefore comes out of a job as :class:`StoppedInPoolError`.
"""

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import wrapt

from spanreplay.boundary import scope as scopes
from spanreplay.boundary.errors import ControlSignal
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.threads import Job, label_of

_MODULE: Final = "multiprocessing.pool"

_patches = Patches()
_hooked = False


class StoppedInPoolError(RuntimeError):
    """Stands for what stopped a job of the pool; its ``__cause__``."""


def _answering(job: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(job, assigned=())
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return job(*args, **kwargs)
        except ControlSignal as stop:
            raise StoppedInPoolError(str(stop)) from stop

    return run


class _OfItem:
    """An item of ``map`` with the scope that its job runs under."""

    __slots__ = ("item", "scope")

    def __init__(self, item: Any, scope: Scope) -> None:
        self.item = item
        self.scope = scope


def _each(function: Callable[..., Any]) -> Callable[[_OfItem], Any]:
    def run(given: _OfItem) -> Any:
        return Job(function, given.scope)(given.item)

    return _answering(run)


def _forked(items: Iterable[Any], scope: Scope, label: str) -> Iterator[_OfItem]:
    return (_OfItem(item, scope.fork(label)) for item in items)


def _applying(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def apply_async(self: Any, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        scope = scopes.current_scope() if scopes.process.active else None
        if scope is not None:
            func = _answering(Job(func, scope.fork(label_of(func))))
        return original(self, func, *args, **kwargs)

    return apply_async


def _mapping(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def mapping(self: Any, func: Callable[..., Any], iterable: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        scope = scopes.current_scope() if scopes.process.active else None
        if scope is None:
            return original(self, func, iterable, *args, **kwargs)
        items: Iterable[Any] = _forked(iterable, scope, label_of(func))
        if hasattr(iterable, "__len__"):
            items = list(items)
        mapper = args[0] if args and callable(args[0]) else None  # ``_map_async`` is given mapstar or starmapstar
        if mapper is not None and mapper.__name__ == "starmapstar":
            star: Callable[..., Any] = func
            func = lambda item: star(*item)  # noqa: E731
            args = (sys.modules[_MODULE].mapstar, *args[1:])
        return original(self, _each(func), items, *args, **kwargs)

    return mapping


def install() -> None:
    """Patch thread pools, when they are there or come."""
    global _hooked  # noqa: PLW0603 — a post-import hook cannot be taken back
    if _MODULE in sys.modules:
        _patch(sys.modules[_MODULE])
    elif not _hooked:
        wrapt.register_post_import_hook(_patch, _MODULE)
        _hooked = True


def _patch(module: Any) -> None:
    from spanreplay.instrumentation import shims

    if shims._installed:
        _patches.replace(module.ThreadPool, "apply_async", _applying)
        for name in ("_map_async", "imap", "imap_unordered"):
            _patches.replace(module.ThreadPool, name, _mapping)


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
