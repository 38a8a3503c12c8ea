"""Processes that the agent's own code starts are named while it is recorded, as a replay refuses them.

Watched are the entrances of ``subprocess`` (asyncio's too), ``os.system``, ``os.spawn*``, ``os.posix_spawn``, ``multiprocessing``, and
forking, of which :func:`forking` is told. Who only looks at the machine is not named, see :mod:`spanreplay.instrumentation.probes`.
"""

import functools
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final

import wrapt

from spanreplay.boundary import scope as scopes
from spanreplay.content.redaction import Redactor
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.probes import only_looks
from spanreplay.instrumentation.shims import untaped
from spanreplay.instrumentation.shims.own_code import caller

PROCESS: Final = "process started"

_LONGEST: Final = 200
"""Characters of a command line, as a replay shows it."""
_MULTIPROCESSING: Final = "multiprocessing.process"
_BOOTSTRAP: Final = "SPANREPLAY_BOOTSTRAP"
"""Set in the processes of a recorded command."""

_patches = Patches()
_hooked = False


def forking(frame: FrameType | None) -> None:
    """The process is about to fork for the code that runs in ``frame``."""
    if not _is_replayed():
        _note("(a copy of this process)", frame)


def _is_replayed() -> bool:
    """Whether a replay runs copies of this process, and what multiprocessing starts: that of a command does, under the same guard."""
    return bool(os.environ.get(_BOOTSTRAP))


def forked() -> None:
    """In a forked child: what started it is over."""
    untaped.starting.now = False


def _note(command: object, frame: FrameType | None) -> None:
    scope = scopes.current_scope() if scopes.process.active and not untaped.starting.now else None
    if scope is None or scope.run is None or scope.session.mode != "record":
        return
    try:
        if not only_looks(frame):
            untaped.note(PROCESS, shown(command, scope.session.redactor))
    except (TypeError, ValueError):  # what is odd about a command is for the function to say
        return


def shown(command: object, redactor: Redactor) -> str:
    """A command line without secrets, on one line of at most 200 characters."""
    if isinstance(command, str | bytes | os.PathLike):
        text = os.fsdecode(command)
        try:
            words = shlex.split(text)
        except ValueError:  # the shell knows more quotes than Python does
            words = text.split()
        kept = redactor.arguments(words)
        text = text if kept == words else " ".join(kept)
    elif isinstance(command, Sequence):
        text = shlex.join(redactor.arguments([os.fsdecode(word) for word in command]))
    else:
        text = str(command)
    text = " ".join(redactor.text(text)[0].split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _watching(command_of: Callable[[tuple[Any, ...], dict[str, Any]], object]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def start(*args: Any, **kwargs: Any) -> Any:
            if not scopes.process.active or untaped.starting.now:
                return original(*args, **kwargs)
            if command_of is not _worker or not _is_replayed():
                _note(command_of(args, kwargs), caller())
            untaped.starting.now = True
            try:
                return original(*args, **kwargs)
            finally:
                untaped.starting.now = False

        return start

    return make


def _argument(position: int, name: str) -> Callable[[tuple[Any, ...], dict[str, Any]], object]:
    return lambda args, kwargs: args[position] if len(args) > position else kwargs.get(name)


def _worker(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> str:
    """What a ``multiprocessing`` process runs: the same name for all workers of a pool."""
    runs = getattr(args[0], "_target", None) or type(args[0])
    while isinstance(runs, functools.partial):
        runs = runs.func
    return f"multiprocessing {getattr(runs, '__module__', '?')}.{getattr(runs, '__qualname__', type(runs).__qualname__)}"


def _multiprocessing(module: Any) -> None:
    from spanreplay.instrumentation import shims

    if shims._installed:
        _patches.replace(module.BaseProcess, "start", _watching(_worker))


def install() -> None:
    """Watch every entrance."""
    global _hooked  # noqa: PLW0603 — a post-import hook cannot be taken back
    _patches.replace(subprocess.Popen, "__init__", _watching(_argument(1, "args")))
    for name, position in (("system", 0), ("posix_spawn", 1), ("posix_spawnp", 1), ("_spawnvef", 2)):
        if hasattr(os, name):
            _patches.replace(os, name, _watching(_argument(position, "command" if name == "system" else "argv")))
    if _MULTIPROCESSING in sys.modules:
        _multiprocessing(sys.modules[_MULTIPROCESSING])
    elif not _hooked:
        wrapt.register_post_import_hook(_multiprocessing, _MULTIPROCESSING)
        _hooked = True


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
