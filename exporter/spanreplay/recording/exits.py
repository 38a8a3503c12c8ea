"""How a process that nobody watches ends: its exit code, as far as it can be known from inside."""

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, cast


def tell_of_crash(told: Callable[[BaseException], None]) -> None:
    """Have ``told`` called with the exception that ends this process, and not with one of a process that it has forked."""
    before, process = sys.excepthook, os.getpid()

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if os.getpid() == process:
            with suppress(Exception):  # telemetry never breaks the agent
                told(error)
        before(kind, error, trace)

    sys.excepthook = excepthook


class ExitWatch:
    """Notes the exit code given to ``sys.exit`` in the main thread, and unhandled exceptions.

    ``raise SystemExit(n)`` and ``os._exit(n)`` pass it by; the code is then ``None``.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        """Start watching."""
        self._watch_exit(sys.exit)
        self._watch_exceptions(sys.excepthook)

    def uninstall(self) -> None:
        """Stop watching, where nobody has put something on top meanwhile."""
        while self._undo:
            self._undo.pop()()

    def _watch_exit(self, original: Callable[..., Any]) -> None:
        def exit(status: Any = None, /) -> None:  # noqa: A001 — it stands in for sys.exit
            if threading.current_thread() is threading.main_thread():
                self.code = 0 if status is None else (status & 0xFF) if isinstance(status, int) else 1
            original(status)

        def undo() -> None:
            if cast("Any", sys.exit) is exit:
                sys.exit = original

        sys.exit = cast("Any", exit)
        self._undo.append(undo)

    def _watch_exceptions(self, original: Callable[..., Any]) -> None:
        def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            self.code = 130 if issubclass(kind, KeyboardInterrupt) else 1
            original(kind, error, trace)

        def undo() -> None:
            if sys.excepthook is excepthook:
                sys.excepthook = original

        sys.excepthook = excepthook
        self._undo.append(undo)
