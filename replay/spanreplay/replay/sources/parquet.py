"""Parquet with a span a row: what we export, trace data sets and data frames of Arize Phoenix, the bulk export of LangSmith.

Parquet has what describes it at its end, so that the input is copied to a file first; which export it is, its columns say.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from spanreplay.replay.inputs.identifiers import SpanIds
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.replay.inputs.tables import langsmith, own, phoenix
from spanreplay.spans.errors import FormatError
from spanreplay.spans.record import Record
from spanreplay.store.parquet import ParquetError, rows

NAME: Final = "parquet"

_MAGIC: Final = b"PAR1"
_Reader: TypeAlias = Callable[[Mapping[str, Any], SpanIds, ReadReport], Record | None]


def handles(head: bytes) -> bool:
    """Whether the bytes begin as Parquet does."""
    return head.startswith(_MAGIC)


def read(stream: BinaryIO, where: str, report: ReadReport) -> Iterator[Record]:
    """Reads the spans row by row; see :class:`spanreplay.replay.inputs.format.Source`."""
    ids = SpanIds()
    with tempfile.TemporaryDirectory(prefix="spanreplay-") as folder:
        copy = Path(folder, "spans.parquet")
        with copy.open("wb") as file:
            shutil.copyfileobj(stream, file)
        try:
            for number, row in enumerate(rows(copy)):
                reader, name = _reader(row)
                span = reader(row, ids, report) if reader else None
                if span is None:
                    report.reject(where, f"row {number}", f"a {name} with its ids and its start time", _columns(row))
                else:
                    yield span
        except ParquetError as error:
            raise FormatError("", "a Parquet file that can be read", str(error)) from None


def _reader(row: Mapping[str, Any]) -> tuple[_Reader | None, str]:
    if own.COLUMN in row:
        return own.record_of, "record as OTLP JSON"
    if "run_type" in row:
        return langsmith.span_of, "LangSmith run"
    if "context.span_id" in row or "context" in row:
        return phoenix.span_of, "Phoenix span"
    return None, "Phoenix span (context.span_id), LangSmith run (run_type) or record (otlp)"


def _columns(row: Mapping[str, Any]) -> str:
    names = ", ".join(sorted(row)[:8])
    return f"a row with {names}{', …' if len(row) > 8 else ''}" if row else "an empty row"
