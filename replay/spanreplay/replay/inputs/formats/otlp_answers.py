"""What back ends say around the OTLP that they answer with: an error, a part only, a form that loses something.

Tempo v2 has ``status`` and ``message`` beside the trace, in JSON and in protobuf (``TraceByIDResponse`` of ``tempo.proto``, Tempo 3.0).
Jaeger v3 answers ``{"error": …}`` where there is nothing. Grafana's "Download traces" has times as JavaScript has them, and old names.
"""

from typing import Any, Final, NamedTuple

from spanreplay.replay.inputs.formats.plain import shown
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.spans._wire import LEN, VARINT, Field, fields, looks_like
from spanreplay.spans.errors import FormatError
from spanreplay.spans.record import Record, SpanRecord

PARTIAL: Final = ("PARTIAL", 1)
_PARTIAL_ADVICE: Final = (
    "ask without a filter (q) and with span_pruning=false; a trace beyond overrides.defaults.global.max_bytes_per_trace is not kept whole"
)
_GRAFANA: Final = (
    "comes from Grafana's download: times are exact to about 256 ns, maps are lost, the spans of a service share one resource and scope"
)
_GRAFANA_ADVICE: Final = "get the trace from Tempo itself: GET /api/v2/traces/ID with Accept: application/json"
_TEMPO: Final = "is without its flags and the schema urls of its resource and scope, if there were any: Tempo's blocks keep none"
_OLD_GROUPS: Final = ("instrumentationLibrarySpans", "scopeSpans")
_STATUS, _MESSAGE, _TRACE = 3, 4, 1


class Answer(NamedTuple):
    """An answer that holds OTLP."""

    data: bytes | memoryview
    """The OTLP message in it."""
    partial: bool = False
    message: str = ""


def refuse_error(document: Any, place: str) -> None:
    """Says what the back end said, where it has no trace.

    Args:
        document: The answer.
        place: Where it is in the input.

    Raises:
        FormatError: The document is the answer of a back end that has no trace.
    """
    error = document.get("error") if isinstance(document, dict) else None
    if isinstance(error, dict) and "message" in error:
        raise FormatError(f"{place}: error", "a trace", f"an answer that says '{shown(error['message'])}'")


def note_part(report: ReadReport, spans: int, message: object) -> None:
    """Notes that Tempo gave a part of a trace, of so many spans."""
    why = f" ({shown(message)})" if isinstance(message, str) and message else ""
    report.note("trace-partial", f"comes from a trace of which Tempo gave a part only{why}", advice=_PARTIAL_ADVICE, spans=spans)


def is_partial(document: Any) -> bool:
    """Whether Tempo says that this is a part of a trace only."""
    return isinstance(document, dict) and "trace" in document and document.get("status") in PARTIAL


def is_of_tempo(document: Any) -> bool:
    """Whether Tempo answers so: version 2 with the trace in ``trace``, version 1 with its resource groups in ``batches``."""
    return isinstance(document, dict) and ("trace" in document or "batches" in document)


def note_tempo(report: ReadReport, record: Record) -> None:
    """Notes what a record has lost once Tempo has it in a block, whose schema has no place for it (``vparquet4`` and ``vparquet5``)."""
    if isinstance(record, SpanRecord) and not (record.flags or record.resource.schema_url or record.scope.schema_url):
        report.note("flags-lost", _TEMPO)


def is_of_grafana(document: Any) -> bool:
    """Whether times are numbers, as in what Grafana downloads, in which they were floating point numbers."""
    batches = document.get("batches") if isinstance(document, dict) else None
    group = batches[0] if isinstance(batches, list) and batches else None
    groups = next((group[name] for name in _OLD_GROUPS if name in group), None) if isinstance(group, dict) else None
    scoped = groups[0] if isinstance(groups, list) and groups else None
    spans = scoped.get("spans") if isinstance(scoped, dict) else None
    span = spans[0] if isinstance(spans, list) and spans else None
    return isinstance(span, dict) and isinstance(span.get("startTimeUnixNano"), int | float)


def note_grafana(report: ReadReport, record: Record) -> None:
    """Notes what Grafana's download loses of a record."""
    report.note("grafana-download", _GRAFANA, advice=_GRAFANA_ADVICE)
    if isinstance(record, SpanRecord) and any(not event.name for event in record.events):
        report.note("event-names-lost", "has events without a name, which older versions of Grafana leave out", advice=_GRAFANA_ADVICE)


def unwrapped(data: memoryview, *, whole: bool = True) -> Answer | None:
    """The OTLP message in Tempo's answer in protobuf; ``None`` if the bytes are no such answer.

    The answer has in its field 1 the trace, which has in its field 1 the resource groups: one level more than OTLP.

    Args:
        data: The answer, or its beginning.
        whole: Whether it is all of it.
    """
    inner: memoryview | None = None
    partial, message = False, ""
    try:
        for field in fields(data):
            if field.number == 0 or (whole and not field.complete):
                break
            if (field.number, field.wire) == (_TRACE, LEN):
                if inner is not None or not _is_trace(field, whole):
                    return None
                inner = field.payload
            elif (field.number, field.wire) == (_STATUS, VARINT):
                partial = bytes(data[field.at + 1 : field.at + 2]) == b"\x01"
            elif (field.number, field.wire) == (_MESSAGE, LEN):
                message = bytes(field.payload).decode("utf-8", "replace")
    except FormatError:
        return None
    return None if inner is None else Answer(inner, partial, message)


def _is_trace(field: Field, whole: bool) -> bool:
    """Whether the field holds resource groups, and is none itself: those have scope groups in other fields."""
    return looks_like(bytes(field.payload), whole=whole or field.complete) and all(part.number == _TRACE for part in fields(field.payload))
