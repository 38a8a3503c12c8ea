"""Runs out of a store into an archive of Parquet files, and back.

::

    spanreplay-archive.json                       says that it is one
    runs/day=2026-11-29/<digest>.parquet          a row a run: what it was, its traces, and the file of its records
    records/day=2026-11-29/<digest>.parquet       a row a span or log record, as ``export --format parquet`` writes them

Records are sorted by trace and start, and a group of rows holds few runs, so that one run is found by looking at little. A file is named
after what is in it: archiving the same again writes the same file. Any tool that reads Parquet can ask both.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeVar

from spanreplay.replay.identifiers import SpanIds
from spanreplay.replay.source import Opened, ReadReport, UnreadableSource
from spanreplay.replay.tables import own
from spanreplay.replay.writers import parquet
from spanreplay.semconv.attributes import PROCESS_ID, RUN_ID
from spanreplay.spans.record import Record, SpanRecord
from spanreplay.store.archive_folder import ArchiveError, ArchiveFolder, is_url
from spanreplay.store.bundles import Bundle
from spanreplay.store.parquet_writing import write_parquet
from spanreplay.store.rows import RunRow

if TYPE_CHECKING:
    from spanreplay.store.store import Store

_T = TypeVar("_T", list[Any], dict[str, Any])

MARKER: Final = "spanreplay-archive.json"
VERSION: Final = 1
_ROW_GROUP: Final = 2048
_RECORDS: Final = 20_000
_BYTES: Final = 48_000_000
"""What a file holds about, at most, before it is packed."""
_IDS: Final = 500
_LOST: Final = "trace-partial"

RUN_COLUMNS: Final[Mapping[str, str]] = {
    "run_id": "VARCHAR",
    "session_id": "VARCHAR",
    "agent": "VARCHAR",
    "agent_version": "VARCHAR",
    "model": "VARCHAR",
    "service": "VARCHAR",
    "started_ns": "BIGINT",
    "ended_ns": "BIGINT",
    "outcome": "VARCHAR",
    "grade": "VARCHAR",
    "n_steps": "BIGINT",
    "input_tokens": "BIGINT",
    "output_tokens": "BIGINT",
    "command_id": "VARCHAR",
    "is_command": "BOOLEAN",
    "origin": "VARCHAR",
    "error_type": "VARCHAR",
    "trace_ids": "VARCHAR",
    "records": "VARCHAR",
    "lost": "VARCHAR",
    "marks": "VARCHAR",
}
"""Of a file below ``runs``. ``trace_ids`` is a JSON array; ``records`` the file that has them, relative to the archive; ``lost`` a JSON
object of what was known to be lost, in words, by trace id; ``marks`` one of a value that tells whether a trace has changed since."""
_OF_THE_ARCHIVE: Final = frozenset({"trace_ids", "records", "lost", "marks"})

_FIND: Final = """
    SELECT trace_ids, records, command_id, lost FROM read_parquet($1)
    WHERE $2 = '' OR starts_with(coalesce(run_id, ''), $2) OR starts_with(coalesce(run_id, ''), $3)
"""
_LATEST: Final = """
    SELECT run_id FROM read_parquet($1)
    WHERE run_id IS NOT NULL AND (NOT is_command OR n_steps > 0) ORDER BY started_ns DESC, run_id DESC LIMIT 1 OFFSET $2
