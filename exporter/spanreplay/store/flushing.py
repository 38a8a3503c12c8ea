"""Writing what a journal has gathered: a second after the first of it was, and before the process leaves past its own end.

A child that :mod:`multiprocessing` has forked, and any program that says so, ends by ``os._exit``, which runs no ``atexit`` function; a
program that becomes another one, by ``os.exec*``, runs none either.
"""

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, Protocol

SECONDS: Final = 1.0


class Flushes(Protocol):
    """What a :class:`Flusher` flushes."""

    def flush(self) -> None:
        """Write what was gathered."""
        ...


class Flusher:
    """Flushes a writer a second after it was woken. Its thread is made when it is needed, and ends when it is not.

    Args:
        writer: held weakly: a writer that nobody holds any more keeps no thread.
    """

    def __init__(self, writer: Flushes) -> None:
        self._writer = weakref.ref(writer)
        self._awake = False

    def wake(self) -> bool:
        """Something is gathered. The caller serialises its calls. ``False``: nobody will write it, for there are no more threads."""
        if not self._awake:
            self._awake = True
            try:
                threading.Thread(target=self._run, name="spanreplay-journal", daemon=True).start()
            except RuntimeError:  # the interpreter shuts down
                self._awake = False
        return self._awake

    def _run(self) -> None:
        time.sleep(SECONDS)
        self._awake = False
        writer = self._writer()
        if writer is not None:
            writer.flush()


_LEAVE: Final = ("_exit", "execv", "execve")
"""Functions of :mod:`os` that the others of their kind end in."""
_last: Final[list[Callable[[], None]]] = []


def before_leaving(flush: Callable[[], None]) -> None:
    """Have something done before ``os._exit`` and ``os.exec*``, in this process and those forked of it. Only the first call counts.

    Args:
        flush: raises nothing that matters: the process leaves in any case.
    """
    if _last:
        return
    _last.append(flush)
    for name in _LEAVE:
        setattr(os, name, _flushed_first(getattr(os, name)))


def _flushed_first(leave: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(leave)
    def leaving(*arguments: Any, **named: Any) -> Any:
        with contextlib.suppress(Exception):
            for flush in _last:
                flush()
        return leave(*arguments, **named)

    return leaving
