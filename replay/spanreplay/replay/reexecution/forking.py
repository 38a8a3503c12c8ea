"""Copies of a replayed process, and what of ``multiprocessing`` may start: they are guarded as their parent is, and replay by themselves.

A copy has the guard, and what the kernel holds, of the process that it was made of. A process that ``spawn`` or the fork server start is a
Python of the same start-up shim.
"""

import os
import sys
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import PurePath
from types import FrameType
from typing import Any, Final

from spanreplay.boundary import scope as scopes

_STARTS: Final = ("multiprocessing.util", "multiprocessing.popen_fork")
"""Modules that start processes for all of multiprocessing."""
_SPAWNS: Final = "from multiprocessing.spawn import"
_TRACKS: Final = "from multiprocessing.resource_tracker import"
_SERVES: Final = "from multiprocessing.forkserver import"

_reserved = threading.local()
_begin: Callable[[str, str], None] | None = None


def follow(begin: Callable[[str, str], None]) -> None:
    """Have every copy of this process, and every copy of a copy, go on by itself.

    Args:
        begin: called in the copy with the causal path at which it was made, and the id of the live run it was made in.
    """
    global _begin  # noqa: PLW0603 — a process has one
    if _begin is None and hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_child=_after)
    _begin = begin


def _before() -> None:
    scope = scopes.current_scope() if scopes.process.active else None
    replayed = scope is not None and scope.session.mode == "replay" and scope.run is not None
    _reserved.place = (scope.fork("fork").path, scope.run.run_id) if replayed else None  # type: ignore[union-attr]


def _after() -> None:
    place = getattr(_reserved, "place", None)
    if place is not None and _begin is not None:
        try:
            _begin(*place)
        except Exception as error:  # noqa: BLE001 — going on would be answered out of turn
            os.write(2, f"spanreplay: nothing can be replayed in a copy of the process: {type(error).__name__}: {error}\n".encode())
            os._exit(125)


def may_start(event: str, args: Sequence[Any], frame: FrameType | None, *, confined: bool) -> bool:
    """Whether an audit event is the start of a process that replays by itself.

    Args:
        event: its name.
        args: its arguments.
        frame: who acts.
        confined: the kernel confines this process and its children; else the fork server, which no guard is armed in, may not start.
    """
    if event == "os.fork":
        return True
    if event == "os.kill":
        return _is_child(args[0])
    if event != "_posixsubprocess.fork_exec" or not _is_of_multiprocessing(frame):
        return False
    words = [os.fsdecode(word) for word in args[0]]
    if not words or PurePath(words[0]).name != PurePath(sys.executable).name:
        return False
    code = next((after for word, after in pairwise(words) if word == "-c"), "")
    return code.startswith((_SPAWNS, _TRACKS)) or (code.startswith(_SERVES) and confined)


def _is_of_multiprocessing(frame: FrameType | None) -> bool:
    for _ in range(_NEAR):
        if frame is None:
            return False
        if frame.f_globals.get("__name__") in _STARTS:
            return True
        frame = frame.f_back
    return False


def _is_child(pid: object) -> bool:
    """Whether a process was started by multiprocessing in this one."""
    module = sys.modules.get("multiprocessing.process")
    children = getattr(module, "_children", ())
    return any(getattr(getattr(child, "_popen", None), "pid", None) == pid for child in tuple(children))


_NEAR: Final = 12
"""Frames between an act and whoever does it."""
