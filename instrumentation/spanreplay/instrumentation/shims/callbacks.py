"""The order in which jobs of threads and processes are heard of: callbacks of their futures, results of pools, answers to an event loop.

``asyncio.to_thread`` and ``run_in_executor`` hear of a job by such a callback; threads of anyio and trio report to the loop themselves.
Jobs of a model SDK's own, which a replay need not start, have no place in the order: nobody is to wait for one that never comes.
"""

import asyncio
import concurrent.futures
import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import wrapt

from spanreplay.boundary import scope as scopes
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.arrivals import Arrivals, arrivals
from spanreplay.instrumentation.shims.jobs import named, path_of

_ANYIO: Final = "anyio._backends._asyncio"
_TRIO: Final = "trio._threads"
_POOL: Final = "multiprocessing.pool"
_CALLED: Final = "called"
_OURS: Final = ("concurrent.futures.", "spanreplay.")
_patches = Patches()
_hooked: Final[set[str]] = set()
_of_sdk: ContextVar[bool] = ContextVar("spanreplay.jobs of an SDK", default=False)


@contextmanager
def out_of_order() -> Iterator[None]:
    """Jobs that are started inside are not ordered: a replay that answers a method of an SDK does not run what it starts."""
    token = _of_sdk.set(True)
    try:
        yield
    finally:
        _of_sdk.reset(token)


def _adding(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def add_done_callback(self: Any, fn: Callable[[Any], Any]) -> None:
        scope = scopes.current_scope() if scopes.process.active else None
        path = None if scope is None else path_of(self)
        if scope is None or path is None or _of_sdk.get() or str(getattr(fn, "__module__", "")).startswith(_OURS):
            original(self, fn)
            return
        order = arrivals(scope, _CALLED, of_run=True, once=False)
        if order is None:
            original(self, fn)
            return
        number = self.__dict__.get("_spanreplay_callbacks", 0)
        self._spanreplay_callbacks = number + 1
        original(self, functools.partial(_tell, order, f"{path}!{number}", fn))

    return add_done_callback


def _tell(order: Arrivals, member: str, fn: Callable[[Any], Any], future: Any) -> None:
    order.came(member, functools.partial(_call, fn, future))


def _call(fn: Callable[[Any], Any], future: Any) -> None:
    try:
        fn(future)
    except Exception:  # noqa: BLE001 — as whoever calls it would, who may be another future here
        concurrent.futures._base.LOGGER.exception("exception calling callback for %r", future)


def _wrapping(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wrap_future(future: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(future, *args, **kwargs)
        path = path_of(future) if scopes.process.active and made is not future else None
        return made if path is None else named(made, path)

    return wrap_future


# ---- pools ------------------------------------------------------------------------------------------------------


def _ordering(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 — it stands in for that
        scope = scopes.current_scope() if scopes.process.active else None
        self._spanreplay = None if scope is None else arrivals(scope, f"unordered#{scope.next('!unordered')}")
        original(self, *args, **kwargs)

    return __init__


def _setting(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def _set(self: Any, i: int, obj: Any) -> None:
        order: Arrivals | None = self.__dict__.get("_spanreplay")
        if order is None:
            original(self, i, obj)
        else:
            order.came(i, functools.partial(original, self, i, obj))

    return _set


def _awaiting(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def __init__(self: Any, pool: Any, callback: Any, error_callback: Any) -> None:  # noqa: N807 — it stands in for that
        scope = scopes.current_scope() if scopes.process.active and (callback or error_callback) else None
        self._spanreplay = None if scope is None else arrivals(scope, "applied", once=False)
        self._spanreplay_number = None if scope is None else scope.next("!applied")
        original(self, pool, callback, error_callback)

    return __init__


def _answering(original: Callable[..., None], kind: type[Any]) -> Callable[..., None]:
    @functools.wraps(original)
    def _set(self: Any, i: int, obj: Any) -> None:
        order: Arrivals | None = self.__dict__.get("_spanreplay")
        if order is None or type(self) is not kind:
            original(self, i, obj)
        else:
            order.came(self._spanreplay_number, functools.partial(original, self, i, obj))

    return _set


# ---- threads of anyio -------------------------------------------------------------------------------------------


def _reporting(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def _report_result(self: Any, future: Any, result: Any, exc: BaseException | None) -> None:
        awaiting = getattr(future, "_callbacks", None) if scopes.process.active else None
        scope = awaiting[0][1].get(scopes._scope) if awaiting else None
        order = None if scope is None else arrivals(scope, _CALLED, of_run=True, once=False)
        if scope is None or order is None:
            original(self, future, result, exc)
            return
        loop = asyncio.get_running_loop()

        def report() -> None:
            if asyncio._get_running_loop() is loop:
                original(self, future, result, exc)
            elif not loop.is_closed():
                loop.call_soon_threadsafe(original, self, future, result, exc)

        order.came(f"{scope.path}!{scope.next('!reported')}", report)

    return _report_result


# ---- threads of trio --------------------------------------------------------------------------------------------


def _starting(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def start_thread_soon(fn: Callable[[], Any], deliver: Callable[[Any], None], *args: Any, **kwargs: Any) -> None:
        scope = scopes.current_scope() if scopes.process.active else None
        order = None if scope is None else arrivals(scope, _CALLED, of_run=True, once=False)
        if scope is not None and order is not None:
            deliver = functools.partial(_report, order, f"{scope.path}!{scope.next('!reported')}", deliver)
        original(fn, deliver, *args, **kwargs)

    return start_thread_soon


def _report(order: Arrivals, member: str, deliver: Callable[[Any], None], result: Any) -> None:
    order.came(member, functools.partial(deliver, result))


def install() -> None:
    """Patch futures; pools and anyio when they are there or come."""
    _patches.replace(concurrent.futures.Future, "add_done_callback", _adding)
    _patches.replace(asyncio.futures, "wrap_future", _wrapping)
    for name, patch in ((_POOL, _pools), (_ANYIO, _anyio), (_TRIO, _trio)):
        if name in sys.modules:
            patch(sys.modules[name])
        elif name not in _hooked:
            wrapt.register_post_import_hook(patch, name)
            _hooked.add(name)


def _pools(module: Any) -> None:
    from spanreplay.instrumentation import shims

    if shims._installed:
        _patches.replace(module.IMapUnorderedIterator, "__init__", _ordering)
        _patches.replace(module.IMapUnorderedIterator, "_set", _setting)
        _patches.replace(module.ApplyResult, "__init__", _awaiting)
        _patches.replace(module.ApplyResult, "_set", functools.partial(_answering, kind=module.ApplyResult))


def _anyio(module: Any) -> None:
    from spanreplay.instrumentation import shims

    if shims._installed and hasattr(module.WorkerThread, "_report_result"):
        _patches.replace(module.WorkerThread, "_report_result", _reporting)


def _trio(module: Any) -> None:
    from spanreplay.instrumentation import shims

    if shims._installed and hasattr(module, "start_thread_soon"):
        _patches.replace(module, "start_thread_soon", _starting)


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
