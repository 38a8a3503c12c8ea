"""Progress of work that may last over a second: on stderr, on a terminal only, gone when the work is done."""

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from spanreplay.cli.options import quiet

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")
Advance = Callable[[int], None]

PATIENCE_SECONDS: Final = 0.5
"""A bar that comes and goes at once is worse than none."""


class Work:
    """Work that lasts, and that nobody watches."""

    def __call__(self, number: int) -> None:
        """So much more is done."""

    def then(self, what: str, total: int | None) -> None:
        """What was going on is done, and this begins, of which nothing is done yet; arguments as for :func:`working`."""


class _Watched(Work):
    """Shows a bar once it has lasted, whether anything has been counted by then or not."""

    def __init__(self, what: str, total: int | None) -> None:
        self._what, self._total, self._done = what, total, 0
        self._bar: Progress | None = None
        self._shown = ExitStack()
        self._ended = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(PATIENCE_SECONDS, self._show)
        self._timer.daemon = True

    def begin(self) -> None:
        if PATIENCE_SECONDS > 0:
            self._timer.start()
        else:
            self._show()

    def end(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._ended = True
            self._shown.close()

    def __call__(self, number: int) -> None:
        self._done += number
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._done)

    def then(self, what: str, total: int | None) -> None:
        with self._lock:
            self._what, self._total, self._done = what, total, 0
            if self._bar is not None:
                self._bar = None
                self._shown.close()
                self._draw()

    def _show(self) -> None:
        with self._lock:
            if not self._ended:
                self._draw()

    def _draw(self) -> None:
        from spanreplay.replay.showing import safe

        bar = _bar(self._total)
        bar.add_task(safe(self._what), total=self._total, completed=self._done)
        self._bar = self._shown.enter_context(bar)


@contextmanager
def working(what: str, *, total: int | None = None) -> Iterator[Work]:
    """Show a bar while the body runs, once it has taken a while; gives what counts what is done.

    Args:
        what: ``importing traces.json``.
        total: what will have been counted at the end; without it the bar only moves, and nothing need be counted.
    """
    if quiet() or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield Work()
        return
    work = _Watched(what, total)
    work.begin()
    try:
        yield work
    finally:
        work.end()


def _bar(total: int | None) -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    told = (TextColumn("{task.completed:,}"), TimeElapsedColumn()) if total is None else (TaskProgressColumn(), TimeRemainingColumn())
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), *told)
    to_terminal = sys.stdout.isatty()  # what is printed meanwhile goes above the bar; elsewhere it stays what it is
    return Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=to_terminal)


def counted(items: Iterable[T], advance: Advance) -> Iterator[T]:
    """The same items, counted as they pass."""
    for item in items:
        advance(1)
        yield item


_OFTEN: Final = 100


def measured(items: Iterable[T], position: Callable[[], int], advance: Advance) -> Iterator[T]:
    """The same items, while how far what they come from has been read is looked at now and then."""
    before = 0
    for number, item in enumerate(items):
        if number % _OFTEN == 0:
            now = position()
            advance(now - before)
            before = now
        yield item
    advance(position() - before)
