"""Which tasks of asyncio ended by being cancelled is kept: what they would have called next was never called, however fast a replay is.

Of the first tasks that run one function from one place it is kept though they have made no call; of the others, if they have made one.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from spanreplay.boundary.orders import channel_of, is_answered

if TYPE_CHECKING:
    from spanreplay.boundary.scope import Scope

_NAME: Final = "cancelled"
_now: Final = time.monotonic
_STARTED: Final = 1000
"""Tasks of one name started from one place that are watched from their start: one may start its successor for ever."""


def watch(scope: "Scope") -> None:
    """Keep whether the task that runs here, and has made a call in this scope, ends by being cancelled."""
    if scope.session.orders is None or _NAME in scope.memo:
        return
    scope.memo[_NAME] = True
    task = asyncio.current_task() if asyncio._get_running_loop() is not None else None
    if task is not None and not is_answered(scope):
        task.add_done_callback(partial(_ended, scope, _now()))


def started(scope: "Scope", task: "asyncio.Future[Any]") -> None:
    """Keep whether a task that was started just now, and whose scope that is, ends by being cancelled."""
    if scope.session.orders is not None and scope.number < _STARTED and not is_answered(scope):
        scope.memo[_NAME] = True
        task.add_done_callback(partial(_ended, scope, _now()))


@contextmanager
def awaited(scope: "Scope") -> Iterator[None]:
    """Keep whether what a task awaits itself, and whose scope that is, ends by being cancelled, as if it were a task of its own."""
    if scope.session.orders is None or scope.number >= _STARTED or is_answered(scope):
        yield
        return
    scope.memo[_NAME], began = True, _now()
    try:
        yield
    except asyncio.CancelledError:
        _keep(scope, began)
        raise


def _ended(scope: "Scope", began: float, task: "asyncio.Future[Any]") -> None:
    if task.cancelled():
        _keep(scope, began)


def _keep(scope: "Scope", began: float) -> None:
    session, channel = scope.session, channel_of(scope, _NAME)
    if session.orders is not None and channel is not None:
        session.orders.add(channel, int((_now() - began) * 1000), (session.latest,))


def recorded(scope: "Scope") -> tuple[int, int] | None:
    """Where in the order of the recorded steps the task of this scope was cancelled, and how many milliseconds after its start.

    ``None`` where it was not, or nothing is told of that.
    """
    told = scope.session.told_orders
    channel = None if told is None or told.released else channel_of(scope, _NAME)
    left = None if told is None or channel is None else told.left(channel)
    if not left:
        return None
    ms, members = left[0]
    return (members[0], ms) if len(members) == 1 and isinstance(members[0], int) else None
