"""Traces of an import that are still at hand whole, so that their runs need not be read back from the database first.

Which is provably the same only for a trace that the database knew nothing of before the import, of which it has just what was given, each
record once and ordinary, and that has no runs in common with other traces. The runs of every other trace are derived later, from what the
database has.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from spanreplay.semconv.attributes import PROCESS_ID, RUN_ID
from spanreplay.spans.record import LogRecord, Record, SpanRecord
from spanreplay.store.importing import Gained, RecordBatch
from spanreplay.store.rows import RunRow, StepRow
from spanreplay.store.seals import Records, records_given
from spanreplay.store.span_rows import COLUMNS

Derive: TypeAlias = Callable[[list[Record]], tuple[Sequence[RunRow], Sequence[StepRow]]]
"""Gives all runs, and all their steps, of the traces that some records make up; they come by trace, each trace as the store gives it."""

QUIET_BATCHES: Final = 2
"""A trace that nothing more has come of for so many batches has probably ended."""
HELD_BYTES: Final = 32_000_000
"""How much is held, about; beyond it the traces that are quiet for longest are taken to have ended."""

_GIVEN_BYTES: Final = 8_000_000
"""What is given away at a time; what is derived of it takes several times the room."""
_CHANCES: Final = 20
_REMEMBERED: Final = 100_000

_PROCESS: Final = COLUMNS.index("process")
_START: Final = COLUMNS.index("start_ns")
_SEQ: Final = COLUMNS.index("seq_start")
_ATTRIBUTES: Final = COLUMNS.index("attributes")
_SPAN_BYTES: Final = 1_500
_LOG_BYTES: Final = 4_000
_BIG: Final = 2**63


@dataclass(slots=True)
class _Trace:
    gained: list[Gained] = field(default_factory=list)
    size: int = 0
    touched: int = 0


class WholeTraces:
    """Holds the records of an import until their traces seem to have ended."""

    def __init__(self) -> None:
        self._size = 0
        self._batch = 0
        self._generation: int | None = None
        self._traces: OrderedDict[str, _Trace] = OrderedDict()
        """The one that is quiet for longest comes first."""
        self._given: set[str] = set()
        self._count = 0
        """How many were given away before the end."""
        self._returned = 0
        """How many of these had not ended."""

    def take(self, batch: RecordBatch, generation: int) -> None:
        """Takes what a batch has just brought into the database.

        Args:
            batch: as it was loaded.
            generation: of its transaction.
        """
        if generation - 1 != self._generation:  # somebody else has written meanwhile
            self._traces.clear()
            self._size = 0
        self._generation = generation
        self._batch += 1
        self._returned += len(batch.met & self._given)
        self._given -= batch.met
        left_out = {trace_id for trace_id in batch.met if trace_id not in self._traces} | batch.unsettled
        for changed in batch.unsettled & self._traces.keys():
            self._drop(changed)
        for gained in batch.gained:
            trace_id: str | None = gained.record.trace_id
            if trace_id is None or trace_id in left_out:
                continue
            if RUN_ID in gained.record.attributes or PROCESS_ID in gained.record.attributes:
                left_out.add(trace_id)
                self._drop(trace_id)
                continue
            trace = self._traces.get(trace_id)
            if trace is None:
                trace = self._traces[trace_id] = _Trace()
            trace.gained.append(gained)
            size = _size(gained)
            trace.size += size
            self._size += size
            if trace.touched != self._batch:
                trace.touched = self._batch
                self._traces.move_to_end(trace_id)

    def __bool__(self) -> bool:
        return bool(self._traces)

    def ended(self, *, everything: bool) -> Iterator[dict[str, list[Gained]]]:
        """Gives away the traces that seem to have ended, or all of them: some at a time, each with its records as the store gives them."""
        given: dict[str, list[Gained]] = {}
        size = 0
        while self._traces:
            trace_id, trace = next(iter(self._traces.items()))
            if not everything and self._size <= HELD_BYTES and self._batch - trace.touched < QUIET_BATCHES:
                break
            self._drop(trace_id)
            if not everything:
                if self._returned > _CHANCES and self._returned * 2 > self._count:
                    continue  # here traces lie between each other all over: what is derived now is derived again later
                self._count += 1
                if len(self._given) < _REMEMBERED:
                    self._given.add(trace_id)
            given[trace_id] = _in_order(trace.gained)
            size += trace.size
            if size > _GIVEN_BYTES:
                yield given
                given, size = {}, 0
        if given:
            yield given

    def _drop(self, trace_id: str) -> None:
        trace = self._traces.pop(trace_id, None)
        if trace is not None:
            self._size -= trace.size


def summed_up(gained: Iterable[Gained], origin: str) -> Records:
    """What the database has of a trace, of which these are all records."""
    spans, logs = list[tuple[str, str | None]](), list[str]()
    for _, row, _ in gained:
        if len(row) == len(COLUMNS):
            spans.append((row[-1], row[_PROCESS]))
        else:
            logs.append(row[0])
    return records_given(origin, spans, logs)


def _in_order(gained: Iterable[Gained]) -> list[Gained]:
    """As :mod:`spanreplay.store.reading` gives the records of one trace."""
    spans = sorted((one for one in gained if isinstance(one.record, SpanRecord)), key=_span_order)
    logs = sorted((one for one in gained if isinstance(one.record, LogRecord)), key=_log_order)
    return [*spans, *logs]


def _span_order(one: Gained) -> tuple[int, bool, int, str]:
    seq = one.row[_SEQ]
    return one.row[_START], seq is None, seq or 0, one.record.span_id or ""


def _log_order(one: Gained) -> tuple[bool, int, str]:
    time_ns = one.record.time_ns if isinstance(one.record, LogRecord) else 0
    in_column = 0 <= time_ns < _BIG
    return not in_column, time_ns if in_column else 0, one.row[0]


def _size(gained: Gained) -> int:
    if isinstance(gained.record, LogRecord):
        return _LOG_BYTES + gained.bytes
    return _SPAN_BYTES + 2 * len(gained.row[_ATTRIBUTES] or "") + gained.bytes
