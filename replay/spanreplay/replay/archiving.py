"""Runs out of a store into an archive; :mod:`spanreplay.replay.inputs.archive` says what is where, and reads it."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from spanreplay.replay.inputs.archive import MARKER, ROWS, VERSION, as_json, check_marker
from spanreplay.replay.writers import parquet
from spanreplay.semconv.attributes import PROCESS_ID, RUN_ID
from spanreplay.spans.record import Record, SpanRecord
from spanreplay.store.archive_folder import ArchiveError, ArchiveFolder
from spanreplay.store.bundles import Bundle
from spanreplay.store.parquet_writing import write_parquet
from spanreplay.store.retention import Retention
from spanreplay.store.rows import RunRow
from spanreplay.store.store import Store

_ROW_GROUP: Final = 2048
_RECORDS: Final = 20_000
_BYTES: Final = 24_000_000
"""What a file holds about, at most, before it is packed."""
_MARKS: Final = "SELECT marks FROM read_parquet($1) WHERE marks IS NOT NULL"

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


@dataclass(slots=True)
class Archived:
    """What an archiving wrote."""

    runs: int = 0
    spans: int = 0
    logs: int = 0
    files: int = 0
    bytes: int = 0


def write_archive(
    store: Store, bundles: Sequence[Bundle], folder: ArchiveFolder, marks: Mapping[str, str], written: Callable[[int], object]
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
    retention = Retention(store.path)
    _mark(folder)
    known = _marks_in(folder)
    bundles = [bundle for bundle in bundles if any(known.get(trace) != marks[trace] for trace in bundle.traces)]
    sizes = store.sizes([trace for bundle in bundles for trace in bundle.traces])
    for bundle in bundles:
        bundle.size = sum(sizes.get(trace, 0) for trace in bundle.traces)
    for day, chunk in _chunks(bundles):
        runs = retention.rows([run.run_id for bundle in chunk for run in bundle.runs])
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
        if _digest({"otlp": text} for (text,) in folder.ask(ROWS, [name])) != digest:
            raise ArchiveError(f"{folder.location}: {name} does not hold what was written to it. Nothing was deleted from the store.")
        index = write_parquet(_index(chunk, runs, name, losses, marks), RUN_COLUMNS)
        folder.write(f"runs/day={day}/{digest[:32]}.parquet", index)
        done.runs += sum(len(bundle.listed) for bundle in chunk)
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
        check_marker(folder, known)


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


def _records(store: Store, traces: Sequence[str]) -> tuple[list[Record], dict[str, list[str]]]:
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
        found.update(as_json(folder, text, dict))
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
