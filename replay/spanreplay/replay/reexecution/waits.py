"""``--fast``: waits of a replay take no time.

What a replay waits for: calls that the agent cancelled stay open until it cancels them again; an answer waits for its turn, where another
one was recorded before it; and the agent itself sleeps, SDKs between two attempts. Streams come as fast as they are read anyway.

Time is skipped where nothing else can happen meanwhile, as in a simulation of discrete events: an event loop that has nothing ready, and
nothing to hear of from a socket, a process or a thread, goes to its next timer at once; ``time.sleep`` returns at once. The order of
timers, and so what times out before what, stays what it is. ``time.monotonic``, which loops go by, and the recorded clock move on by as
much.

Real stay: every wait while another thread of the agent or a job of a pool runs, waits on locks, queues and events of threads, uvloop's
loops, trio's, and what was waited for before the first line of the agent.
"""

import threading
import time
from asyncio import base_events
from collections.abc import Callable
from typing import Any, Final

from spanreplay.replay.reexecution.clock import RecordedClock

_OURS: Final = "spanreplay"
_GLANCE_S: Final = 0.02
"""How often it is looked whether others are still at work."""
_PATIENT: Final = 86_400.0
"""More seconds than this are no wait, but for ever."""


class _Skipping:
    """How much time was skipped in this process."""

    def __init__(self, clock: RecordedClock) -> None:
        self._clock = clock
        self._sleep: Callable[[float], None] = time.sleep
        self._monotonic, self._monotonic_ns = time.monotonic, time.monotonic_ns
        self._lock = threading.Lock()
        self.seconds = 0.0

    def skip(self, seconds: float) -> None:
        with self._lock:
            self.seconds += seconds
        self._clock.skip(seconds)

    def monotonic(self) -> float:
        return self._monotonic() + self.seconds

    def monotonic_ns(self) -> int:
        return self._monotonic_ns() + int(self.seconds * 1e9)

    def sleep(self, seconds: float, /) -> None:
        left = seconds
        while 0 < left < _PATIENT:
            if _alone():
                self.skip(left)
                left = 0
            else:
                began = self.monotonic()
                self._sleep(min(left, _GLANCE_S))
                left -= self.monotonic() - began
        self._sleep(max(left, 0) if seconds >= 0 else seconds)

    def before_turn(self, loop: Any) -> None:
        """Before a loop waits for its next timer."""
        if loop._ready or not loop._scheduled:
            return
        selector = getattr(loop, "_selector", None)
        timers = [timer._when for timer in loop._scheduled if not timer._cancelled]
        if selector is None or not timers:
            return
        while not loop._ready and not loop._stopping and 0 < (ahead := min(timers) - loop.time()) < _PATIENT:
            if _hears_of_nothing(selector) and _alone():
                self.skip(ahead)
            elif selector.select(min(ahead, _GLANCE_S)):
                return  # the loop finds it again


def skip_waits(clock: RecordedClock) -> None:
    """From here on waits of this process take no time.

    Args:
        clock: is to tell that time has passed.
    """
    skipping = _Skipping(clock)
    for name in ("sleep", "monotonic", "monotonic_ns"):
        setattr(time, name, getattr(skipping, name))
    turn = base_events.BaseEventLoop._run_once  # type: ignore[attr-defined]

    def run_once(loop: Any) -> None:
        skipping.before_turn(loop)
        turn(loop)

    base_events.BaseEventLoop._run_once = run_once  # type: ignore[attr-defined]


def _hears_of_nothing(selector: Any) -> bool:
    """Whether a loop watches nothing but the pipe by which threads wake it."""
    watched = selector.get_map()
    return watched is not None and len(watched) <= 1


def _alone() -> bool:
    """Whether no other thread of the agent's could do anything."""
    here = threading.get_ident()
    return all(t.ident == here or t.name.startswith(_OURS) or _is_idle(t) for t in threading.enumerate())


def _is_idle(thread: threading.Thread) -> bool:
    """Whether a thread is one of a pool that has nothing to do."""
    arguments = getattr(thread, "_args", None) or ()
    pool = arguments[0]() if arguments and callable(arguments[0]) else None
    threads, idle, jobs = (getattr(pool, name, None) for name in ("_threads", "_idle_semaphore", "_work_queue"))
    if threads is None or idle is None or jobs is None:
        return False
    return thread in threads and jobs.empty() and idle._value >= len(threads)
