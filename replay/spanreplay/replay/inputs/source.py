"""Reading what others recorded: a file, a folder or standard input, in any readable format, recognised by content.

A format is one module in :mod:`spanreplay.replay.sources` that satisfies :class:`Source`; it is found by being there.
"""

import importlib
import os
import pkgutil
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import BinaryIO, Final, Protocol, cast

from spanreplay.replay.inputs.input_stream import DEFAULT_LIMITS, HEADS, InputStream, Limits
from spanreplay.replay.inputs.source_losses import CUT_DOCUMENT, LOSSES, SourceLosses, losses_on
from spanreplay.replay.inputs.survey import Survey
from spanreplay.semconv.attributes import SOURCE_LOSSES
from spanreplay.spans.errors import REJECTED, SIGNAL_SKIPPED, FormatError, Problem, Problems
from spanreplay.spans.record import Record, SpanRecord

STDIN: Final = "-"

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
            {"code": found.code, "detail": found.detail, "spans": found.spans, "advice": found.advice} for found in self._survey.findings()
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


class Source(Protocol):
    """One readable format: what a module in :mod:`spanreplay.replay.sources` offers."""

    @property
    def NAME(self) -> str:  # noqa: N802 (a constant of the module)
        """The name of the format, such as ``otlp-json``."""
        ...

    def handles(self, head: bytes) -> bool:
        """Whether an input that begins with ``head`` is in this format. At most one source says yes; none looks at a file name.

        Args:
            head: The first bytes, or all there are, already unpacked: first 64 KiB, then, as long as no source says yes, more of
                :data:`~spanreplay.replay.inputs.input_stream.HEADS`. Never empty.
        """
        ...

    def read(self, stream: BinaryIO, where: str, report: ReadReport) -> Iterator[Record]:
        """Reads the records, in the order of the input; may read the whole stream first if the format needs it.

        Args:
            stream: The input from its beginning, unpacked.
            where: Names the input in rejections.
            report: Told about everything left out or altered. What can be kept is kept.

        Raises:
            FormatError: Nothing (more) can be read; ``where`` is the line or byte.
            OSError: From the stream.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An input that was recognised."""

    format: str
    """Name of the format; of several, in a folder, joined with ``+``."""
    records: Iterator[Record]
    """Read once. Raises :class:`UnreadableSource`, and nothing else, where nothing at all could be kept."""
    report: ReadReport
    size: int | None = None
    """Bytes of the input, packed as they may be; ``None`` where nobody knows, as of a pipe."""


@cache
def registry() -> tuple[Source, ...]:
    """All formats, by the name of their module."""
    from spanreplay.replay import sources

    names = sorted(module.name for module in pkgutil.iter_modules(sources.__path__) if not module.name.startswith("_"))
    return tuple(cast("Source", importlib.import_module(f"{sources.__name__}.{name}")) for name in names)


def open_source(target: str, *, stdin: BinaryIO | None = None, limits: Limits = DEFAULT_LIMITS) -> Opened:
    """Opens a file, a folder (all readable files in it, sorted by path, hidden ones left out) or ``-``, standard input.

    Args:
        target: The path, or ``-``.
        stdin: Read instead of the process's standard input.
        limits: Bounds on what is held in memory.

    Raises:
        UnreadableSource: It does not exist, may not be read, or is in no readable format.
    """
    report = ReadReport()
    if target == STDIN:
        given: BinaryIO | None = stdin if stdin is not None else getattr(sys.stdin, "buffer", None)
        if given is None:
            raise UnreadableSource("standard input", "", "something to read", "no standard input")
        source, stream = _recognise("standard input", given, limits, owned=False)
        return Opened(format=source.NAME, records=_read(source, stream, "standard input", report), report=report)
    if not target:
        raise UnreadableSource("", "", "a file or folder", "an empty name")
    path = Path(target)
    with _Translated(target):
        mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        return _open_folder(path, report, limits)
    source, stream = _open_file(path, limits)
    if stat.S_ISREG(mode):
        stream.close()
        size = path.stat().st_size
        return Opened(format=source.NAME, records=_read_file(source, path, report, limits), report=report, size=size)
    # A pipe gives its bytes once.
    return Opened(format=source.NAME, records=_read(source, stream, target, report), report=report)


def open_documents(where: str, documents: Iterator[tuple[str, BinaryIO]], *, limits: Limits = DEFAULT_LIMITS) -> Opened:
    """Opens several inputs that belong together, such as the answers of a server; the first one is looked at here.

    Args:
        where: names the whole in errors.
        documents: the name of each and its bytes, each taken when the one before has been read.
        limits: Bounds on what is held in memory.

    Raises:
        UnreadableSource: There is none, or the first is in no readable format; also whatever ``documents`` raises.
    """
    report = ReadReport()
    first = next(documents, None)
    if first is None:
        raise UnreadableSource(where, "", "a trace", "nothing")
    source, stream = _recognise(first[0], first[1], limits)

    def read() -> Iterator[Record]:
        yield from _read(source, stream, first[0], report)
        for name, body in documents:
            following, unpacked = _recognise(name, body, limits)
            yield from _read(following, unpacked, name, report)

    return Opened(format=source.NAME, records=read(), report=report)


class _Translated:
    """Turns what the operating system says about a file into :class:`UnreadableSource`."""

    def __init__(self, file: str) -> None:
        self._file = file

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FileNotFoundError):
            raise UnreadableSource(self._file, "", "a file or folder", "nothing of that name") from None
        if isinstance(error, PermissionError):
            raise UnreadableSource(self._file, "", "a file that may be read", "no permission to read it") from None
        if isinstance(error, OSError | ValueError) and not isinstance(error, UnreadableSource):
            raise UnreadableSource(self._file, "", "a file or folder", str(getattr(error, "strerror", None) or error)) from None


