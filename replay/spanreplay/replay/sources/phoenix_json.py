"""Arize Phoenix: spans of its REST API and of its client as JSON, and ``trace.jsonl`` with a span a line.

``GET /v1/projects/{project}/spans`` gives ``{"data": [span, …], "next_cursor"}``; ``…/spans/otlpv1`` gives such a list of OTLP spans.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, BinaryIO, Final

from spanreplay.replay.inputs.identifiers import SpanIds
from spanreplay.replay.inputs.input_stream import document_limit
from spanreplay.replay.inputs.json_stream import documents, key_paths
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.replay.inputs.tables.phoenix import joined, span_of, tell
from spanreplay.replay.model import Json
from spanreplay.spans import otlp_json
from spanreplay.spans.errors import FormatError
from spanreplay.spans.record import Record, SpanRecord

NAME: Final = "phoenix-json"

_SPAN: Final = ("span_kind", "context.span_id", "context.trace_id")
_OTLP: Final = ("data.trace_id", "data.span_id", "data.start_time_unix_nano")
_STARTS: Final = frozenset(("data", "span_kind"))
_LISTS: Final = frozenset(("data",))


def handles(head: bytes) -> bool:
    """Whether there is a span with its ids in ``context`` and a ``span_kind``; or a list of OTLP spans without anything around them."""
    paths = key_paths(head, depth=3)
    return all(name in paths for name in _OTLP) or any(all(place + name in paths for name in _SPAN) for place in ("", "data."))


def read(stream: BinaryIO, where: str, report: ReadReport) -> Iterator[Record]:
    """Reads the spans document by document; see :class:`spanreplay.replay.inputs.format.Source`."""
    ids = SpanIds()
    limit = document_limit(stream)
    for place, document in documents(stream, where, report, limit=limit, starts=_STARTS, lists=_LISTS):
        for at, item in _items(document, place):
            if isinstance(item, dict) and "start_time_unix_nano" in item:
                yield from _otlp(item, at, where, report)
                continue
            span = span_of(item, ids, report) if isinstance(item, dict) else None
            if span is None:
                report.reject(where, at, "a Phoenix span with trace id, span id and start time", _lacks(item))
            else:
                yield span


def _items(document: Json, place: str) -> Iterator[tuple[str, Json]]:
    pages = [(f"{place}: [{number}]", page) for number, page in enumerate(document)] if isinstance(document, list) else [(place, document)]
    for at, page in pages:
        listed = page.get("data") if isinstance(page, dict) else None
        if isinstance(listed, list):
            yield from ((f"{at}: data[{number}]", item) for number, item in enumerate(listed))
        else:
            yield at, page


def _otlp(span: dict[str, Any], place: str, where: str, report: ReadReport) -> Iterator[Record]:
    try:
        for record in otlp_json.decode({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}, place, report.problems(where)):
            if isinstance(record, SpanRecord):
                tell(record.start_ns, record.end_ns, report)
                record = replace(record, attributes=joined(dict(record.attributes)))  # noqa: PLW2901
            yield record
    except FormatError as error:
        report.reject(where, error.where, error.expected, error.found)


def _lacks(item: Json) -> str:
    if not isinstance(item, Mapping):
        return f"a value of another kind ({type(item).__name__})"
    context = item.get("context")
    given = context if isinstance(context, Mapping) else {}
    missing = [
        name for name, value in (*((n, given.get(n)) for n in ("trace_id", "span_id")), ("start_time", item.get("start_time"))) if not value
    ]
    return f"one without {', '.join(missing)}" if missing else f"one that began at {str(item.get('start_time'))[:40]!r}"
