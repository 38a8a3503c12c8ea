"""Progress of work that may last over a second: on stderr, on a terminal only, gone when the work is done."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from spanreplay.cli.options import quiet

T = TypeVar("T")
Advance = Callable[[int], None]


def _nothing(_: int) -> None:
    return None


@contextmanager
def working(what: str, *, shown: bool = True) -> Iterator[Advance]:
    """Show a moving bar while the body runs; gives a function that counts what is done.

    Args:
        what: ``importing traces.json``.
        shown: false where the work is known to be short.
    """
    if not shown or quiet() or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield _nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from spanreplay.replay.showing import safe

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.completed:,}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(safe(what), total=None)
        yield lambda number: progress.advance(task, number)


def counted(items: Iterable[T], advance: Advance) -> Iterator[T]:
    """The same items, counted as they pass."""
    for item in items:
        advance(1)
        yield item
