"""Records of others into the store, with the runs that they make."""

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Final, Protocol

from spanreplay.replay.inputs.source_losses import Losses
from spanreplay.replay.rebuilding.runs import derive, index
from spanreplay.spans.record import Record, SpanRecord
from spanreplay.store.rows import RunRow, StepRow

if TYPE_CHECKING:
    from spanreplay.store.store import AddReport, Store

ORIGIN: Final = "import"
_OBJECTS: Final = 200_000
_DERIVING: Final = "deriving runs"


class Progress(Protocol):
    """Who is told how far an import is, once all records have been read."""

    def __call__(self, number: int) -> None:
        """So much more is done of what began last."""

    def then(self, what: str, total: int | None) -> None:
        """This begins, in words, and has so much to do."""


def import_records(
    store: "Store", records: Iterable[Record], losses: Losses | None = None, progress: Progress | None = None
) -> "AddReport":
    """Stores the records and derives their runs. Importing the same ones again changes nothing.

    What an earlier input had lost of a trace is forgotten once one without a loss has all of its spans.

    Args:
        store: where to; other processes may use it meanwhile.
        records: read once, in batches: memory does not grow with their number.
        losses: what the input has lost, by trace id; looked at when the records have been read.
        progress: is told what goes on after that.

    Raises:
        StoreError: The store cannot be read or written.
    """
    spans: dict[str, set[str]] = {trace_id: set() for trace_id in store.source_losses()}
    with _rarely_collected():
        read = _counted(records, spans) if spans else records
        following = None if progress is None else _Following(progress)
        if following is None:
            report = store.add(read, origin=ORIGIN, derive=_derive)
        else:
            report = store.add(following.read(read), origin=ORIGIN, derive=following.derive)
    lost = losses or {}
    store.put_source_losses(lost, {trace_id: len(seen) for trace_id, seen in spans.items() if seen and trace_id not in lost})
    if lost or spans or report.stale != 0:
        if progress is not None:
            progress.then(_DERIVING, report.stale or None)
        index(store, advance=progress)
    return report


class _Following:
    """Counts the records of an import whose runs are still to be derived when the last one has been read."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._left = 0
        self._all_read = False

    def read(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            self._left += 1
            yield record
        self._progress.then(_DERIVING, self._left)
        self._all_read = True

    def derive(self, records: Sequence[Record]) -> tuple[list[RunRow], list[StepRow]]:
        self._left -= len(records)
        return _derive(records, self._progress if self._all_read else None)


def _counted(records: Iterable[Record], spans: dict[str, set[str]]) -> Iterator[Record]:
    for record in records:
        if isinstance(record, SpanRecord) and record.trace_id in spans:
            spans[record.trace_id].add(record.span_id)
        yield record


@contextmanager
def _rarely_collected() -> Iterator[None]:
    """Records hold no cycles, and looking for some among all that is at hand takes as long as reading it."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, 50, 1_000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _derive(records: Sequence[Record], advance: Callable[[int], object] | None = None) -> tuple[list[RunRow], list[StepRow]]:
    """The runs of some traces, each as if it were alone: what is made of one must not depend on which others are at hand."""
    runs: list[RunRow] = []
    steps: list[StepRow] = []
    for _, trace in groupby(records, key=lambda record: record.trace_id):
        of_trace = list(trace)
        made = derive(of_trace)
        runs += made[0]
        steps += made[1]
        if advance is not None:
            advance(len(of_trace))
    return runs, steps
