"""Which alarms (``signal.alarm``, ``signal.setitimer``) have come is kept, and a call that was never made because of one brings it.

Who runs the code of others limits it so: a handler of ``SIGALRM`` raises, wherever that code is. While a call is running, that is the
call's error, and in the record as such. Between calls it ends a loop that goes on in a replay, which is faster. So there the alarm comes as
soon as a call is made that had not been made when it came. Alarms of one place are told apart by the order in which they are set.
"""

import contextlib
import functools
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from spanreplay.boundary import scope as scopes
from spanreplay.boundary.orders import Wait, channel_of
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.own_code import caller, is_own

_NAME: Final = "alarms"
_LIMITING: Final = frozenset({"interruptingcow", "stopit", "timeout_decorator", "wrapt_timeout_decorator"})
"""Packages that set alarms for the program."""
_patches = Patches()
_setitimer: Final[Any] = getattr(signal, "setitimer", None)


class Alarm:
    """One that is set.

    Args:
        scope: where.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._number = scope.next(f"!{_NAME}")
        self._channel = channel_of(scope, _NAME)
        self._told = scope.session.told_orders if scope.session.mode == "replay" and self._channel is not None else None
        self._patience: Wait | None = None
        left = None if self._told is None or self._channel is None else self._told.left(self._channel)
        places = (one[1] for _, one in left or () if len(one) == 2 and one[0] == self._number)
        self.place: int | None = next((place for place in places if isinstance(place, int)), None)
        """Where in the order of the recorded steps it came; ``None`` where it did not."""

    def is_around(self, scope: Scope) -> bool:
        """Whether a call that is made there is made after it was set, by who has set it, or by whom that has called."""
        return scope is self._scope or scope.is_below(self._scope)

    def is_late(self) -> float | None:
        """How many seconds it is to come later, as it did not come when it was recorded; ``None`` where it is to come."""
        told = self._told
        if told is None or told.released or self.place is not None:
            return None
        if self._patience is None:
            self._patience = told.patience(0)
        elif self._patience.is_over():
            told.relaxed()
            return None
        return self._patience.part

    def came(self) -> None:
        """It has."""
        orders, here = self._scope.session.orders, scopes.current_scope()
        if orders is None or self._channel is None or here is None or channel_of(here, _NAME) is None:
            return  # in a call whose body does not run in a replay it is the call's error
        orders.add(self._channel, 0, (self._number, self._scope.session.latest))


_set: Alarm | None = None
"""The one that is set now: a process has one."""


def awaited(scope: Scope) -> int | None:
    """Where in the order of the recorded steps the alarm had come that is set around a call made here, in the thread that it interrupts."""
    alarm = _set
    if alarm is None or alarm.place is None or threading.current_thread() is not threading.main_thread() or not alarm.is_around(scope):
        return None
    return alarm.place


def come() -> None:
    """Have the alarm come now.

    Raises:
        Exception: what the program's handler raises.
    """
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.raise_signal(signal.SIGALRM)


def _counts(frame: FrameType) -> bool:
    return is_own(frame) or str(frame.f_globals.get("__name__")).partition(".")[0] in _LIMITING


def _setting(original: Callable[..., Any], seconds_at: int) -> Callable[..., Any]:
    @functools.wraps(original)
    def set_alarm(*args: Any) -> Any:
        global _set  # noqa: PLW0603 — a process has one
        made = original(*args)
        if seconds_at == 0 or args[0] == signal.ITIMER_REAL:
            scope = scopes.current_scope() if args[seconds_at] > 0 and scopes.process.active and _counts(caller()) else None
            _set = None if scope is None else Alarm(scope)
        return made

    return set_alarm


class _Handler:
    """Stands in for a handler of the program's."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        functools.update_wrapper(self, handler)
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> Any:
        """The signal has come."""
        global _set  # noqa: PLW0603 — a process has one
        alarm = _set
        later = None
        with contextlib.suppress(Exception):  # telemetry never breaks the agent
            later = None if alarm is None else alarm.is_late()
            if alarm is not None and later is None:
                alarm.came()
        if later is not None:
            _setitimer(signal.ITIMER_REAL, later)
            return None
        _set = None
        return self.handler(number, frame)


def _given(handler: Any) -> Any:
    return handler.handler if isinstance(handler, _Handler) else handler


def _handling(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def handle(signalnum: Any, handler: Any) -> Any:
        if signalnum == signal.SIGALRM and callable(handler) and scopes.process.active and _counts(caller()):
            handler = _Handler(handler)
        return _given(original(signalnum, handler))

    return handle


def _getting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def get(signalnum: Any) -> Any:
        return _given(original(signalnum))

    return get


def install() -> None:
    """Patch :mod:`signal`, where there are alarms."""
    if hasattr(signal, "setitimer"):
        _patches.rebind(signal, "alarm", functools.partial(_setting, seconds_at=0), everywhere=True)
        _patches.rebind(signal, "setitimer", functools.partial(_setting, seconds_at=1), everywhere=True)
        _patches.rebind(signal, "signal", _handling, everywhere=True)
        _patches.rebind(signal, "getsignal", _getting, everywhere=True)


def uninstall() -> None:
    """Undo :func:`install`."""
    global _set  # noqa: PLW0603 — a process has one
    _patches.undo()
    _set = None
