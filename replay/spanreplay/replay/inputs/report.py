"""What became of an input: what was read, what was left out and where, and what the rest differs in from what was recorded."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from spanreplay.replay.inputs.input_stream import InputStream
from spanreplay.replay.inputs.same_answers import SameAnswers
from spanreplay.replay.inputs.source_losses import CUT_DOCUMENT, LOSSES, SourceLosses, losses_on
from spanreplay.replay.inputs.survey import Survey
from spanreplay.spans.errors import REJECTED, SIGNAL_SKIPPED, Problem, Problems
from spanreplay.spans.record import Record, SpanRecord

_SHORT: Final = 72
"""Characters of a remark on what was only rewritten."""
KEPT_REJECTIONS: Final = 100
"""How many rejections a report keeps whole; the rest is only counted."""

_DETAILS: Final = {
    REJECTED: "could not be read and was left out",
    "attribute-dropped": "has attributes that could not be read and were left out",
    "event-dropped": "has events that could not be read and were left out",
    "link-dropped": "has links that could not be read and were left out",
    "resource-dropped": "comes from a resource or scope that could not be read",
    "duplicate-key": "gives an attribute twice; the last value was kept",
    "time-float": "has times written as floating point numbers, exact to about 256 ns only",
    "int-float": "has integers written as floating point numbers, which may have lost digits",
    "text-replaced": "has bytes that are no UTF-8, replaced by U+FFFD",
    "depth-as-text": "has values nested too deep, kept as JSON text",
    SIGNAL_SKIPPED: "metrics or profiles, which are not read",
}
_WHOLE_NUMBERS: Final = "write 64-bit numbers as text, as OTLP JSON asks: JavaScript and its like round them"
_ADVICE: Final = {"time-float": _WHOLE_NUMBERS, "int-float": _WHOLE_NUMBERS}


class UnreadableSource(Exception):  # noqa: N818 (the name the command line and its users know)
    """The input cannot be read. The command line shows it and exits with code 3.

    Attributes:
        file: The file, folder, or ``standard input``.
        place: ``line 3``, ``byte 17`` or a longer path from there; empty if it is the whole.
        expected: What a readable input has there.
        found: What is there instead.
        hint: What to do about it; may be empty.
        unexpected: A reader failed in a way it should not: a fault of the program, not only of the input.
    """

    def __init__(self, file: str, place: str, expected: str, found: str, *, hint: str = "", unexpected: bool = False) -> None:
        super().__init__(file, place, expected, found)
        self.file = file
        self.place = place
        self.expected = expected
        self.found = found
        self.hint = hint
        self.unexpected = unexpected

    def __str__(self) -> str:
        place = f"{self.file}: {self.place}" if self.place else self.file
        return f"{place}: expected {self.expected}, found {self.found}{f'; {self.hint}' if self.hint else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """Something that was left out of what was read."""

    file: str
    place: str
    """``line 3: resourceSpans[0].scopeSpans[1].spans[3].startTimeUnixNano``, ``byte 17``, …"""
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.file}: {self.place}: expected {self.expected}, found {self.found}"


@dataclass(slots=True, kw_only=True)
class _Tally:
    detail: str
    advice: str
    spans: int = 0
    last: object = None


@dataclass(slots=True)
class ReadReport:
    """What became of an input, complete once its records have been read to the end."""

    spans: int = 0
    logs: int = 0
    rejected: int = 0
    """Spans, log records, lines and documents left out."""
    rejections: list[Rejection] = field(default_factory=list)
    """The first :data:`KEPT_REJECTIONS` of them."""
    unreadable: list[UnreadableSource] = field(default_factory=list)
    """Files of a folder that could not be read."""
    _tallies: dict[str, _Tally] = field(default_factory=dict)
    _survey: Survey = field(default_factory=Survey)
    _answers: SameAnswers = field(default_factory=SameAnswers)
    _losses: SourceLosses = field(default_factory=SourceLosses)
    _stream: InputStream | None = None
    _closed: int = 0

    @property
    def position(self) -> int:
        """Bytes of the input read so far, packed as they may be."""
        return self._closed + (self._stream.position if self._stream is not None else 0)

    def opened(self, stream: InputStream | None) -> None:
        """The next part of the input is read; ``None``: there is none yet."""
        self._closed, self._stream = self.position, stream

    @property
    def fidelity(self) -> list[dict[str, str | int]]:
        """What the records differ in from what was recorded: ``{"code", "detail", "spans": how many are concerned, "advice"}``."""
        listed: list[dict[str, str | int]] = [
            {"code": code, "detail": tally.detail, "spans": tally.spans, "advice": tally.advice} for code, tally in self._tallies.items()
        ]
        return listed + [
            {"code": found.code, "detail": found.detail, "spans": found.spans, "advice": found.advice}
            for found in (*self._survey.findings(), *self._answers.findings())
        ]

    @property
    def losses(self) -> Mapping[str, Iterable[str]]:
        """What was lost, by trace id; fills while the records are read."""
        return self._losses.of_traces

    def note(
        self,
        code: str,
        detail: str,
        *,
        advice: str = "",
        spans: int = 1,
        once_for: object = None,
        trace_id: str | None = None,
        named: Iterable[str] = (),
        lost: str = "",
    ) -> None:
        """Adds to the fidelity list.

        Args:
            code: Short and stable, such as ``time-us``.
            detail: What was lost, as the end of a sentence about the spans ("has times rounded to microseconds"); the first given stays.
            advice: What to change in the exporter, Collector or back end so that it does not happen again; empty where nothing can be done.
            spans: How many more spans are concerned.
            once_for: Names the record; a second note of the same code about the same record, next to the first, is not counted.
            trace_id: The trace concerned, where it is known; a loss without one may be of any trace of the file.
            named: Ids of the traces concerned, where it is not one.
            lost: What of it was lost, for a code of :data:`~spanreplay.replay.inputs.source_losses.LOSSES`; left out, what ``detail`` says.
        """
        if code in LOSSES and code != CUT_DOCUMENT:
            concerned: Iterable[str | None] = set(named) or (trace_id,)
            for trace in concerned:
                self._losses.add(lost or f"a record that {detail}", trace)
        self._count(code, detail, advice, spans, once_for)

    def _count(self, code: str, detail: str, advice: str, spans: int, once_for: object) -> None:
        tally = self._tallies.setdefault(code, _Tally(detail=detail, advice=advice))
        if once_for is None or once_for != tally.last:
            tally.spans += spans
        tally.last = once_for

    def reject(self, file: str, place: str, expected: str, found: str, *, trace_id: str | None = None) -> None:
        """Counts something left out, of this trace if that is known."""
        self._losses.add(self._left_out(file, place, expected, found), trace_id)

    def damaged(self, file: str, place: str, expected: str, found: str, *, named: Iterable[str] = (), whole: bool = False) -> None:
        """Counts a part of the input, at the place that is read now, that is left out.

        Args:
            file: Names the input.
            place: Where in it.
            expected: What a readable input has there.
            found: What is there instead.
            named: Ids of the traces that it names.
            whole: All of it is there to look at, so that it is of no trace that it does not name, if it names any.
        """
        lost = self._left_out(file, place, expected, found)
        traces = set(named)
        for trace_id in traces:
            self._losses.add(lost, trace_id)
        if not traces or not whole:
            self._losses.add_here(lost)

    def _left_out(self, file: str, place: str, expected: str, found: str) -> str:
        self.rejected += 1
        if len(self.rejections) < KEPT_REJECTIONS:
            self.rejections.append(Rejection(file=file, place=place, expected=expected, found=found))
        self._count(REJECTED, _DETAILS[REJECTED], "", 1, None)
        return f"left out at {place or 'the end'}: expected {expected}, found {found}"

    def problems(self, file: str) -> Problems:
        """The collector to give to a decoder: sorts its problems into rejections and fidelity."""

        def collect(problem: Problem) -> None:
            if problem.code == REJECTED:
                named = () if problem.trace_id is None else (problem.trace_id,)
                self.damaged(file, problem.where, problem.expected, problem.found, named=named, whole=True)
            else:
                name = (problem.trace_id, problem.span_id) if problem.span_id else problem.where
                self.note(
                    problem.code,
                    _DETAILS.get(problem.code, "was altered"),
                    advice=_ADVICE.get(problem.code, ""),
                    once_for=name,
                    trace_id=problem.trace_id,
                    lost=_lost(problem) if problem.code in LOSSES else "",
                )

        return collect

    def told(self, record: Record) -> Record:
        """Takes in what the record tells of earlier losses, and gives it without that."""
        clean, losses = losses_on(record)
        for lost in losses:
            self._losses.add(lost, record.trace_id or None)
        return clean

    def keep(self, record: Record) -> None:
        """Counts a record that was read."""
        self._survey.see(record)
        self._answers.see(record)
        self._losses.see(record)
        if isinstance(record, SpanRecord):
            self.spans += 1
        else:
            self.logs += 1

    @property
    def kept(self) -> int:
        """Spans and log records read so far."""
        return self.spans + self.logs

    def end_of_file(self) -> None:
        """One file is read to its end; losses of unknown place are of all traces in it."""
        self._losses.end_of_file()

    def warnings(self, *, full: bool = True) -> list[str]:
        """For people: what was left out and where, then what else differs from what was recorded. Empty where nothing does.

        Args:
            full: Of what was only rewritten, the whole story and what to change; else one short line for each kind.
        """
        lines = [str(unreadable) for unreadable in self.unreadable]
        lines += [f"left out: {rejection}" for rejection in self.rejections]
        if self.rejected > len(self.rejections):
            lines.append(f"left out: {self.rejected - len(self.rejections)} more")
        kinds = [entry for entry in self.fidelity if entry["code"] != REJECTED]
        lost = [entry for entry in kinds if full or entry["code"] in LOSSES]
        rewritten = [entry for entry in kinds if entry not in lost]
        for entry in lost:
            lines.append(f"{_records(entry)}: {entry['detail']}" + (f"; {entry['advice']}" if entry["advice"] else ""))
        lines += [f"{_records(entry)}: {_brief(str(entry['detail']))}" for entry in rewritten]
        if rewritten:
            lines[-1] += " (-v or --json: what to change)"
        return lines


def _brief(detail: str) -> str:
    first = detail.partition(": ")[0]
    return first if len(first) <= _SHORT else f"{first[:_SHORT].rpartition(' ')[0]} …"


def _records(entry: Mapping[str, str | int]) -> str:
    return f"{entry['spans']} record{'' if entry['spans'] == 1 else 's'}"


def _lost(problem: Problem) -> str:
    """What of a record could not be read, and where."""
    span = f"span {problem.span_id}: " if problem.span_id else ""
    return f"{span}could not be read at {problem.where}: expected {problem.expected}, found {problem.found}"
