"""Reading the clock: which function of the program does, and keeping what it was told.

What is watched is ``time.time``, ``datetime.now`` and the like, however they were imported, by way of time-machine, with which a replay
tells the recorded time too. What the standard library, telemetry and spanreplay read is not kept, nor what the body of a call reads, which
does not run in a replay. A read takes about a microsecond longer; after :data:`MOST` reads of a process nothing is watched any more.
Two functions that time-machine leaves alone, ``time.ctime`` and ``time.asctime``, are given the time by :func:`tell_texts`.
"""

import functools
import importlib
import os
import sys
import time
from collections.abc import Callable
from functools import cache
from types import FrameType, ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import here
from spanreplay.boundary.clock_reads import ClockReads, Reader
from spanreplay.boundary.comprehensions import plain
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.session import Session
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims import monotonic
from spanreplay.instrumentation.shims.monotonic import Family
from spanreplay.instrumentation.shims.own_code import caller

MOST: Final = 50_000
"""Reads of the program in a process, of all that is kept and all that is not."""
_MACHINERY: Final = sys.stdlib_module_names | {"logfire", "openinference", "opentelemetry", "spanreplay", "time_machine"}
_BODIES_RUN: Final = frozenset({"agent", "handoff"})
"""Kinds of steps whose bodies a replay runs too."""

_OURS: Final = globals()


class _Watching:
    """The watch that is on."""

    def __init__(self, session: Session, reads: ClockReads) -> None:
        self._session = session
        self._reads = reads
        self._left = MOST
        module = travelling()
        self._stack: list[Any] = module.traveller_stack
        self._travel = module.travel(time.time(), tick=True)
        self._traveller = self._travel.start()
        self._traveller.time_ns = self._read
        self._real: Callable[[], int] = module._time_machine.original_time_ns
        tell_texts()
        self._monotonic_left = MOST
        monotonic.install(self._noted)
        session.clock_reads = reads
        self._clock, session.clock = session.clock, self._now

    def _now(self) -> int:
        """For the session: the time as it would be without us, which is the program's own where it tells itself one."""
        return self._real() if self._stack and self._stack[-1] is self._traveller else time.time_ns()

    def _read(self) -> int:
        now = real_time_ns()
        try:
            scope, function = reading(caller())
            if scope is not None and scope.session is self._session:
                self._reads.add(reader_of(scope, function), now)
                self._left -= 1
                if not self._left:
                    uninstall()
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            return now
        return now

    def _noted(self, family: Family, now: int, scope: Scope, function: str) -> int | None:
        if scope.session is not self._session:
            return None
        if not in_body(scope):
            note(self._reads, family, reader_of(scope, function), now, real_time_ns)
            self._monotonic_left -= 1
            if not self._monotonic_left:
                monotonic.uninstall(self._noted)
        return now

    def stop(self) -> None:
        """Leave the clock alone again."""
        monotonic.uninstall(self._noted)
        leave_texts()
        self._session.clock = self._clock
        if self._stack and self._stack[-1] is self._traveller:
            self._travel.stop()
        else:  # the program tells itself another time by the same means, and has begun to after us
            self._traveller.time_ns = real_time_ns

    def forked(self) -> None:
        """In a copy of the process."""
        self._reads.clear()


_state: Final[dict[str, _Watching | None]] = {"watching": None}


def install(session: Session) -> None:
    """Keep with the steps of a session what its program reads of the clock.

    Idempotent. Does nothing where the program tells itself a time already, with time-machine or freezegun.
    """
    if _state["watching"] is None and not travelling().traveller_stack:
        try:
            _state["watching"] = _Watching(session, ClockReads())
        except RuntimeError:  # freezegun has taken the clock
            return


def uninstall() -> None:
    """Undo :func:`install`."""
    watching, _state["watching"] = _state["watching"], None
    if watching is not None:
        watching.stop()


_texts: Final = Patches()
_tellers: Final[list[None]] = []


def tell_texts() -> None:
    """``time.ctime()`` and ``time.asctime()`` read the clock as ``time.time`` does, until :func:`leave_texts` is called as often."""
    _tellers.append(None)
    if len(_tellers) == 1:
        _texts.replace(time, "ctime", _ctime)
        _texts.replace(time, "asctime", _asctime)


def leave_texts() -> None:
    """Undo :func:`tell_texts`."""
    _tellers.pop()
    if not _tellers:
        _texts.undo()


def _ctime(original: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(original)
    def ctime(*args: Any) -> str:
        return original(time.time()) if args in ((), (None,)) else original(*args)

    return ctime


def _asctime(original: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(original)
    def asctime(*args: Any) -> str:
        return original(*args) if args else original(time.localtime())

    return asctime


def reading(frame: FrameType | None) -> tuple[Scope | None, str]:
    """The scope that a read of the clock is made in, and the function that makes it; no scope where the read does not count.

    Args:
        frame: the innermost one, or one of time-machine's.
    """
    while frame is not None and (frame.f_globals is _OURS or frame.f_globals.get("__name__") == "time_machine"):
        frame = frame.f_back
    if frame is None or str(frame.f_globals.get("__name__")).partition(".")[0] in _MACHINERY:
        return None, ""
    scope = here()
    if scope is None or in_body(scope):
        return None, ""
    return scope, f"{frame.f_code.co_filename.rpartition(os.sep)[2]}:{plain(frame.f_code.co_qualname)}"


def in_body(scope: Scope) -> bool:
    """Whether this is inside of a call whose body does not run in a replay."""
    return scope.step is not None and scope.step.call.kind not in _BODIES_RUN and not scope.step.call.passed


def note(reads: ClockReads, family: Family, reader: Reader, told: int, clock: Callable[[], int]) -> None:
    """Keep what a monotonic clock said.

    Args:
        reads: where to.
        family: which clock.
        reader: who has read it.
        told: what it said, nanoseconds.
        clock: tells what time it is, nanoseconds since the epoch.
    """
    if family not in reads.anchored:
        reads.anchored.add(family)
        reads.add(monotonic.anchor_of(family), clock())
        reads.add(monotonic.anchor_of(family), told)
    reads.add(monotonic.reader_of(family, reader), told)


def reader_of(scope: Scope, function: str) -> Reader:
    """Who reads, in a recording as in its replay."""
    return "" if scope.run is None else scope.run.path, scope.path, function


def real_time_ns() -> int:
    """The time, nanoseconds since the epoch, whatever time the program is told."""
    try:
        now: int = travelling().escape_hatch.time.time_ns()
    except ValueError:  # no other time is told
        return time.time_ns()
    return now


@cache
def travelling() -> ModuleType:
    """time-machine, without pytest: it imports that for its fixture wherever it is installed, which would take longer than all of us."""
    if "pytest" in sys.modules:
        return importlib.import_module("time_machine")
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    modules["pytest"] = None  # which makes its import fail
    try:
        return importlib.import_module("time_machine")
    finally:
        del modules["pytest"]


def _in_child() -> None:
    watching = _state["watching"]
    if watching is not None:
        watching.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
