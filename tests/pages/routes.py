"""One agent run, brought back along each route that traces take: what it comes back as, and what was lost."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from recordings.reading import HERE, recordings, spans_file
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.model import Run
from spanreplay.replay.reading.fields import TEMPO_LIMIT
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.writers import jaeger_json, parquet
from spanreplay.semconv import attributes as a
from spanreplay.spans import otlp_json, otlp_proto
from spanreplay.spans.record import Record, SpanRecord, Value
from support.tempo import in_a_block

SAMPLE: Final = HERE / "gen_ai" / "openai"
"""The run that is sent along: the OpenAI SDK, recorded by the official instrumentation."""
LONG: Final = "You are a weather assistant. " * 120
"""A system prompt as long as people's are: 3 kB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What a run comes back as."""

    name: str
    format: str
    grades: tuple[str, ...]
    lost: tuple[str, ...]
    advice: tuple[str, ...]


def routes() -> Iterator[Route]:
    """Every route, the ones that lose nothing first."""
    records = sample()
    for name, write in _ROUTES.items():
        with TemporaryDirectory() as folder:
            path = Path(folder, "spans")
            path.write_bytes(write(records))
            yield _came_back(name, path)
    for folder_ in recordings():
        told = json.loads((folder_ / "expected.json").read_text(encoding="utf-8"))
        if told["format"] != "otlp-json":
            yield _came_back(f"{told['instrumentation']}, as {told['format']}", spans_file(folder_))


@cache
def sample() -> tuple[Record, ...]:
    """The run, its system prompt made long."""
    short = "You are a weather assistant."
    made: list[Record] = []
    for record in open_source(str(spans_file(SAMPLE))).records:
        if isinstance(record, SpanRecord):
            longer = {name: value.replace(short, LONG) if isinstance(value, str) else value for name, value in record.attributes.items()}
            record = replace(record, attributes=longer)
        made.append(record)
    return tuple(made)


def _came_back(name: str, path: Path) -> Route:
    opened = open_source(str(path))
    runs = build_runs(opened.records)
    fidelity = opened.report.fidelity
    return Route(
        name=name,
        format=opened.format,
        grades=tuple(run.grade for run in runs),
        lost=(*(f"{entry['detail']} ({entry['spans']} {_plural(entry['spans'])})" for entry in fidelity), *_gone(runs)),
        advice=tuple(str(entry["advice"]) for entry in fidelity),
    )


def _plural(count: object) -> str:
    return "span" if count == 1 else "spans"


def _gone(runs: Sequence[Run]) -> Iterator[str]:
    """Steps that should have content and have none."""
    count = sum(
        step.input is None or (step.output is None and step.outcome == "ok") for run in runs for step in run.steps if step.kind != "agent"
    )
    if count:
        yield f"input or output of {count} step{'s' if count > 1 else ''}"


# ---- the forms ---------------------------------------------------------------------------------------------------


def _lines(records: Sequence[Record]) -> bytes:
    return b"".join(json.dumps(otlp_json.encode([record])).encode() + b"\n" for record in records)


def _framed(records: Sequence[Record]) -> bytes:
    data = otlp_proto.encode(r for r in records if isinstance(r, SpanRecord))
    return len(data).to_bytes(4, "big") + data


