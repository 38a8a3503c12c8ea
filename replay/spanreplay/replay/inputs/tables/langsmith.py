"""One run of LangSmith, from whichever export, as a span with the names that LangSmith's own OpenTelemetry exporter writes.

Source: ``langsmith/_internal/otel/_otel_exporter.py``, ``langsmith/_internal/_otel_utils.py`` and ``langsmith/schemas.py`` (0.15.1). The
exporter makes the trace id of the 128 bits of the trace's UUID, and a span id of the first 8 bytes of a run's.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from spanreplay.replay.inputs.identifiers import SpanIds, trace_id
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.replay.inputs.timestamps import nanoseconds
from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import decoded_json, jsonable, too_deep, whole
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, STATUS_OK, EventRecord, Scope, SpanRecord, Value

SCOPE: Final = "langsmith"
RUN_TYPE: Final = "langsmith.span.kind"
NAME: Final = "langsmith.trace.name"
PROJECT_ID: Final = "langsmith.trace.session_id"
PROJECT: Final = "langsmith.trace.session_name"
METADATA: Final = "langsmith.metadata."
TAGS: Final = "langsmith.span.tags"
INPUTS: Final = "gen_ai.prompt"
OUTPUTS: Final = "gen_ai.completion"
RUN: Final = "langsmith.run."
"""Prefix of what a run says and the exporter does not."""
_SYSTEM: Final = "gen_ai.system"
_SERIALIZED: Final = "gen_ai.serialized."
_OPERATIONS: Final[Mapping[str, str]] = {
    "llm": "chat",
    "tool": "execute_tool",
    "retriever": "embeddings",
    "embedding": "embeddings",
    "prompt": "chat",
}
_TOKENS: Final[Mapping[str, str]] = {
    "prompt_tokens": a.GEN_AI_USAGE_INPUT_TOKENS,
    "completion_tokens": a.GEN_AI_USAGE_OUTPUT_TOKENS,
    "total_tokens": "gen_ai.usage.total_tokens",
}
_PARAMETERS: Final = ("max_tokens", "temperature", "top_p", "frequency_penalty", "presence_penalty")
_DONE: Final = frozenset(
    {"name", "run_type", "start_time", "end_time", "error", "extra", "events", "inputs", "outputs", "tags", "session_id", "session_name"}
)
_EMPTY: Final[tuple[Json, ...]] = (None, "", {}, [])
_DOTTED: Final = re.compile(r"(?:^|\.)\d{8}T\d{12}Z([0-9a-f-]{36})")


def span_of(row: Mapping[str, Any], ids: SpanIds, report: ReadReport) -> SpanRecord | None:
    """The span; ``None`` where the run has no id or no start time.

    Args:
        row: the run; its objects may be JSON text.
        ids: of the input.
        report: told what LangSmith does not keep.
    """
    path = _DOTTED.findall(str(row.get("dotted_order") or ""))
    named = trace_id(row.get("trace_id") or (path[0] if path else row.get("id")))
    made = ids.of(named, row.get("id")) if named else None
    start, end = nanoseconds(row.get("start_time")), nanoseconds(row.get("end_time"))
    if named is None or made is None or start is None:
        return None
    parent = row.get("parent_run_id") or (path[-2] if len(path) > 1 else None)
    error = row.get("error")
    _note(row, report)
    return SpanRecord(
        trace_id=named,
        span_id=made,
        parent_span_id=ids.of(named, parent),
        name=str(row.get("name") or ""),
        start_ns=start,
        end_ns=end,
        status=STATUS_ERROR if error else STATUS_OK,
        status_message=error if isinstance(error, str) else "",
        attributes=_attributes(row),
        events=tuple(_events(row.get("events"), start)),
        scope=Scope(name=SCOPE),
    )


def order_of(row: Json) -> str:
    """By what the runs of a trace sort into the order in which they began; the API lists the last one first."""
    return str(row.get("dotted_order") or row.get("start_time") or "") if isinstance(row, Mapping) else ""


def _attributes(row: Mapping[str, Any]) -> dict[str, Value]:
    kind = str(row.get("run_type") or "chain")
    extra = _object(row.get("extra"))
    metadata, invocation = _object(extra.get("metadata")), _object(extra.get("invocation_params"))
    invocation = invocation or _object(metadata.get("invocation_params"))
    inputs, outputs = _decoded(row.get("inputs")), _decoded(row.get("outputs"))
    found: dict[str, Value] = {RUN_TYPE: kind, a.GEN_AI_OPERATION_NAME: _OPERATIONS.get(kind, kind)}
    for name, value in ((NAME, row.get("name")), (PROJECT_ID, row.get("session_id")), (PROJECT, row.get("session_name"))):
        if value not in _EMPTY:
            found[name] = str(value)
    found |= _model(metadata, invocation)
    for name, attribute in _TOKENS.items():
        if (number := whole(row.get(name))) is not None:
            found[attribute] = number
    if kind == "tool":
        found[a.GEN_AI_TOOL_NAME] = str(row.get("name") or "")
        call_id = extra.get("tool_call_id") or metadata.get("tool_call_id")
        if call_id not in _EMPTY:
            found[a.GEN_AI_TOOL_CALL_ID] = str(call_id)
    found |= {f"{METADATA}{name}": _plain(value) for name, value in metadata.items() if value is not None}
    tags = row.get("tags")
    if tags not in _EMPTY:
        found[TAGS] = ", ".join(map(str, tags)) if isinstance(tags, list) else str(tags)
    for name, value in _object(row.get("serialized")).items():
        if name in ("name", "signature", "doc") and value not in _EMPTY:
            found[_SERIALIZED + name] = _plain(value)
    if inputs not in (None, ""):
        found[INPUTS] = _text(inputs)
    if outputs not in (None, ""):
        found[OUTPUTS] = _text(outputs)
    rest = {name: value for name, value in row.items() if name not in _DONE and name != "child_runs"}
    rest |= {f"extra.{name}": value for name, value in extra.items() if name != "metadata"}
    return found | {f"{RUN}{name}": _plain(value) for name, value in rest.items() if value not in _EMPTY}


def _model(metadata: Mapping[str, Any], invocation: Mapping[str, Any]) -> dict[str, Value]:
    model = metadata.get("ls_model_name") or next((value for name in ("model", "model_name") if (value := invocation.get(name))), None)
    named = {a.GEN_AI_REQUEST_MODEL: model, _SYSTEM: metadata.get("ls_provider")}
    found: dict[str, Value] = {name: value for name, value in named.items() if isinstance(value, str)}
    for name in _PARAMETERS:
        if isinstance(value := invocation.get(name), int | float):
            found[f"gen_ai.request.{name}"] = value
    if invocation.get("tools"):
        found[a.GEN_AI_TOOL_DEFINITIONS] = _text(invocation["tools"])
    return found


def _events(given: Json, start: int) -> Iterator[EventRecord]:
    listed = _decoded(given)
    for event in listed if isinstance(listed, list) else ():
        if isinstance(event, dict):
            at = nanoseconds(event.get("time"))
            rest = {str(name): _plain(value) for name, value in event.items() if name not in ("name", "time") and value is not None}
            yield EventRecord(name=str(event.get("name") or ""), time_ns=start if at is None else at, attributes=rest)


def _note(row: Mapping[str, Any], report: ReadReport) -> None:
    report.note(
        "langsmith-kept",
        "comes without resource, links and the kind that OpenTelemetry gives a span: LangSmith keeps none",
        advice="let the SDK send OpenTelemetry (LANGSMITH_TRACING_MODE=otel) to a Collector with a file exporter too, and import that file",
    )
    report.note("time-us", "has times cut to microseconds", advice="OTLP keeps nanoseconds")
    if "inputs" not in row and "outputs" not in row:
        report.note(
            "io-left-out", "comes from a list that was asked for without inputs and outputs", advice="select inputs and outputs too"
        )


def _decoded(value: Json) -> Json:
    return decoded_json(value)[0] if isinstance(value, str) else value


def _object(value: Json) -> dict[str, Any]:
    found = _decoded(value)
    return found if isinstance(found, dict) else {}


def _text(value: Json) -> str:
    return (
        value if isinstance(value, str) else json.dumps(value if not too_deep(value) else jsonable(value), ensure_ascii=False, default=str)
    )


def _plain(value: Json) -> Value:
    return value if isinstance(value, str | bool | int | float) else _text(value)
