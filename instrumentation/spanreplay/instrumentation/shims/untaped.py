"""What an agent does past every seam is named while it is recorded: files it writes, databases it opens, connections it makes.

Only Python's own entrances are watched, and only in the agent's own code: what happens inside a step belongs to that step. Nothing is
stopped or kept but the name, so that the record can say what a replay will refuse.
"""

import builtins
import functools
import io
import os
import socket
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from typing import Any, Final

from opentelemetry import context as otel_context

from spanreplay.boundary import scope as scopes
from spanreplay.instrumentation.shims.patching import Patches

FILE: Final = "file written"
DATABASE: Final = "database opened"
CONNECTION: Final = "connection made"

_MOST: Final = 100
_SUPPRESSED: Final = ("suppress_instrumentation", "suppress_http_instrumentation")
_patches = Patches()


def note(what: str, target: str) -> None:
    """Name something that the agent's own code did past every seam; once a run."""
    scope = scopes.current_scope() if scopes.process.active else None
    if scope is None or scope.run is None or scope.session.mode != "record":
        return
    if scope.step is not None and scope.step.call.kind != "agent":
        return
    if any(otel_context.get_value(key) for key in _SUPPRESSED):
        return
    if len(scope.run.untaped) < _MOST:
        scope.run.untaped.setdefault((what, target))


def _opening(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:  # noqa: A001 — it stands in for it
        made = original(file, mode, *args, **kwargs)
        if scopes.process.active and isinstance(mode, str) and (not mode.startswith(("r", "U")) or "+" in mode):
            _note_file(file)
        return made

    return open


def _note_file(file: Any) -> None:
    try:
        if isinstance(file, int):
            return
        path = os.path.abspath(os.fsdecode(file))
        if path.startswith((os.devnull, "/dev/", os.path.realpath(tempfile.gettempdir()) + os.sep)) or _importing():
            return
        note(FILE, _shown(path))
    except (TypeError, ValueError, OSError):
        return


def _importing() -> bool:
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _shown(path: str) -> str:
    """Relative to the working directory where it is below it: what ``--allow-write`` takes."""
    here = os.getcwd() + os.sep
    return path.removeprefix(here)


def _connecting_database(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def connect(database: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(database, *args, **kwargs)
        if scopes.process.active:
            try:
                name = os.fsdecode(database)
                if name and ":memory:" not in name and "mode=memory" not in name:
                    note(DATABASE, _shown(os.path.abspath(name)) if not name.startswith("file:") else name)
            except (TypeError, ValueError, OSError):
                pass
        return made

    return connect


def _connecting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def connect(self: socket.socket, address: Any, /) -> Any:
        if scopes.process.active:
            note(CONNECTION, f"{address[0]}:{address[1]}" if isinstance(address, tuple) and len(address) >= 2 else str(address))
        return original(self, address)

    return connect


def install() -> None:
    """Watch ``open``, ``sqlite3.connect`` and ``socket.connect``."""
    _patches.replace(builtins, "open", _opening)
    io.open = builtins.open
    _patches.replace(sqlite3, "connect", _connecting_database)
    for name in ("connect", "connect_ex"):
        _patches.replace(socket.socket, name, _connecting)


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
    io.open = builtins.open