def _tempo(records: Sequence[Record]) -> bytes:
    def with_base64(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: with_base64(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [with_base64(inner) for inner in value]
        return base64.b64encode(bytes.fromhex(value)).decode() if key in ("traceId", "spanId", "parentSpanId") and value else value

    kept = [in_a_block(record) if isinstance(record, SpanRecord) else record for record in records]
    return json.dumps({"trace": with_base64(otlp_json.encode(kept))}).encode()


def _cut(limit: int) -> Callable[[Sequence[Record]], list[Record]]:
    """Values cut at so many bytes, as Tempo and SDKs do."""

    def cut_value(value: Value) -> Value:
        return value.encode()[:limit].decode("utf-8", "replace") if isinstance(value, str) else value

    def cut(records: Sequence[Record]) -> list[Record]:
        return [replace(r, attributes={name: cut_value(value) for name, value in r.attributes.items()}) for r in records]

    return cut


def _without_content(records: Sequence[Record]) -> list[Record]:
    content = (a.GEN_AI_INPUT_MESSAGES, a.GEN_AI_OUTPUT_MESSAGES, a.GEN_AI_TOOL_CALL_ARGUMENTS, a.GEN_AI_TOOL_CALL_RESULT)
    return [replace(r, attributes={n: v for n, v in r.attributes.items() if n not in content}) for r in records]


def _console(records: Sequence[Record]) -> bytes:
    return "".join(json.dumps(_to_json(r), indent=4) + "\n" for r in records if isinstance(r, SpanRecord)).encode()


def _time(ns: int) -> str:
    return datetime.fromtimestamp(ns // 1000 / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _to_json(span: SpanRecord) -> dict[str, Any]:
    """As ``ReadableSpan.to_json`` of SDK 1.45 has it."""
    return {
        "name": span.name,
        "context": {"trace_id": f"0x{span.trace_id}", "span_id": f"0x{span.span_id}", "trace_state": "[]"},
        "kind": f"SpanKind.{('INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER')[span.kind - 1]}",
        "parent_id": span.parent_span_id and f"0x{span.parent_span_id}",
        "start_time": _time(span.start_ns),
        "end_time": _time(span.end_ns or 0),
        "status": {"status_code": ("UNSET", "OK", "ERROR")[span.status]}
        | ({"description": span.status_message} if span.status_message else {}),
        "attributes": span.attributes,
        "events": [{"name": e.name, "timestamp": _time(e.time_ns), "attributes": e.attributes} for e in span.events],
        "links": [],
        "resource": {"attributes": span.resource.attributes, "schema_url": span.resource.schema_url},
    }


def _zipkin(records: Sequence[Record]) -> bytes:
    def text(value: Value) -> str:
        return value if isinstance(value, str) else json.dumps(value)

    def one(span: SpanRecord) -> dict[str, Any]:
        tags = {name: text(value) for name, value in span.attributes.items()} | {"otel.scope.name": span.scope.name}
        if span.status == 2:
            tags |= {"otel.status_code": "ERROR", "error": span.status_message}
        return {
            "traceId": span.trace_id,
            "id": span.span_id,
            **({"parentId": span.parent_span_id} if span.parent_span_id else {}),
            "name": span.name,
            "timestamp": span.start_ns // 1000,
            "duration": (span.end_ns or 0) // 1000 - span.start_ns // 1000,
            "localEndpoint": {"serviceName": "agent"},
            "tags": tags,
            "annotations": [{"timestamp": e.time_ns // 1000, "value": json.dumps({e.name: e.attributes})} for e in span.events],
        }

    return json.dumps([one(r) for r in records if isinstance(r, SpanRecord)]).encode()


def _grafana(records: Sequence[Record]) -> bytes:
    """As Grafana's inspector downloads a trace of Tempo: milliseconds as floats, kinds in words, old names."""
    groups = otlp_json.encode(records)["resourceSpans"]
    for group in groups:
        scoped = group.pop("scopeSpans")
        group["instrumentationLibrarySpans"] = [{"instrumentationLibrary": s.get("scope", {}), "spans": s["spans"]} for s in scoped]
        for span in (span for s in scoped for span in s["spans"]):
            for name in ("startTimeUnixNano", "endTimeUnixNano"):
                span[name] = float(int(span[name]))
            span["kind"] = f"SPAN_KIND_{('INTERNAL', 'SERVER', 'CLIENT')[span.get('kind', 1) - 1]}"
    return json.dumps({"batches": groups}).encode()


def _frames(records: Sequence[Record]) -> bytes:
    """As Grafana's query API answers: a column for each field of a span, times in milliseconds as floats."""
    spans = [
        {
            "traceID": span.trace_id,
            "spanID": span.span_id,
            "parentSpanID": span.parent_span_id or "",
            "operationName": span.name,
            "serviceName": "agent",
            "kind": ("internal", "server", "client")[span.kind - 1],
            "statusCode": span.status,
            "statusMessage": span.status_message,
            "instrumentationLibraryName": span.scope.name,
            "startTime": span.start_ns / 1e6,
            "duration": ((span.end_ns or 0) - span.start_ns) / 1e6,
            "tags": [
                {"key": name, "value": value if isinstance(value, str | int | float) else json.dumps(value)}
                for name, value in span.attributes.items()
            ],
        }
        for span in records
        if isinstance(span, SpanRecord)
    ]
    fields = [{"name": name} for name in spans[0]]
    values = [[span[name] for span in spans] for name in spans[0]]
    return json.dumps({"results": {"A": {"frames": [{"schema": {"fields": fields}, "data": {"values": values}}]}}}).encode()


_ROUTES: Final[Mapping[str, Callable[[Sequence[Record]], bytes]]] = {
    "Collector, `file` exporter, JSON": _lines,
    "Collector, `file` exporter, `format: proto`": _framed,
    "Jaeger, `/api/v3/traces/ID`": lambda records: json.dumps({"result": otlp_json.encode(records)}).encode(),
    "Jaeger, Trace JSON of the UI, `/api/traces/ID`": lambda records: jaeger_json.write(records),
    "Tempo, `/api/v2/traces/ID`, `max_attribute_bytes: 0`": _tempo,
    "Tempo, `/api/v2/traces/ID`, as it is by default": lambda records: _tempo(_cut(TEMPO_LIMIT)(records)),
    "Grafana, Download traces": _grafana,
    "Grafana, data frames of its query API": _frames,
    "Zipkin v2": _zipkin,
    "console exporter of the SDK": _console,
    "`spanreplay export --format parquet`": lambda records: parquet.write(records, build_runs(records)),
    "SDK with `OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT=1000`": lambda records: _lines(_cut(1000)(records)),
    "instrumentation without content": lambda records: _lines(_without_content(records)),
}
