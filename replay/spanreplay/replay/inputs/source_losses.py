"""What an input says or shows that it has lost, by the traces that the loss touches.

Where the trace is known, it is that one; where its place in a file is, those that were running then; a loss of unknown place may be of any
trace in the same file, so it is of all of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from spanreplay.replay.model import Reason, Run
from spanreplay.replay.reading.fields import decoded_json
from spanreplay.replay.reasons import SOURCE_LOSS
from spanreplay.semconv.attributes import SOURCE_LOSSES
from spanreplay.spans.record import Record, SpanRecord

CUT_DOCUMENT: Final = "document-cut"
"""Of a document that was left out, told with that, something is kept."""
LOSSES: Final = frozenset(
    {
        "rejected",
        CUT_DOCUMENT,
        "attribute-dropped",
        "event-dropped",
        "link-dropped",
        "resource-dropped",
        "text-replaced",
        "trace-partial",
        "pages-missing",
        "jaeger-error",
        "trace-absent",
    }
)
"""Codes of a fidelity report that say that something is missing, not only rewritten; what each record shows itself is a gap of its own."""

_SLACK_NS: Final = 10_000_000_000
"""How much later than it ended a span may be written: the batches of an SDK and of a Collector, several processes."""

_LOST: Final = "lost before it came here: "
_LONGEST: Final = 1_000
"""Characters of a loss that another input tells."""
TOLD: Final = 20
"""Losses of a trace that are told one by one."""

Losses: TypeAlias = Mapping[str, Iterable[str]]
"""Trace id to what was lost of it, each for people."""


class _Damage:
    """A loss between two records of a file."""

    __slots__ = ("detail", "since", "until")

    def __init__(self, detail: str, since: int) -> None:
        self.detail = detail
        self.since = since
        """The end of the record before it, nanoseconds; 0 at the beginning."""
        self.until: int | None = None
        """The end of the record behind it; ``None`` at the end of the file."""


class SourceLosses:
    """Gathers them while an input is read, file by file. Memory grows with the traces of a file, not with their records."""

    def __init__(self) -> None:
        self.of_traces: dict[str, dict[str, None]] = {}
        """Trace id to what was lost of it, in the order of the input; complete once the input has been read to its end."""
        self._traces: dict[str, list[int]] = {}
        """Trace id to its first start and its last end."""
        self._everywhere: dict[str, None] = {}
        self._damages: list[_Damage] = []
        self._ended = 0
        self._latest = 0
        self._in_order = True

    def see(self, record: Record) -> None:
        """A record was read from the file."""
        trace_id = record.trace_id
        if isinstance(record, SpanRecord):
            start, end = record.start_ns, record.end_ns or record.start_ns
        else:
            start = end = record.time_ns or record.observed_ns
        if end > self._latest:
            self._latest = end
        elif end < self._latest - _SLACK_NS:
            self._in_order = False
        self._ended = end
        if self._damages and self._damages[-1].until is None:
            for damage in self._damages:
                if damage.until is None:
                    damage.until = end
        if trace_id:
            span = self._traces.get(trace_id)
            if span is None:
                self._traces[trace_id] = [start, end]
            elif start < span[0]:
                span[0] = start
            if span is not None and end > span[1]:
                span[1] = end

    def add(self, detail: str, trace_id: str | None = None) -> None:
        """Something was lost, of the trace or of any that the file has."""
        told = self._everywhere if trace_id is None else self.of_traces.setdefault(trace_id, {})
        if len(told) < TOLD:
            told.setdefault(detail)

    def add_here(self, detail: str) -> None:
        """Something was lost between the record that was read last and the next one.

        Exporters write spans in the order of their end. Where a file has that order, the loss is of a trace that was running then.
        """
        if len(self._damages) < TOLD:
            self._damages.append(_Damage(detail, self._ended))
        else:
            self._damages[-1].until = None

    def end_of_file(self) -> None:
        """The file is read; what follows is of another one."""
        for trace_id, (start, end) in self._traces.items() if self._everywhere or self._damages else ():
            for detail in self._everywhere:
                self.add(detail, trace_id)
            for damage in self._damages:
                before = damage.until is None or start <= damage.until + _SLACK_NS
                if not self._in_order or (before and end >= damage.since - _SLACK_NS):
                    self.add(damage.detail, trace_id)
        self._traces.clear()
        self._everywhere.clear()
        self._damages.clear()
        self._ended = self._latest = 0
        self._in_order = True


def loss_reasons(trace_ids: Iterable[str], losses: Losses) -> list[Reason]:
    """The reasons for a run of these traces to be incomplete."""
    details = dict.fromkeys(detail for trace_id in dict.fromkeys(trace_ids) for detail in losses.get(trace_id, ()))
    return [Reason(code=SOURCE_LOSS, detail=f"{_LOST}{detail}") for detail in details]


def with_losses(records: Iterable[Record], runs: Iterable[Run]) -> list[Record]:
    """Records as they leave: what is known to be lost of each trace is on one of its spans, so that who reads them knows it too."""
    found: dict[str, list[str]] = {}
    for run in runs:
        details = [reason.detail.removeprefix(_LOST) for reason in run.grade_reasons if reason.code == SOURCE_LOSS]
        for trace_id in run.trace_ids if details else ():
            told = found.setdefault(trace_id, [])
            told += [detail for detail in details if detail not in told]
    made = list(records)
    carriers: dict[str, int] = {}
    for place, record in enumerate(made) if found else ():
        if record.trace_id in found:
            known = carriers.setdefault(record.trace_id, place)
            if not _is_root(made[known]) and _is_root(record):
                carriers[record.trace_id] = place
    for trace_id, place in carriers.items():
        made[place] = replace(made[place], attributes={**made[place].attributes, SOURCE_LOSSES: found[trace_id]})
    return made


def _is_root(record: Record) -> bool:
    return isinstance(record, SpanRecord) and record.parent_span_id is None


def losses_on(record: Record) -> tuple[Record, list[str]]:
    """A record without what :func:`with_losses` put on it, and that."""
    told = record.attributes[SOURCE_LOSSES]
    if isinstance(told, str):  # of back ends that have no lists
        told = decoded_json(told)[0]
    texts = [text[:_LONGEST] for text in told if isinstance(text, str)][:TOLD] if isinstance(told, list | tuple) else []
    return replace(record, attributes={name: value for name, value in record.attributes.items() if name != SOURCE_LOSSES}), texts
