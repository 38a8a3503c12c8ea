"""Whether something had come when the program looked, or gave up to wait for it, is kept, and in a replay told again.

A replay is faster or slower than what was recorded, so a loop such as ``while True: try: future.result(timeout=1) …`` would go round less
or more often. Kept is what the program's own code asks with a time-out, or without waiting: ``Future.result``, ``exception`` and ``done``,
``Event.wait`` and ``is_set``, ``Thread.is_alive``, ``Queue.get`` and ``empty``. In a replay, what had not come then has not come yet,
and a wait with a time-out ends with it; what had come is waited for, though not for ever.
"""

import functools
import os
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from types import FrameType
from typing import Any, Final

from spanreplay.boundary import loops
from spanreplay.boundary import scope as scopes
from spanreplay.boundary.comprehensions import plain
from spanreplay.boundary.orders import channel_of
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.own_code import caller, is_own

_patches = Patches()
_LIMITING: Final = tuple(name.replace("/", os.sep) for name in ("/crewai/agent/core.py", "/smolagents/local_python_executor.py"))
"""Ends of files of packages that wait for as long as the program tells them to: ``max_execution_time``, ``timeout_seconds``."""
_GLANCE_S: Final = 0.001
_exception: Final = Future.exception
_wait: Final = threading.Event.wait
_join: Final = threading.Thread.join
_is_alive: Final = threading.Thread.is_alive
_MOST: Final = 5000
"""Looks of one function that are kept: a loop that waits for something looks without end."""


class _Look:
    """The program looks whether something has come.

    Args:
        scope: where it looks.
        name: what for.
    """

    def __init__(self, scope: Scope, name: str) -> None:
        session = scope.session
        self._channel = channel_of(scope, name)
        self._kept = session.orders if self._channel is not None else None
        self._told = session.told_orders if session.mode == "replay" else None
        left = None if self._told is None or self._channel is None else self._told.left(self._channel)
        try:
            self._ms, members = left.popleft() if left else (0, ())
        except IndexError:  # another thread was faster
            self._ms, members = 0, ()
        self.recorded: bool | None = bool(members[0]) if len(members) == 1 else None
        """Whether it had come when it was recorded."""
        self._at = time.monotonic()

    def keep(self, came: object) -> None:
        """This is how it was."""
        if self._kept is not None and self._channel is not None:
            self._kept.add(self._channel, int((time.monotonic() - self._at) * 1000), (int(bool(came)),))

    def let_come(self, comes: Callable[[float], object]) -> None:
        """It had come when it was recorded: wait for it, unless that would keep an event loop from going on.

        Args:
            comes: waits for so many seconds at most, and says whether it has come.
        """
        if self._told is None or loops.is_running() or comes(0):
            return
        patience = self._told.patience(self._ms)
        while not comes(patience.part) and not self._told.released:
            if patience.is_over():
                self._told.relaxed()
                return


def _look(name: str, frame: FrameType | None) -> _Look | None:
    """A look of the program's own code, or of a limit that it has set."""
    scope = scopes.current_scope() if scopes.process.active else None
    if scope is None or frame is None or (scope.session.orders is None and scope.session.told_orders is None):
        return None
    if not is_own(frame) and not frame.f_code.co_filename.endswith(_LIMITING):
        return None
    what = f"{name} {plain(frame.f_code.co_qualname)}"
    return _Look(scope, what) if scope.next(f"!{what}") < _MOST else None


def _look_of_caller(name: str) -> _Look | None:
    frame: FrameType | None = caller(2)
    while frame is not None and frame.f_globals.get("__name__") == "queue":
        frame = frame.f_back
    return _look(name, frame)


# ---- futures ----------------------------------------------------------------------------------------------------


def _is_done(future: Any, seconds: float) -> bool:
    """Wait for a future without the program's knowledge."""
    try:
        _exception(future, seconds)
    except TimeoutError:
        return future._state in ("CANCELLED", "CANCELLED_AND_NOTIFIED", "FINISHED")
    except CancelledError:
        return True
    return True


def _giving(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def give(self: Any, timeout: float | None = None) -> Any:
        look = None if timeout is None else _look_of_caller(original.__name__)
        if look is None or timeout is None:
            return original(self, timeout)
        if look.recorded is None:
            _is_done(self, timeout)
        elif look.recorded:
            look.let_come(functools.partial(_is_done, self))
        else:
            _is_done(self, timeout)
            look.keep(False)
            raise TimeoutError
        came = _is_done(self, 0)
        look.keep(came)
        return original(self, 0)

    return give


# ---- what is asked without waiting, and events -------------------------------------------------------------------


def _asking(original: Callable[..., Any], comes: Callable[[Any, float], object], *, came: bool = True) -> Callable[..., Any]:
    """A question whose answer is ``came`` once something has come.

    Args:
        original: asks.
        comes: waits so many seconds for it.
        came: what ``original`` gives then.
    """

    @functools.wraps(original)
    def ask(self: Any) -> Any:
        look = _look_of_caller(original.__name__)
        if look is None:
            return original(self)
        if look.recorded is False:
            look.keep(False)
            return not came
        if look.recorded:
            look.let_come(functools.partial(comes, self))
        found = original(self)
        look.keep(found is came)
        return found

    return ask


def _waiting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wait(self: Any, timeout: float | None = None) -> bool:
        look = None if timeout is None else _look_of_caller("wait")
        if look is None:
            return bool(original(self, timeout))
        if look.recorded:
            look.let_come(functools.partial(original, self))
        came = bool(original(self, timeout)) and look.recorded is not False
        look.keep(came)
        return came

    return wait


def _is_over(thread: Any, seconds: float) -> bool:
    try:
        _join(thread, seconds)
    except RuntimeError:  # it is not started, or is this one
        return True
    return not _is_alive(thread)


# ---- queues -----------------------------------------------------------------------------------------------------


def _has_items(items: Any, seconds: float) -> bool:
    """Wait for an item, and leave it there."""
    until = time.monotonic() + seconds
    while not items._qsize():
        left = until - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(_GLANCE_S, left))
    return True


def _getting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def get(self: Any, block: bool = True, timeout: float | None = None) -> Any:
        limited = not block or (timeout is not None and timeout >= 0)
        look = _look_of_caller("get") if limited else None
        if look is None:
            return original(self, block, timeout)
        if look.recorded is False:
            _has_items(self, timeout or 0 if block else 0)
            look.keep(False)
            raise queue.Empty
        if look.recorded:
            look.let_come(functools.partial(_has_items, self))
        try:
            item = original(self, block, timeout)
        except queue.Empty:
            look.keep(False)
            raise
        look.keep(True)
        return item

    return get


def install() -> None:
    """Patch futures, events, threads and queues; after what tells whose turn it is to take an item."""
    for name in ("result", "exception"):
        _patches.replace(Future, name, _giving)
    _patches.replace(Future, "done", functools.partial(_asking, comes=_is_done))
    _patches.replace(threading.Event, "wait", _waiting)
    _patches.replace(threading.Event, "is_set", functools.partial(_asking, comes=_wait))
    _patches.replace(threading.Thread, "is_alive", functools.partial(_asking, comes=_is_over, came=False))
    _patches.replace(queue.Queue, "get", _getting)
    _patches.replace(queue.Queue, "empty", functools.partial(_asking, comes=_has_items, came=False))


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
