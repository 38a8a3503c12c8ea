"""What an agent does past every seam is named while it is recorded: files it writes, databases it opens, connections it makes.

Only Python's own entrances are watched, and only in the agent's own code: what happens inside a step belongs to that step. Nothing is
stopped or kept but the name, so that the record can say what a replay will refuse. For processes see
:mod:`spanreplay.instrumentation.shims.started`.
"""

# This runs whenever a file is opened for writing; pathlib would be most of what it costs.
# ruff: noqa: PTH100, PTH109, PTH120

import builtins
import functools
import io
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import wrapt
from opentelemetry import context as otel_context

from spanreplay.boundary import scope as scopes
from spanreplay.instrumentation import skills
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.own_code import caller

FILE: Final = "file written"
DATABASE: Final = "database opened"
CONNECTION: Final = "connection made"

_MOST: Final = 100
_MOST_TEMPORARY: Final = 10_000
_temporary: Final[set[str]] = set()
"""Files and folders that :mod:`tempfile` has made."""
_SUPPRESSED: Final = (
    getattr(otel_context, "_SUPPRESS_INSTRUMENTATION_KEY", "suppress_instrumentation"),  # made by create_key: not the same in two processes
    "suppress_instrumentation",
    "suppress_http_instrumentation",
)
_patches = Patches()
_telling: Final[ContextVar[bool]] = ContextVar("spanreplay.telling", default=False)


class _Starting(threading.local):
    now: bool = False


starting: Final = _Starting()
"""A process is being started in this thread, and named: whatever that takes is no act of its own."""


@contextmanager
def unnamed() -> Iterator[None]:
    """What this thread does inside is part of something that the record has."""
    before = starting.now
    starting.now = True
    try:
        yield
    finally:
        starting.now = before


@contextmanager
def telling() -> Iterator[None]:
    """What is connected inside, in this context, is telemetry: no act of the agent's, and a replay drops it."""
    token = _telling.set(True)
    try:
        yield
    finally:
        _telling.reset(token)


def temporary() -> set[str]:
    """Files and folders that :mod:`tempfile` has made since the shims are there."""
    return _temporary


def note(what: str, target: str) -> None:
    """Name something that the agent's own code did past every seam; once a run."""
    scope = scopes.current_scope() if scopes.process.active and not starting.now else None
    if scope is None or scope.run is None or scope.session.mode != "record":
        return
    if scope.step is not None and scope.step.call.kind != "agent":
        return
    if _telling.get() or any(otel_context.get_value(key) for key in _SUPPRESSED):
        return
    if len(scope.run.untaped) < _MOST:
        scope.run.untaped.setdefault((what, target))


class _Open:
    """Stands in for ``open``. No function: one that is kept in a class would become a method, which the builtin does not."""

    def __init__(self, original: Callable[..., Any]) -> None:
        self._original = original
        functools.update_wrapper(self, original, updated=())

    def __call__(self, file: Any, mode: Any = "r", *args: Any, **kwargs: Any) -> Any:
        made = self._original(file, mode, *args, **kwargs)
        writes = isinstance(mode, str) and (not mode.startswith(("r", "U")) or "+" in mode)
        if writes and scopes.process.active and caller().f_globals.get("__name__") != "tempfile":
            _note_file(file)
        elif not writes and scopes.process.active and not starting.now and isinstance(file, str | os.PathLike):
            path = os.fspath(file)
            if isinstance(path, str) and path.endswith(skills.MAIN):
                skills.opened(path)
        return made


def _remembering(original: Callable[..., Any]) -> Callable[..., Any]:
    """``mkstemp`` and ``mkdtemp``: a replay makes such files in its own scratch folder."""

    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        made = original(*args, **kwargs)
        if scopes.process.active and len(_temporary) < _MOST_TEMPORARY:
            path = made[1] if isinstance(made, tuple) else made
            if isinstance(path, str):
                _temporary.add(os.path.abspath(path))
        return made

    return make


def _is_temporary(path: str) -> bool:
    while path not in _temporary:
        above = os.path.dirname(path)
        if above == path:
            return False
        path = above
    return True


def _note_file(file: Any) -> None:
    try:
        if isinstance(file, int):
            return
        path = os.path.abspath(os.fsdecode(file))
        if path.startswith("/dev/") or _is_temporary(path) or _importing():
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


_sqlite_hooked = False


def install() -> None:
    """Watch ``open``, ``sqlite3.connect`` and ``socket.connect``."""
    global _sqlite_hooked  # noqa: PLW0603 — a post-import hook cannot be taken back
    _patches.replace(builtins, "open", _Open)
    _patches.replace(io, "open", lambda _: builtins.open)
    for name in ("mkdtemp", "mkstemp"):
        _patches.replace(tempfile, name, _remembering)
    for name in ("connect", "connect_ex"):
        _patches.replace(socket.socket, name, _connecting)
    if "sqlite3" in sys.modules:
        _watch_sqlite(sys.modules["sqlite3"])
    elif not _sqlite_hooked:
        wrapt.register_post_import_hook(_watch_sqlite, "sqlite3")
        _sqlite_hooked = True


def _watch_sqlite(module: Any) -> None:
    from spanreplay.instrumentation import shims

    if shims._installed:
        _patches.replace(module, "connect", _connecting_database)
        _patches.replace(module.dbapi2, "connect", lambda _: module.connect)  # SQLAlchemy takes it from there


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
    _temporary.clear()
