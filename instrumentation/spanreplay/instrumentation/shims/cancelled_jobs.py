"""Which jobs of a pool of threads were cancelled before they had begun is kept, and in a replay they do not begin either.

A replay answers at once, so a worker may come to a job that was still waiting when the program cancelled it. And it may not have come yet
to one that had begun: there ``Future.cancel`` waits until it has.
"""

import functools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import thread as pools
from typing import Any, Final
from weakref import WeakKeyDictionary

from spanreplay.boundary import loops
from spanreplay.boundary import scope as scopes
from spanreplay.boundary.orders import Member, ToldOrders, channel_of
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.session import Session
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.jobs import path_of
from spanreplay.instrumentation.shims.own_code import caller, is_own
from spanreplay.instrumentation.shims.threads import Job

_patches = Patches()
_NAMES: Final = {True: "cancelled jobs", False: "jobs that had begun"}
_SHUT: Final = "pools shut down"
_SHUTDOWN: Final = pools.ThreadPoolExecutor.shutdown.__code__
_GLANCE_S: Final = 0.002
_began: Final = time.monotonic()
_known: Final["WeakKeyDictionary[Session, dict[tuple[str, bool], dict[Member, int]]]"] = WeakKeyDictionary()


class _Counted(threading.local):
    """Jobs that this thread cancels as it shuts a pool down."""

    def __init__(self) -> None:
        self.jobs: list[None] = []


_counted: Final = _Counted()


def _recorded(scope: Scope, path: str, *, cancelled: bool) -> tuple[ToldOrders, int] | None:
    """The recorded orders, and after how many milliseconds a job was cancelled, or could not be; ``None`` where it was not so."""
    session = scope.session
    told = session.told_orders if session.mode == "replay" else None
    channel = None if told is None or told.released else channel_of(scope, _NAMES[cancelled], of_run=True)
    if told is None or channel is None:
        return None
    jobs = _known.setdefault(session, {})
    if (channel[0], cancelled) not in jobs:
        jobs[channel[0], cancelled] = {members[0]: ms for ms, members in told.left(channel) or () if members}
    ms = jobs[channel[0], cancelled].get(path)
    return None if ms is None else (told, ms)


def _await(told: ToldOrders, ms: int, comes: Callable[[], bool]) -> None:
    patience, nobody = told.patience(ms), threading.Event()
    while not comes() and not told.released:
        until = time.monotonic() + patience.part
        while not comes() and time.monotonic() < until:
            nobody.wait(_GLANCE_S)
        if not comes() and patience.is_over():
            told.relaxed()
            return


def _cancelling(original: Callable[..., bool]) -> Callable[..., bool]:
    @functools.wraps(original)
    def cancel(self: Any) -> bool:
        scope = scopes.current_scope() if scopes.process.active else None
        path = None if scope is None else path_of(self)
        if scope is None or path is None or self._state.startswith("CANCELLED"):
            return original(self)
        had_begun = _recorded(scope, path, cancelled=False)
        if had_begun is not None and not loops.is_running():
            _await(*had_begun, lambda: self._state != "PENDING")
        done = original(self)
        if done and caller().f_code is _SHUTDOWN:
            _counted.jobs.append(None)
        channel = None if scope.session.orders is None else channel_of(scope, _NAMES[done], of_run=True)
        if scope.session.orders is not None and channel is not None:
            scope.session.orders.add(channel, int((time.monotonic() - _began) * 1000), (path,))
        return done

    return cancel


def _running(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def run(self: Any, *args: Any) -> None:
        job = getattr(self, "fn", None)
        if job is None:
            job = (getattr(self, "task", None) or (None,))[0]  # Python 3.14
        if isinstance(job, Job) and scopes.process.active:
            cancelled = _recorded(job.scope, job.scope.path, cancelled=True)
            if cancelled is not None:
                pool = _pool()
                _await(*cancelled, lambda: self.future.cancelled() or getattr(pool, "_shutdown", False) is True)
                if getattr(pool, "_shutdown", False) is True:
                    self.future.cancel()
        original(self, *args)

    return run


def _shutting(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def shutdown(self: Any, wait: bool = True, *, cancel_futures: bool = False) -> None:
        watched = cancel_futures and scopes.process.active and is_own(caller())
        scope = scopes.current_scope() if watched else None
        channel = None if scope is None else channel_of(scope, _SHUT)
        if scope is None or channel is None:
            original(self, wait, cancel_futures=cancel_futures)
            return
        told = scope.session.told_orders if scope.session.mode == "replay" else None
        left = None if told is None else told.left(channel)
        if told is not None and left and not loops.is_running():
            ms, members = left.popleft()
            waiting = members[0] if members and isinstance(members[0], int) else 0
            _await(told, ms, lambda: self._work_queue.qsize() <= waiting)
        before = len(_counted.jobs)
        original(self, wait, cancel_futures=cancel_futures)
        if scope.session.orders is not None:
            scope.session.orders.add(channel, int((time.monotonic() - _began) * 1000), (len(_counted.jobs) - before,))
        del _counted.jobs[before:]

    return shutdown


def _pool() -> object:
    """Whose worker this thread is."""
    arguments = getattr(threading.current_thread(), "_args", None) or ()
    return arguments[0]() if arguments and callable(arguments[0]) else None


def install() -> None:
    """Patch the pools of ``concurrent.futures``."""
    _patches.replace(Future, "cancel", _cancelling)
    _patches.replace(pools.ThreadPoolExecutor, "shutdown", _shutting)
    if hasattr(pools._WorkItem, "run"):
        _patches.replace(pools._WorkItem, "run", _running)


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
