"""Monotonic clocks, ``time.monotonic`` and ``time.perf_counter``, as the program's own code reads them.

A loop that goes on until a deadline decides by them what is called. So what the program reads is kept as what it reads of the wall clock
is, see :mod:`spanreplay.instrumentation.shims.clock`, and told again by a replay. Told are the program's own code and the packages that
decide by time whether something is called again. So is the time of an event loop of asyncio, which is that of such a clock, see
:mod:`spanreplay.instrumentation.shims.loop_time`. Everything else keeps the real clock: event loops, threads, queues and transports wait by
it, and a wait that goes by a time that stands still would never end.

What stands in for the functions is no function: a class that has a built-in one as an attribute calls it without itself.
"""

import asyncio
import functools
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from types import CodeType, FrameType, ModuleType
from typing import Any, Final, Literal, TypeAlias

import wrapt

from spanreplay.boundary.boundary import here
from spanreplay.boundary.clock_reads import Reader
from spanreplay.boundary.comprehensions import plain
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation.patching import Patches, looking_once
from spanreplay.instrumentation.shims.loop_time import LoopTime
from spanreplay.instrumentation.shims.own_code import caller, is_own, is_own_file

Family: TypeAlias = Literal["monotonic", "perf_counter"]
FAMILIES: Final[tuple[Family, ...]] = ("monotonic", "perf_counter")
Teller: TypeAlias = Callable[[Family, int, Scope, str], int | None]
"""Told which clock is read, what it says (nanoseconds), where, and by which function; gives what to say, ``None`` where it has no say."""

_DECIDING: Final = frozenset(
    {"aiolimiter", "backoff", "cachetools", "pyrate_limiter", "ratelimit", "retry", "retrying", "stamina", "tenacity"}
)
"""Packages that decide by time whether something is called, or called again."""
_MOST: Final = 20_000
_others: Final[set[str]] = set()
"""Files whose code keeps the real clock: event loops read it at each turn."""
_getframe: Final = sys._getframe
_tellers: Final[list[Teller]] = []
_patches: Final = Patches()
_hooked: Final[list[None]] = []
"""A post-import hook cannot be taken back."""


def _counts(frame: FrameType) -> bool:
    """Whether who reads is told; who is not need not be asked again."""
    if is_own(frame) or str(frame.f_globals.get("__name__")).partition(".")[0] in _DECIDING:
        return True
    if len(_others) < _MOST:
        _others.add(frame.f_code.co_filename)
    return False


class _Clock:
    """Stands in for a function of ``time``."""

    __slots__ = ("__dict__", "_family", "_now_ns", "_original", "_whole")

    def __init__(self, original: Callable[[], Any], now_ns: Callable[[], int], family: Family) -> None:
        self._original = original
        self._now_ns = now_ns
        self._family: Family = family
        self._whole = original.__name__.endswith("_ns")
        self.__name__ = self.__qualname__ = original.__name__
        self.__module__ = "time"
        self.__doc__ = original.__doc__

    def __call__(self) -> Any:
        """What the clock says, in the unit of the function."""
        try:
            frame = _getframe(1)
        except (TypeError, ValueError):  # what is closed as the interpreter takes its modules apart reads the time, too; and what C calls
            return self._original()
        if not _tellers or frame.f_code.co_filename in _others or not _counts(frame):
            return self._original()
        told = _told(self._family, self._now_ns, frame.f_code)
        if told is None:
            return self._original()
        return told if self._whole else told / 1e9

    def __repr__(self) -> str:
        return f"<spanreplay time.{self.__name__}>"

    def __reduce__(self) -> str:
        return self.__name__


def _told(family: Family, now_ns: Callable[[], int], code: CodeType) -> int | None:
    """What to say to the program's code, nanoseconds; ``None`` where nobody has a say."""
    try:
        scope = here()
        if scope is None:
            return None
        now, function = now_ns(), f"{code.co_filename.rpartition(os.sep)[2]}:{plain(code.co_qualname)}"
        return next((told for teller in reversed(_tellers) if (told := teller(family, now, scope, function)) is not None), None)
    except Exception:  # noqa: BLE001 — telemetry never breaks the agent
        return None


def _timing(original: Callable[[Any], float]) -> Callable[[Any], float]:
    @functools.wraps(original)
    def time(self: Any) -> float:
        now = original(self)
        frame = caller()
        if not _tellers or frame.f_code.co_filename in _others or not _counts(frame):
            return now
        really = round(now * 1e9)
        told = _told("monotonic", lambda: really, frame.f_code)
        return now if told is None or told == really else LoopTime(now, told / 1e9)

    return time


def _calling(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call_at(self: Any, when: float, *args: Any, **kwargs: Any) -> Any:
        return original(self, float(when) if type(when) is LoopTime else when, *args, **kwargs)

    return call_at


def _uvloop(module: Any) -> None:
    if _tellers:
        _patches.replace(module.Loop, "time", _timing)


def reader_of(family: Family, reader: Reader) -> Reader:
    """Under which name reads of a monotonic clock are kept."""
    run, scope, function = reader
    return run, scope, f"{function} {family}"


def anchor_of(family: Family) -> Reader:
    """Under which name it is kept what a clock said at the first read of a process, and what time it was then: two times."""
    return "", "", f"{family} at"


def install(teller: Teller) -> None:
    """Have ``teller`` say what monotonic clocks say, until :func:`uninstall`; the last one first."""
    _tellers.append(teller)
    if len(_tellers) > 1:
        return
    _patches.replace(asyncio.BaseEventLoop, "time", _timing)
    _patches.replace(asyncio.BaseEventLoop, "call_at", _calling)
    if "uvloop" in sys.modules:
        _uvloop(sys.modules["uvloop"])
    elif not _hooked:
        wrapt.register_post_import_hook(_uvloop, "uvloop")
        _hooked.append(None)
    with looking_once():
        for family in FAMILIES:
            now_ns = getattr(time, f"{family}_ns")
            for name in (family, f"{family}_ns"):
                _patches.rebind(time, name, partial(_Clock, now_ns=now_ns, family=family), everywhere=True, only=_is_own)


def uninstall(teller: Teller) -> None:
    """Undo :func:`install`."""
    if teller in _tellers:
        _tellers.remove(teller)
        if not _tellers:
            _patches.undo()


def _is_own(module: ModuleType) -> bool:
    name = module.__name__
    if name.partition(".")[0] in _DECIDING:
        return True
    file = getattr(module, "__file__", None)
    if not isinstance(file, str):  # that of a notebook, or one that the program has made
        return name.partition(".")[0] not in sys.stdlib_module_names
    return is_own_file(file) and not name.startswith("spanreplay.")
