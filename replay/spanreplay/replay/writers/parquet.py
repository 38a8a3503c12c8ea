"""Parquet with a record a row: columns that people ask for, and ``otlp``, the record whole as OTLP JSON, which is what is read back.

``SELECT tool, count(*) FROM 'runs.parquet' WHERE operation = 'execute_tool' GROUP BY tool`` needs nothing but DuckDB.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from spanreplay.replay.model import Run
from spanreplay.replay.reading.fields import Fields
from spanreplay.semconv import attributes as a
from spanreplay.spans import otlp_json
from spanreplay.spans.record import Record, SpanRecord, Value
from spanreplay.store.parquet_writing import write_parquet

NAME: Final = "parquet"
BINARY: Final = True
LOGS: Final = True

COLUMNS: Final[Mapping[str, str]] = {
    "record": "VARCHAR",
    "run_id": "VARCHAR",
    "trace_id": "VARCHAR",
    "span_id": "VARCHAR",
    "parent_span_id": "VARCHAR",
    "name": "VARCHAR",
    "service": "VARCHAR",
    "scope": "VARCHAR",
    "start_ns": "BIGINT",
    "end_ns": "BIGINT",
    "status": "BIGINT",
    "operation": "VARCHAR",
    "agent": "VARCHAR",
    "model": "VARCHAR",
    "tool": "VARCHAR",
    "conversation": "VARCHAR",
    "otlp": "VARCHAR",
}
_BIG: Final = 1 << 63


def write(records: Sequence[Record], runs: Sequence[Run]) -> bytes:
    """A Parquet file, its rows in the order of the records."""
    steps = {(step.trace_id, step.span_id): run.run_id for run in runs for step in run.steps}
    of_trace = {trace: run.run_id for run in reversed(runs) for trace in run.trace_ids}
    return write_parquet(rows(records, steps, of_trace), COLUMNS)


def rows(records: Iterable[Record], steps: Mapping[tuple[str, str], str], of_trace: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Rows of such a file, by column.

    Args:
        records: in any order.
        steps: run id by trace and span id.
        of_trace: run id by trace id, where ``steps`` has none.
    """
    for record in records:
        trace, span = record.trace_id or "", record.span_id or ""
        row: dict[str, Any] = {
            "run_id": steps.get((trace, span)) or of_trace.get(trace),
            "trace_id": record.trace_id,
            "span_id": record.span_id,
            "service": _text(record.resource.attributes, a.SERVICE_NAME),
            "scope": record.scope.name or None,
            "operation": _text(record.attributes, a.GEN_AI_OPERATION_NAME),
            "agent": _text(record.attributes, a.GEN_AI_AGENT_NAME),
            "model": _text(record.attributes, a.GEN_AI_REQUEST_MODEL, a.GEN_AI_RESPONSE_MODEL),
            "tool": _text(record.attributes, a.GEN_AI_TOOL_NAME),
            "conversation": _text(record.attributes, a.GEN_AI_CONVERSATION_ID, a.SESSION_ID),
            "otlp": json.dumps(otlp_json.encode([record]), ensure_ascii=False),
        }
        if isinstance(record, SpanRecord):
            row |= {
                "record": "span",
                "parent_span_id": record.parent_span_id,
                "name": record.name,
                "start_ns": _number(record.start_ns),
                "end_ns": _number(record.end_ns),
                "status": record.status,
            }
        else:
            row |= {"record": "log", "name": record.event_name or None, "start_ns": _number(record.time_ns or record.observed_ns)}
        yield {name: _clean(value) for name, value in row.items() if value is not None}


def _text(attributes: Mapping[str, Value], *names: str) -> str | None:
    return Fields(attributes).text(*names)


def _number(value: int | None) -> int | None:
    return value if value is not None and -_BIG <= value < _BIG else None


def _clean(value: Any) -> Any:
    # Parquet's texts are UTF-8, which has no lone surrogates and DuckDB no U+0000; in `otlp` both are JSON escapes.
    if not isinstance(value, str):
        return value
    escaped = "".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in value) if not value.isascii() else value
    return escaped.replace("\x00", "\ufffd")