"""
_MARKS: Final = "SELECT marks FROM read_parquet($1) WHERE marks IS NOT NULL"
_OF_COMMAND: Final = "SELECT trace_ids, records, command_id, lost FROM read_parquet($1) WHERE command_id = $2"
_ROWS: Final = "SELECT otlp FROM read_parquet($1) ORDER BY trace_id, start_ns"
_ROWS_OF: Final = "SELECT otlp FROM read_parquet($1) WHERE trace_id IN (SELECT unnest($2)) ORDER BY trace_id, start_ns"


@dataclass(slots=True)
class Archived:
    """What an archiving wrote."""

    runs: int = 0
    spans: int = 0
    logs: int = 0
    files: int = 0
    bytes: int = 0


# ---- in -----------------------------------------------------------------------------------------------------------------


def write_archive(
    store: "Store", bundles: Sequence[Bundle], folder: ArchiveFolder, marks: Mapping[str, str], written: Callable[[int], object]
) -> Archived:
    """Writes runs to an archive, each file whole and read back before the next one is begun. What is there already is not written again.

    Args:
        store: where they are; nothing of it is changed.
        bundles: which.
        folder: the archive; begun if there is none.
        marks: by trace, a value that is another one once anything of it changes.
        written: told how many runs have just been written.

    Raises:
        ArchiveError: it cannot be written, or does not hold what was written.
        StoreError: the store cannot be read.
    """
    done = Archived()
    _mark(folder)
    known = _marks_in(folder)
    bundles = [bundle for bundle in bundles if any(known.get(trace) != marks[trace] for trace in bundle.traces)]
    sizes = store.sizes([trace for bundle in bundles for trace in bundle.traces])
    for bundle in bundles:
        bundle.size = sum(sizes.get(trace, 0) for trace in bundle.traces)
    for day, chunk in _chunks(bundles):
        runs = [run for bundle in chunk for run in _rows_of(store, bundle)]
        records, losses = _records(store, [trace for bundle in chunk for trace in bundle.traces])
        of_trace = {trace: run.run_id for run in reversed(runs) for trace in run.trace_ids}
        steps = {
            (r.trace_id, r.span_id): str(r.attributes[RUN_ID]) for r in records if isinstance(r, SpanRecord) and RUN_ID in r.attributes
        }
        rows = list(parquet.rows(records, steps, of_trace))
        digest = _digest(rows)
        name = f"records/day={day}/{digest[:32]}.parquet"
        data = write_parquet(rows, parquet.COLUMNS, row_group=_ROW_GROUP)
        folder.write(name, data)
        if _digest({"otlp": text} for (text,) in folder.ask(_ROWS, [name])) != digest:
            raise ArchiveError(f"{folder.location}: {name} does not hold what was written to it. Nothing was deleted from the store.")
        index = write_parquet(_index(chunk, runs, name, losses, marks), RUN_COLUMNS)
        folder.write(f"runs/day={day}/{digest[:32]}.parquet", index)
        done.runs += len(runs)
        done.spans += sum(isinstance(record, SpanRecord) for record in records)
        done.logs += sum(not isinstance(record, SpanRecord) for record in records)
        done.files += 2
        done.bytes += len(data) + len(index)
        written(len(runs))
    return done


def _mark(folder: ArchiveFolder) -> None:
    known = folder.read(MARKER)
    if known is None:
        folder.write(MARKER, json.dumps({"schema": VERSION, "format": "spanreplay archive"}).encode())
    else:
        _check(folder, known)


def _chunks(bundles: Iterable[Bundle]) -> Iterator[tuple[str, list[Bundle]]]:
    """What goes into one file: of one day, by trace, and not too much of it."""
    by_day: dict[str, list[Bundle]] = {}
    for bundle in bundles:
        by_day.setdefault(_day(bundle.first_ns), []).append(bundle)
    for day in sorted(by_day):
        chunk: list[Bundle] = []
        records = size = 0
        for bundle in sorted(by_day[day], key=lambda one: min(one.traces, default="")):
            if chunk and (records + bundle.spans > _RECORDS or size + bundle.size > _BYTES):
                yield day, chunk
                chunk, records, size = [], 0, 0
            chunk.append(bundle)
            records += bundle.spans
            size += bundle.size
        yield day, chunk


def _day(ns: int) -> str:
    try:
        return datetime.fromtimestamp(ns // 10**9, UTC).strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return "unknown"


def _rows_of(store: "Store", bundle: Bundle) -> list[RunRow]:
    return [row for run in bundle.runs for row in store.find_runs(run_id=run.run_id)]


def _records(store: "Store", traces: Sequence[str]) -> tuple[list[Record], dict[str, list[str]]]:
    """Everything of these traces, other versions too, by trace and start; and what is known to be lost of each trace."""
    with store.reading():
        records: list[Record] = [*store.traces(traces), *store.other_versions(traces), *store.logs(traces)]
        losses = {trace: list(told) for trace, told in store.source_losses(traces).items()}
        processes = {(r.trace_id, str(r.attributes[PROCESS_ID])): None for r in records if PROCESS_ID in r.attributes}
        lost = store.losses(sorted({process for _, process in processes}))
    for trace, process in processes:
        if process in lost and trace is not None:
            losses.setdefault(trace, []).append(f"process {process} lost {lost[process]} records")
    return sorted(records, key=_order), losses


def _order(record: Record) -> tuple[str, int]:
    return record.trace_id or "", record.start_ns if isinstance(record, SpanRecord) else record.time_ns


def _marks_in(folder: ArchiveFolder) -> dict[str, str]:
    index = folder.names("runs")
    found: dict[str, str] = {}
    for (text,) in folder.ask(_MARKS, index) if index else ():
        found.update(_json(folder, text, dict))
    return found


def _index(
    chunk: Sequence[Bundle], runs: Sequence[RunRow], records: str, losses: Mapping[str, list[str]], marks: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    for run in runs:
        row = {name: getattr(run, name) for name in RUN_COLUMNS if name not in _OF_THE_ARCHIVE}
        yield {**{name: value for name, value in row.items() if value is not None}, **_place(run.trace_ids, records, losses, marks)}
    for bundle in chunk:
        if not bundle.runs:
            yield {"started_ns": bundle.first_ns, **_place(bundle.traces, records, losses, marks)}


def _place(traces: Sequence[str], records: str, losses: Mapping[str, list[str]], marks: Mapping[str, str]) -> dict[str, Any]:
    lost = {trace: losses[trace] for trace in traces if trace in losses}
    marked = json.dumps({trace: marks[trace] for trace in traces if trace in marks})
    return {"trace_ids": json.dumps(traces), "records": records, "marks": marked, **({"lost": json.dumps(lost)} if lost else {})}


def _digest(rows: Iterable[Mapping[str, Any]]) -> str:
    """Of the records, whatever the order of those that began at once."""
    total = 0
    for row in rows:
        total += int.from_bytes(sha256(row["otlp"].encode("utf-8", "surrogatepass")).digest(), "big")
    return f"{total % (1 << 256):064x}"


# ---- out ----------------------------------------------------------------------------------------------------------------


def is_archive(where: str) -> bool:
    """Whether an archive is there; a URL of fsspec always counts as one, so that what is wrong with it is said.

    Raises:
        ArchiveError: it cannot be reached.
    """
    return is_url(where) or (where != "-" and ArchiveFolder(where).read(MARKER) is not None)


def open_archive(where: str, run: str = "") -> Opened:
    """The records of an archive, or of one run in it and of those recorded with it.

    Args:
        where: path or URL.
        run: the beginning of its id; empty for all runs.

    Raises:
        UnreadableSource: there is no archive.
        ArchiveError: it cannot be read.
    """
    folder, index = _open(where)
    report = ReadReport()
    if not index:
        return Opened(format="archive", records=iter(()), report=report)
    found = [*folder.ask(_FIND, index, [run, "0" * 16 + run])]
    for command in {row[2] for row in found if row[2] is not None} if run else ():
        found += folder.ask(_OF_COMMAND, index, [command])
    traces: set[str] = set()
    places: dict[str, set[str]] = {}
    for trace_ids, records, _, lost in found:
        for trace in _json(folder, trace_ids, list):
            traces.add(str(trace))
            places.setdefault(str(trace), set()).add(str(records))
        for trace, told in _json(folder, lost, dict).items() if lost is not None else ():
            for detail in told:
                report.note(_LOST, "was known to be incomplete when it was archived", spans=0, trace_id=trace, lost=str(detail))
    files = sorted({str(row[1]) for row in found})
    again = frozenset(trace for trace, names in places.items() if len(names) > 1)
    return Opened(format="archive", records=_read(folder, files, sorted(traces) if run else None, again, report), report=report)


def latest_run(where: str, back: int) -> str | None:
    """Id of the run that began last, or of the one so many before it; ``None`` where there are not so many.

    Raises:
        UnreadableSource: there is no archive.
        ArchiveError: it cannot be read.
    """
    folder, index = _open(where)
    found = list(folder.ask(_LATEST, index, [back])) if index else []
    return str(found[0][0]) if found else None


def _open(where: str) -> tuple[ArchiveFolder, list[str]]:
    folder = ArchiveFolder(where)
    marker = folder.read(MARKER)
    if marker is None:
        raise UnreadableSource(where, "", "an archive that spanreplay wrote", f"no {MARKER} there")
    _check(folder, marker)
    return folder, folder.names("runs")


def _json(folder: ArchiveFolder, text: str, kind: type[_T]) -> _T:
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        found = None
    if not isinstance(found, kind):
        raise ArchiveError(f"{folder.location}: the list of runs does not have the form that spanreplay writes")
    return found


def _check(folder: ArchiveFolder, marker: bytes) -> None:
    try:
        version = json.loads(marker)["schema"]
    except (ValueError, KeyError, TypeError):
        version = None
    if version != VERSION:
        raise ArchiveError(f"{folder.location} is an archive of version {version!r}; this spanreplay knows version {VERSION}.")


def _read(
    folder: ArchiveFolder, files: Sequence[str], traces: Sequence[str] | None, again: frozenset[str], report: ReadReport
) -> Iterator[Record]:
    """The records, each once: traces in ``again`` were archived, had something added, and were archived again."""
    given: set[bytes] = set()
    for name in files:
        if name.startswith("/") or ".." in name.split("/"):
            report.reject(folder.location, "runs", "the name of a file of this archive", repr(name))
            continue
        for record, text in _of_file(folder, name, traces, report):
            if record.trace_id in again:
                digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
                if digest in given:
                    continue
                given.add(digest)
            report.keep(record)
            yield record
        report.end_of_file()


def _of_file(folder: ArchiveFolder, name: str, traces: Sequence[str] | None, report: ReadReport) -> Iterator[tuple[Record, str]]:
    ids = SpanIds()
    number = 0
    parts = [None] if traces is None else [traces[at : at + _IDS] for at in range(0, len(traces), _IDS)]
    for part in parts:
        for (text,) in folder.ask(_ROWS, [name]) if part is None else folder.ask(_ROWS_OF, [name], [part]):
            record = own.record_of({own.COLUMN: text}, ids, report)
            if record is None:
                report.reject(f"{folder.location}/{name}", f"row {number}", "a record as OTLP JSON", "something else")
            else:
                yield record, text
            number += 1
