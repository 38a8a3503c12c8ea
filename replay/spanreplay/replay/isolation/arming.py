"""Which guards watch the code that is running now.

A guard is armed for a context (and what copies it: tasks, callbacks, ``to_thread``), for a thread, or for the process. The sets are
joined, so an inner guard never weakens an outer one.
"""

import sys
import threading
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Final, Protocol, TypeAlias


class Sentry(Protocol):
    """What the audit hook asks."""

    def check(self, event: str, args: tuple[Any, ...]) -> BaseException | None:
        """Judge one event; give the exception to raise, or None to let it happen."""
        ...

    def looked_up(self, host: str, addresses: Sequence[str]) -> None:
        """Be told what a look-up that was let through has given."""
        ...


Sentries: TypeAlias = tuple[Sentry, ...]


class _ThreadState(threading.local):
    sentries: Sentries = ()


class _ProcessState:
    sentries: Sentries = ()


CONTEXT: Final[ContextVar[Sentries]] = ContextVar("spanreplay_guards", default=())
THREAD: Final = _ThreadState()
PROCESS: Final = _ProcessState()


def carried() -> Sentries:
    """Give the guards that a thread started now inherits: those of the context and of the thread."""
    return join(CONTEXT.get(), THREAD.sentries)


def active() -> Sentries:
    """Give all guards that watch the running code."""
    return join(carried(), PROCESS.sentries)


def join(first: Sentries, second: Sentries) -> Sentries:
    """Give both, each guard once."""
    if not second or first is second:
        return first
    if not first:
        return second
    return first + tuple(sentry for sentry in second if sentry not in first)


def without(sentries: Sentries, sentry: Sentry) -> Sentries:
    """Take one guard out."""
    return tuple(other for other in sentries if other is not sentry)


def in_event_loop() -> bool:
    """Tell whether other tasks may run in this thread before the present block ends."""
    asyncio_events = sys.modules.get("asyncio.events")
    if asyncio_events is not None and asyncio_events._get_running_loop() is not None:
        return True
    trio_lowlevel = sys.modules.get("trio.lowlevel")
    return trio_lowlevel is not None and bool(trio_lowlevel.in_trio_task())
