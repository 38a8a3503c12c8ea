"""Reading what others recorded: a file, a folder or standard input, in any readable format, recognised by content."""

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

from spanreplay.replay.inputs.format import Source, registry
from spanreplay.replay.inputs.input_stream import DEFAULT_LIMITS, HEADS, InputStream, Limits
from spanreplay.replay.inputs.report import ReadReport, UnreadableSource
from spanreplay.semconv.attributes import SOURCE_LOSSES
from spanreplay.spans.errors import FormatError
from spanreplay.spans.record import Record

STDIN: Final = "-"


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
