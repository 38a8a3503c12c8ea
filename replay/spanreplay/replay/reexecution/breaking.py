"""A debugger in the frame of the agent that makes a call: Python's own, ``pdb``, on the terminal of the command.

It opens at once, and not at the next line as ``breakpoint()`` does: the call is made, and not answered yet. ``c`` goes on, ``n`` to the
next line of the agent, ``q`` ends the replay there. Frames of spanreplay are not stepped into.
"""

import asyncio
import bdb
import pdb  # noqa: T100 — it is what is offered
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Final, NoReturn

from spanreplay.replay.isolation.callers import is_ours, user_frame

_DEEPEST: Final = 500
"""Coroutines that wait for each other, of one task."""
_CONTINUED: Final = -1
"""``bdb``'s mark for: stop at break points only."""


class _Debugger(pdb.Pdb):
    """A :class:`pdb.Pdb` that opens in a given frame; who leaves it later on leaves the agent by ``leave``."""

    def __init__(self, leave: Callable[[], NoReturn]) -> None:
        super().__init__(skip=["spanreplay", "spanreplay.*"], nosigint=True)
        self._leave = leave

    def open_in(self, frame: FrameType) -> bool:
        """Talk to the user; gives whether the program is to go on."""
        self.reset()
        outer: FrameType | None = frame
        while outer is not None:
            outer.f_trace = self._traced
            self.botframe = outer
            outer = outer.f_back
        self.set_step()
        sys.settrace(None)
        self.interaction(frame, None)
        if getattr(self, "quitting", False):
            sys.settrace(None)
            return False
        if getattr(self, "stoplineno", _CONTINUED) != _CONTINUED or self.breaks:
            sys.settrace(self._traced)
        return True

    def _traced(self, frame: FrameType, event: str, argument: Any) -> Any:
        try:
            return self.trace_dispatch(frame, event, argument)
        except bdb.BdbQuit:  # agents catch what is no BaseException of ours
            sys.settrace(None)
        return self._leave()


def debug(what: str, leave: Callable[[], NoReturn]) -> None:
    """Open a debugger in the frame of the agent around this call.

    Args:
        what: what there is to say first.
        leave: ends the agent, by an exception, at the place where the user leaves the debugger: here, or some lines later.
    """
    frame, remark = place(sys._getframe(1))
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty()):
        print(f"spanreplay: no debugger {what}: this process has no terminal", file=sys.stderr)  # noqa: T201 — there is no other way out
        return
    print(f"spanreplay: {what}{remark}; c goes on, n to the next line, q ends here", flush=True)  # noqa: T201
    if not _Debugger(leave).open_in(frame):
        leave()


def place(inner: FrameType) -> tuple[FrameType, str]:
    """The frame to look at, and what there is to say of it.

    The frames around a task are those of the event loop, and whoever started that: none of them makes the call. Where the task has no frame
    of the user's own, as one that is a call of an SDK and nothing else, it is the frame that waits for it.
    """
    task = _task()
    if task is None:
        return user_frame(inner) or _not_ours(inner), ""
    outermost = getattr(task.get_coro(), "cr_frame", None)
    found, frame = user_frame(inner), inner
    while frame is not outermost and frame is not found and frame.f_back is not None:
        frame = frame.f_back
    if found is not None and frame is found:
        return found, ""
    for waiting in _waiting(task):
        if (suspended := _suspended(waiting)) is not None:
            return suspended, ", by a task without a frame of your own; this one waits for it"
    return _not_ours(inner), ", by a task without a frame of your own"


def _task() -> "asyncio.Task[Any] | None":
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _waiting(task: "asyncio.Task[Any]") -> "list[asyncio.Task[Any]]":
    """The tasks that wait for a task, by itself or among those of a ``gather``, a task group or an ``asyncio.wait``."""
    told = _told(task)
    found = []
    for other in asyncio.all_tasks():
        waits_for = getattr(other, "_fut_waiter", None)
        waits = waits_for is task or task in (getattr(waits_for, "_children", None) or ())
        if other is not task and (waits or any(one is other or one is waits_for for one in told)):
            found.append(other)
    return found


def _told(task: "asyncio.Task[Any]") -> list[object]:
    """What is told when a task ends, as far as it can be seen: the owners of its callbacks, what these hold, and the tasks of groups."""
    found: list[object] = []
    for entry in getattr(task, "_callbacks", None) or ():
        callback = entry[0] if isinstance(entry, tuple) else entry
        function = getattr(callback, "func", callback)
        found += [getattr(function, "__self__", None), *getattr(callback, "args", ())]
        for cell in getattr(function, "__closure__", None) or ():
            with suppress(ValueError):  # an empty cell
                found.append(cell.cell_contents)
    groups = [getattr(one, "_parent_task", None) or getattr(getattr(one, "cancel_scope", None), "_host_task", None) for one in found]
    return [one for one in (*found, *groups) if isinstance(one, asyncio.Future)]


def _suspended(task: "asyncio.Task[Any]") -> FrameType | None:
    """The innermost frame of the user's own in a task that waits."""
    found: FrameType | None = None
    inner: Any = task.get_coro()
    for _ in range(_DEEPEST):
        frame = getattr(inner, "cr_frame", None)
        if frame is None:
            break
        found = frame if user_frame(frame) is frame else found
        inner = getattr(inner, "cr_await", None)
    return found


def _not_ours(frame: FrameType) -> FrameType:
    found: FrameType | None = frame
    while found is not None and is_ours(str(found.f_globals.get("__name__")), found.f_code.co_filename):
        found = found.f_back
    return found or frame
