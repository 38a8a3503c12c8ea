"""Progress of work that may last over a second: on stderr, on a terminal only, gone when the work is done."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, TypeVar

from spanreplay.cli.options import quiet

T = TypeVar("T")
Advance = Callable[[int], None]

PATIENCE_SECONDS: Final = 0.5
"""A bar that comes and goes at once is worse than none."""


def _nothing(_: int) -> None:
    return None


def _wanted() -> bool:
    return not quiet() and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def working(what: str, *, long: bool = False, total: int | None = None) -> Iterator[Advance]:
    """Show a bar while the body runs, once it has taken a while; gives a function that counts what is done.

    Args:
        what: ``importing traces.json``.
        total: what will have been counted at the end; without it the bar only moves.
        long: known to take a while, so show it at once; without a total nothing need be counted in the body.
    """
    if not _wanted():
        yield _nothing
        return
    with ExitStack() as shown:
        if long:
            yield _bar(shown, what, total)
            return
        began = time.monotonic()
        waiting = 0
        advance: Advance | None = None

        def count(number: int) -> None:
            nonlocal advance, waiting
            if advance is not None:
                advance(number)
                return
            waiting += number
            if time.monotonic() - began > PATIENCE_SECONDS:
                advance = _bar(shown, what, total)
                advance(waiting)

        yield count


def _bar(shown: ExitStack, what: str, total: int | None) -> Advance:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from spanreplay.replay.showing import safe

    told = (TextColumn("{task.completed:,}"), TimeElapsedColumn()) if total is None else (TaskProgressColumn(), TimeRemainingColumn())
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), *told)
    to_terminal = sys.stdout.isatty()  # what is printed meanwhile goes above the bar; elsewhere it stays what it is
    progress = shown.enter_context(Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=to_terminal))
    task = progress.add_task(safe(what), total=total)
    return lambda number: progress.advance(task, number)


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
