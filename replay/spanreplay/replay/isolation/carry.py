"""Take the armed guards along into threads: a thread has an empty context of its own.

Threads are covered from their first line (``Thread._bootstrap_inner``, as subclasses override ``run``). Work given to an executor is
watched by the guards of whoever gave it, not of whoever happened to start the worker. anyio and trio run each item of work in the
giver's context, so their workers inherit nothing.
"""

import _thread
import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from typing import Any, Final

from spanreplay.replay.isolation.arming import THREAD, Sentries, carried
from spanreplay.replay.isolation.refusal import RefusedInPoolError

_MARK: Final = "__spanreplay_guard__"
_INHERITED: Final = "_spanreplay_guards"
_CONTEXT_WORKERS: Final = ("anyio.", "trio.")


def install() -> None:
    """Wrap the ways into a thread. Idempotent, also when somebody else took our wrapper off again or put his own around it."""
    _wrap(threading.Thread, "start", _start)
    _wrap(threading.Thread, "_bootstrap_inner", _bootstrap_inner)
    _wrap(ThreadPoolExecutor, "submit", _submit)
    for name in ("apply_async", "_map_async", "imap", "imap_unordered"):
        _wrap(ThreadPool, name, _pooled)
    _wrap(_thread, "start_new_thread", _start_new_thread)
    _wrap(_thread, "start_new", _start_new_thread)


def is_wrapped(function: object) -> bool:
    """Tell whether one of our wrappers is in the chain of ``__wrapped__``."""
    while function is not None:
        if getattr(function, _MARK, False):
            return True
        function = getattr(function, "__wrapped__", None)
    return False


def mark(wrapper: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """Dress ``wrapper`` as ``original`` and mark it as ours."""
    functools.update_wrapper(wrapper, original)
    setattr(wrapper, _MARK, True)
    return wrapper


def _wrap(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    original = getattr(owner, name, None)
    if original is not None and not is_wrapped(original):
        setattr(owner, name, mark(make(original), original))


def _start(original: Callable[..., Any]) -> Callable[..., Any]:
    def start(self: threading.Thread, *args: Any, **kwargs: Any) -> Any:
        if (sentries := carried()) and not _takes_context_along(self):
            self.__dict__[_INHERITED] = sentries
        return original(self, *args, **kwargs)

    return start


def _bootstrap_inner(original: Callable[..., Any]) -> Callable[..., Any]:
    def bootstrap_inner(self: threading.Thread, *args: Any, **kwargs: Any) -> Any:
        THREAD.sentries = self.__dict__.pop(_INHERITED, ())
        return original(self, *args, **kwargs)

    return bootstrap_inner


def _submit(original: Callable[..., Any]) -> Callable[..., Any]:
    def submit(self: ThreadPoolExecutor, /, *args: Any, **kwargs: Any) -> Any:
        if args and callable(args[0]):
            args = (_carrying(args[0], carried()), *args[1:])
        return original(self, *args, **kwargs)

    return submit


def _pooled(original: Callable[..., Any]) -> Callable[..., Any]:
    def pooled(self: ThreadPool, /, *args: Any, **kwargs: Any) -> Any:
        if args and callable(args[0]):
            args = (_answering(_carrying(args[0], carried())), *args[1:])
        return original(self, *args, **kwargs)

    return pooled


def _answering(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception:
            raise
        except BaseException as error:
            raise RefusedInPoolError(str(error)) from error

    return run


def _start_new_thread(original: Callable[..., Any]) -> Callable[..., Any]:
    def start_new_thread(function: Any, *args: Any, **kwargs: Any) -> Any:
        if (sentries := carried()) and callable(function):
            function = _carrying(function, sentries)
        return original(function, *args, **kwargs)

    return start_new_thread


def _carrying(function: Callable[..., Any], sentries: Sentries) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        before = THREAD.sentries
        THREAD.sentries = sentries
        try:
            return function(*args, **kwargs)
        finally:
            THREAD.sentries = before

    return run


def _takes_context_along(thread: threading.Thread) -> bool:
    target = getattr(thread, "_target", None)
    names = (type(thread).__module__, getattr(target, "__module__", None) or "")
    return any(name.startswith(_CONTEXT_WORKERS) for name in names)
