"""Where a thread is started, or a job handed to a pool, is part of the causal path of what it calls.

The scope goes into the new thread as a context variable for plain code, and as a thread-local for jobs that bring a copied
context of their own. The OpenTelemetry context and the prompt in force go along; no other context variable does: the rest belongs to
the user.
"""

import contextvars
import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry import trace

from spanreplay.boundary import scope as scopes
from spanreplay.boundary.body import detach
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.jobs import named

_patches = Patches()

_POOL_CLASSES: Final = {("anyio._backends._asyncio", "WorkerThread")}
_POOL_TARGETS: Final = {("concurrent.futures.thread", "_worker"), ("trio._core._thread_cache", "WorkerThread._work")}


class Job:
    """A callable that runs under the scope of where it was handed over."""

    __slots__ = ("_context", "_function", "_in_force", "scope")

    def __init__(self, function: Callable[..., Any], scope: Scope) -> None:
        self._function = function
        self.scope: Final = scope
        self._context = otel_context.get_current()
        self._in_force = scopes.in_force.get()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        before = scopes.enter_thread(self.scope)
        token = scopes.enter(self.scope)
        in_force = scopes.in_force.set(self._in_force)
        # A context of the job's own, put there by another instrumentor, is newer than ours.
        attached = None if trace.get_current_span().get_span_context().is_valid else otel_context.attach(self._context)
        try:
            return self._function(*args, **kwargs)
        finally:
            if attached is not None:
                detach(attached)
            scopes.in_force.reset(in_force)
            scopes.leave(token)
            scopes.enter_thread(before)


def label_of(function: Any, default: str | None = None) -> str:
    """The name of what a job or thread runs, which names its scope."""
    while True:
        wrapped = getattr(function, "__wrapped__", None)
        if isinstance(wrapped, functools.partial):  # a partial has no name that a wrapper, the guard's for one, could take over
            function = wrapped
        if not isinstance(function, functools.partial):
            break
        runs_in_context = isinstance(getattr(function.func, "__self__", None), contextvars.Context) and function.args
        function = function.args[0] if runs_in_context else function.func
    return str(getattr(function, "__qualname__", None) or default or type(function).__name__)


def _submitting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def submit(self: Any, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        scope = scopes.current_scope() if scopes.process.active else None
        if scope is None:
            return original(self, fn, *args, **kwargs)
        job = scope.fork(label_of(fn))
        return named(original(self, Job(fn, job), *args, **kwargs), job.path)

    return submit


def _is_pool_worker(thread: threading.Thread, target: Any) -> bool:
    kind = type(thread)
    if (kind.__module__, kind.__qualname__) in _POOL_CLASSES:
        return True
    return target is not None and (getattr(target, "__module__", ""), getattr(target, "__qualname__", "")) in _POOL_TARGETS


def _starting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def start(self: threading.Thread) -> Any:
        scope = scopes.current_scope() if scopes.process.active else None
        target = getattr(self, "_target", None)
        if scope is not None and not _is_pool_worker(self, target):  # workers of a pool are forked per job, not per thread
            label = label_of(target, type(self).__qualname__)
            self._spanreplay = (scope.fork(label), otel_context.get_current(), scopes.in_force.get())  # type: ignore[attr-defined]
        return original(self)

    return start


def _bootstrapping(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _bootstrap_inner(self: threading.Thread) -> Any:
        carried = self.__dict__.pop("_spanreplay", None)
        if carried is not None:
            scopes.enter_thread(carried[0])
            scopes.enter(carried[0])
            otel_context.attach(carried[1])
            scopes.in_force.set(carried[2])
        return original(self)

    return _bootstrap_inner


def install() -> None:
    """Patch threads and thread pools."""
    _patches.replace(ThreadPoolExecutor, "submit", _submitting)
    _patches.replace(threading.Thread, "start", _starting)
    _patches.replace(threading.Thread, "_bootstrap_inner", _bootstrapping)  # ``run`` is overridden by subclasses


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
