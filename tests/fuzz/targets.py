"""What is tried: every source on bytes, the tables of Parquet on rows, every dialect on spans. Each gives its seeds and takes one input.

An input may be refused with the project's own error, and read to any end. Whatever else is raised is a fault.
"""

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from recordings.reading import recordings, spans_file
from spanreplay.replay.inputs.format import Source, registry
from spanreplay.replay.inputs.identifiers import SpanIds
from spanreplay.replay.inputs.input_stream import HEAD_BYTES, InputStream, Limits
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.inputs.tables import langsmith, own, phoenix
from spanreplay.replay.reasons import UNREADABLE
from spanreplay.replay.rebuilding.rows import run_row, step_row
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.spans.errors import FormatError
from spanreplay.spans.record import LogRecord, Record, SpanRecord
from spanreplay.store.parquet import rows

TESTS: Final = Path(__file__).parent.parent
LIMITS: Final = Limits(document=4_000_000, unpacked=4_000_000, ratio=50)
RECORDS: Final = 5_000
"""More than any input of the sizes that are tried here can hold."""
SEED_BYTES: Final = 200_000


class Fault(AssertionError):
    """Something was raised, or given, that should not be."""


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to try."""

    name: str
    seeds: tuple[Any, ...]
    """Bytes, or JSON values that stand for what is tried."""
    take: Callable[[Any], None]
    """Reads one input; raises on a fault."""


def rebuilt(records: Sequence[Record]) -> None:
    """Derives the runs of some records, all the way to what is shown and stored of them."""
    for run in build_runs(records):
        json.dumps(run.to_json())
        run_row(run, {})
        for step in run.steps:
            step_row(run, step)
        for reason in run.grade_reasons:
            if reason.code == UNREADABLE:
                raise Fault(reason.detail)


def read(source: Source, data: bytes) -> None:
    """Reads an input with a source, whether or not it would take it, and everything else that is done with what it gives."""
    report = ReadReport()
    stream = InputStream(io.BytesIO(data), LIMITS)
    if stream.head:
        for other in registry():
            other.handles(stream.head[:HEAD_BYTES])
    records: list[Record] = []
    try:
        for record in source.read(cast("BinaryIO", stream), "input", report):
            report.keep(record)
            records.append(record)
            if len(records) > RECORDS:
                raise Fault(f"more than {RECORDS} records of {len(data)} bytes")
    except FormatError:
        pass
    report.warnings()
    json.dumps(report.fidelity)
    rebuilt(records)


def _files() -> Iterator[Path]:
    for folder in sorted((TESTS / "fixtures").iterdir()):
        yield from (path for path in sorted(folder.glob("*")) if path.suffix in (".json", ".jsonl", ".txt", ".parquet"))
    yield from (spans_file(folder) for folder in recordings())


@cache
def _seeds() -> dict[str, tuple[bytes, ...]]:
    """The files of the tests by the source that reads them."""
    found: dict[str, list[bytes]] = {source.NAME: [] for source in registry()}
    for path in _files():
        data = path.read_bytes()
        source = next((source for source in registry() if data and source.handles(data[:HEAD_BYTES])), None)
        if source is not None and len(data) <= SEED_BYTES:
            found[source.NAME].append(data)
    found["otlp-proto"] += _protobuf()
    return {name: tuple(sorted(set(seeds), key=len)) for name, seeds in found.items()}


def _protobuf() -> Iterator[bytes]:
    from spanreplay.spans import otlp_proto

    for folder in list(recordings())[::6]:
        read_in = list(open_source(str(spans_file(folder))).records)
        spans = [record for record in read_in if isinstance(record, SpanRecord)][:12]
        logs = [record for record in read_in if isinstance(record, LogRecord)][:12]
        for data in (otlp_proto.encode(spans), otlp_proto.encode_logs(logs)):
            if data:
                yield data
                yield len(data).to_bytes(4, "big") + data


# ---- rows of tables ----------------------------------------------------------------------------------------------

_TABLES: Final[Mapping[str, Callable[[Mapping[str, Any], SpanIds, ReadReport], Record | None]]] = {
    "own": own.record_of,
    "langsmith": langsmith.span_of,
    "phoenix": phoenix.span_of,
}


def _row(table: str, row: Any) -> None:
    if isinstance(row, dict) and (table != "own" or own.COLUMN in row):
        record = _TABLES[table]({str(name): value for name, value in row.items()}, SpanIds(), ReadReport())
        if record is not None:
            rebuilt([record])


def _rows(table: str) -> Iterator[Any]:
    if table == "phoenix":
        yield from (json.loads(json.dumps(row, default=str)) for row in rows(TESTS / "fixtures" / "phoenix" / "trace_dataset.parquet"))
    elif table == "langsmith":
        for data in _seeds()["langsmith-json"]:
            yield from _objects_with(json.loads(data.splitlines()[0] if data.count(b"\n{") else data), "run_type")
    else:
        for data in _seeds()["otlp-json"][:8]:
            yield {"otlp": data.decode("utf-8", "replace")}


def _objects_with(value: Any, key: str) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if key in value:
            yield value
        for inner in value.values():
            yield from _objects_with(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects_with(inner, key)


# ---- spans -------------------------------------------------------------------------------------------------------


def _spans() -> Iterator[Any]:
    """The records of each recording, a few at a time, as JSON values that can be changed."""
    for folder in recordings():
        records = [_as_json(record) for record in open_source(str(spans_file(folder))).records][:40]
        yield from (records[start : start + 6] for start in range(0, len(records), 6))


def _as_json(record: Record) -> dict[str, Any]:
    found: dict[str, Any] = {
        "attributes": dict(record.attributes),
        "scope": record.scope.name,
        "trace": record.trace_id,
        "span": record.span_id,
    }
    if isinstance(record, SpanRecord):
        return {
            **found,
            "name": record.name,
            "parent": record.parent_span_id,
            "start": record.start_ns,
            "end": record.end_ns,
            "status": record.status,
            "events": [[event.name, event.time_ns, dict(event.attributes)] for event in record.events],
        }
    return {**found, "event": record.event_name, "body": record.body, "start": record.time_ns}


def _records(value: Any) -> list[Record]:
    return [record for item in value if isinstance(item, dict) and (record := _record(item)) is not None] if isinstance(value, list) else []


def _record(item: Mapping[str, Any]) -> Record | None:
    """A record as a source could give it: of the right types where the formats have types, anything within attributes."""
    from spanreplay.spans.record import EventRecord, Scope

    trace, span = item.get("trace"), item.get("span")
    if not (isinstance(trace, str) and isinstance(span, str) and trace and span):
        return None
    attributes = _map(item.get("attributes"))
    scope = Scope(name=_text(item.get("scope")))
    if "event" in item:
        made: Record = LogRecord(time_ns=_time(item.get("start")) or 0, event_name=_text(item.get("event")), body=item.get("body"))
        return replace(made, trace_id=trace, span_id=span, attributes=attributes, scope=scope)
    told = item.get("events")
    events = tuple(
        EventRecord(name=_text(event[0]), time_ns=_time(event[1]) or 0, attributes=_map(event[2]))
        for event in (told if isinstance(told, list) else ())
        if isinstance(event, list) and len(event) == 3
    )
    parent, end = item.get("parent"), item.get("end")
    return SpanRecord(
        trace_id=trace,
        span_id=span,
        parent_span_id=parent if isinstance(parent, str) else None,
        name=_text(item.get("name")),
        start_ns=_time(item.get("start")) or 0,
        end_ns=_time(end),
        status=item["status"] if item.get("status") in (0, 1, 2) and not isinstance(item["status"], bool) else 0,
        attributes=attributes,
        events=events,
        scope=scope,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _map(value: Any) -> dict[str, Any]:
    return {name: inner for name, inner in value.items() if isinstance(name, str)} if isinstance(value, dict) else {}


def _time(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**63 else None


# ---- all of them -------------------------------------------------------------------------------------------------


@cache
def targets() -> dict[str, Target]:
    """Everything that is tried, by name."""
    found = [Target(source.NAME, _seeds()[source.NAME], _reader(source)) for source in registry()]
    found += [Target(f"table-{table}", tuple(_rows(table)), _table(table)) for table in _TABLES]
    found.append(Target("dialects", tuple(_spans()), lambda value: rebuilt(_records(value))))
    return {target.name: target for target in found}


def _reader(source: Source) -> Callable[[bytes], None]:
    return lambda data: read(source, data)


def _table(table: str) -> Callable[[Any], None]:
    return lambda row: _row(table, row)