def _open_file(path: Path, limits: Limits) -> tuple[Source, InputStream]:
    with _Translated(str(path)):
        return _recognise(str(path), path.open("rb"), limits)


def _recognise(file: str, raw: BinaryIO, limits: Limits, *, owned: bool = True) -> tuple[Source, InputStream]:
    with _Translated(file):
        stream = InputStream(raw, limits, owned=owned)
        try:
            return _source_of(file, stream), stream
        except BaseException:
            stream.close()
            raise


def _source_of(file: str, stream: InputStream) -> Source:
    if not stream.head:
        if stream.fault is not None:
            raise UnreadableSource(file, stream.fault.where, stream.fault.expected, stream.fault.found)
        raise UnreadableSource(file, "byte 0", f"a trace ({_format_names()})", "an empty file")
    for size in HEADS:
        head = stream.look(size)
        for source in registry():
            if source.handles(head):
                return source
        if len(head) < size:
            break
    if stream.head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        hint = "convert it with: iconv -f UTF-16 -t UTF-8"
        raise UnreadableSource(file, "byte 0", "UTF-8 text or a binary format", "UTF-16 text", hint=hint)
    if stream.fault is not None:
        raise UnreadableSource(file, stream.fault.where, stream.fault.expected, stream.fault.found)
    raise UnreadableSource(file, "byte 0", f"a trace ({_format_names()})", _glimpse(stream.head))


def _format_names() -> str:
    return ", ".join(source.NAME for source in registry())


def _glimpse(head: bytes) -> str:
    start = head[:24]
    if all(byte >= 0x20 or byte in b"\t\r\n" for byte in start):
        return f"something that begins with {start.decode('utf-8', 'replace')!a}"
    return f"bytes that begin with {start[:8].hex(' ')}"


def _read_file(source: Source, path: Path, report: ReadReport, limits: Limits) -> Iterator[Record]:
    with _Translated(str(path)):
        stream = InputStream(path.open("rb"), limits)
    yield from _read(source, stream, str(path), report)


def _read(source: Source, stream: InputStream, file: str, report: ReadReport) -> Iterator[Record]:
    kept, rejected, first = 0, report.rejected, len(report.rejections)
    report.opened(stream)
    try:
        for record in source.read(cast("BinaryIO", stream), file, report):
            if SOURCE_LOSSES in record.attributes:
                record = report.told(record)  # noqa: PLW2901 (as it was before it was written)
            report.keep(record)
            kept += 1
            yield record
    except FormatError as error:
        report.reject(file, error.where, error.expected, error.found)
    except OSError as error:
        report.reject(file, "", "a file that can be read to its end", error.strerror or str(error))
    except UnreadableSource:
        raise
    except Exception as error:
        found = f"what the reader failed at ({type(error).__name__}: {error})"
        hint = "please report this, with the file if it may be shown"
        raise UnreadableSource(file, "", f"readable {source.NAME}", found, hint=hint, unexpected=True) from error
    finally:
        report.opened(None)
        stream.close()
    if stream.fault is not None:
        report.reject(file, stream.fault.where, stream.fault.expected, stream.fault.found)
    report.end_of_file()
    if not kept and report.rejected > rejected:
        if first < len(report.rejections):
            why = report.rejections[first]
            raise UnreadableSource(file, why.place, why.expected, why.found)
        raise UnreadableSource(file, "", "at least one span that can be read", f"{report.rejected - rejected} that cannot")


def _open_folder(folder: Path, report: ReadReport, limits: Limits) -> Opened:
    found: list[tuple[Source, Path]] = []
    for path in _files_in(folder):
        try:
            source, stream = _open_file(path, limits)
        except UnreadableSource as error:
            report.unreadable.append(error)
        else:
            stream.close()
            found.append((source, path))
    if not found:
        raise _nothing_in(folder, report.unreadable)
    formats = sorted({source.NAME for source, _ in found})
    size = sum(path.stat().st_size for _, path in found)
    return Opened(format="+".join(formats), records=_read_folder(folder, found, report, limits), report=report, size=size)


def _files_in(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        # A sub-folder that may not be read is no reason to give up the rest.
        if error.filename == os.fspath(folder):
            raise error

    with _Translated(str(folder)):
        for parent, folders, files in os.walk(folder, onerror=refuse):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                path = Path(parent, name)
                # Opening a named pipe would wait for its writer.
                if not name.startswith(".") and (path.is_file() or not path.exists()):
                    yield path


def _read_folder(folder: Path, found: Sequence[tuple[Source, Path]], report: ReadReport, limits: Limits) -> Iterator[Record]:
    for source, path in found:
        try:
            yield from _read_file(source, path, report, limits)
        except UnreadableSource as error:
            report.unreadable.append(error)
    if not report.kept:
        raise _nothing_in(folder, report.unreadable, empty=len(found))


def _nothing_in(folder: Path, unreadable: Sequence[UnreadableSource], *, empty: int = 0) -> UnreadableSource:
    if not unreadable:
        files = f"{empty} file{'s' if empty > 1 else ''} in a readable format with no span or log record" if empty else "no file in it"
        return UnreadableSource(str(folder), "", "a folder with at least one trace", files)
    count = f"{len(unreadable)} file{'s' if len(unreadable) > 1 else ''}"
    return UnreadableSource(str(folder), "", "a folder with at least one readable trace", f"{count}, none readable ({unreadable[0]})")
