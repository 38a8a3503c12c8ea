"""Records of others into the store, with the runs that they make."""

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Final

from spanreplay.replay.inputs.source_losses import Losses
from spanreplay.replay.rebuilding.runs import derive, index
from spanreplay.spans.record import Record, SpanRecord
from spanreplay.store.rows import RunRow, StepRow

if TYPE_CHECKING:
    from spanreplay.store.store import AddReport, Store

ORIGIN: Final = "import"
_OBJECTS: Final = 200_000


def import_records(store: "Store", records: Iterable[Record], losses: Losses | None = None) -> "AddReport":
    """Stores the records and derives their runs. Importing the same ones again changes nothing.

    What an earlier input had lost of a trace is forgotten once one without a loss has all of its spans.

    Args:
        store: where to; other processes may use it meanwhile.
        records: read once, in batches: memory does not grow with their number.
        losses: what the input has lost, by trace id; looked at when the records have been read.

    Raises:
        StoreError: The store cannot be read or written.
    """
    spans: dict[str, set[str]] = {trace_id: set() for trace_id in store.source_losses()}
    with _rarely_collected():
        report = store.add(_counted(records, spans) if spans else records, origin=ORIGIN, derive=_derive)
    lost = losses or {}
    store.put_source_losses(lost, {trace_id: len(seen) for trace_id, seen in spans.items() if seen and trace_id not in lost})
    if lost or spans or report.stale != 0:
        index(store)
    return report


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


def _derive(records: Sequence[Record]) -> tuple[list[RunRow], list[StepRow]]:
    """The runs of some traces, each as if it were alone: what is made of one must not depend on which others are at hand."""
    runs: list[RunRow] = []
    steps: list[StepRow] = []
    for _, trace in groupby(records, key=lambda record: record.trace_id):
        made = derive(list(trace))
        runs += made[0]
        steps += made[1]
    return runs, steps
