"""Rows of what ``spanreplay export --format parquet`` writes: the column ``otlp`` holds the record whole."""

import json
from collections.abc import Mapping
from typing import Any, Final

from spanreplay.replay.inputs.identifiers import SpanIds
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.spans.errors import FormatError
from spanreplay.spans.otlp_json import decode
from spanreplay.spans.record import Record

COLUMN: Final = "otlp"


def record_of(row: Mapping[str, Any], ids: SpanIds, report: ReadReport) -> Record | None:
    """The record; ``None`` where the column holds none."""
    del ids
    try:
        found = list(decode(json.loads(row[COLUMN]), "", report.problems("")))
    except (ValueError, TypeError, FormatError, RecursionError):
        return None
    return found[0] if len(found) == 1 else None
