"""One observation of Langfuse, from whichever export, as a span with the names that Langfuse's own SDK puts on spans.

Sources: the public API's types (``langfuse`` 5.0.4, ``api/commons``), the field reference of the blob storage export, and the server's
``OtelIngestionProcessor``, which keeps a span's own attributes in ``metadata`` but for those that became ``input`` and ``output``.
"""

import json
import re
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Final

from spanreplay.replay.inputs.identifiers import SpanIds, trace_id
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.replay.inputs.tables.values import plain
from spanreplay.replay.inputs.timestamps import iso_ns
from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import decoded_json, jsonable, too_deep
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, STATUS_UNSET, Resource, Scope, SpanRecord, Value

OBSERVATION: Final = "langfuse.observation."
TRACE: Final = "langfuse.trace."
METADATA: Final = f"{OBSERVATION}metadata"

Row = dict[str, Any]
"""An observation or a trace, its keys in snake case."""

_TEXTS: Final[Mapping[str, str]] = {
    "level": f"{OBSERVATION}level",
    "status_message": f"{OBSERVATION}status_message",
    "input": f"{OBSERVATION}input",
    "output": f"{OBSERVATION}output",
    "model": f"{OBSERVATION}model.name",
    "model_parameters": f"{OBSERVATION}model.parameters",
    "usage_details": f"{OBSERVATION}usage_details",
    "cost_details": f"{OBSERVATION}cost_details",
    "completion_start_time": f"{OBSERVATION}completion_start_time",
    "prompt_name": f"{OBSERVATION}prompt.name",
    "prompt_version": f"{OBSERVATION}prompt.version",
    "version": "langfuse.version",
    "release": "langfuse.release",
    "environment": "langfuse.environment",
    "user_id": a.USER_ID,
    "session_id": a.SESSION_ID,
    "trace_name": f"{TRACE}name",
}
"""Fields by the attribute that the SDK writes; objects are JSON text there."""
_OF_ALL: Final = ("user_id", "session_id", "release")
"""Fields of a trace that the SDK writes on each of its spans."""
_CONTEXT: Final = ("attributes", "resourceAttributes", "scope")
_DONE: Final = frozenset(
    {"id", "trace_id", "parent_observation_id", "type", "name", "start_time", "end_time", "metadata", "tags", "public"}
)
_EMPTY: Final[tuple[Json, ...]] = (None, "", {}, [])
_CUT_METADATA: Final = 200
_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def row_of(item: Mapping[str, Json]) -> Row:
    """An object of an export with its keys in snake case, as the blob storage export has them."""
    return {_WORD.sub("_", key).lower() if "_" not in key else key: value for key, value in item.items()}


def span_of(row: Row, trace: Row, ids: SpanIds, report: ReadReport) -> SpanRecord | None:
    """The span; ``None`` where the observation has no id or no start time.

    Args:
        row: the observation.
        trace: what is known of its trace; empty if nothing is.
        ids: of the input.
        report: told what Langfuse does not keep.
    """
    named = trace_id(row.get("trace_id") or trace.get("id"))
    made = ids.of(named, row.get("id")) if named else None
    start, end = iso_ns(row.get("start_time")), iso_ns(row.get("end_time"))
    if named is None or made is None or start is None:
        return None
    kind = str(row.get("type") or "").lower()
    if end is None and kind == "event":
        end = start
    parent = ids.of(named, row.get("parent_observation_id"))
    metadata, context = _parted(row.get("metadata"))
    attributes: dict[str, Value] = dict(_values(context["attributes"]))
    scope = context["scope"]
    if kind:
        attributes[f"{OBSERVATION}type"] = kind
    for name in _OF_ALL:
        if row.get(name) in _EMPTY:
            row[name] = trace.get(name)
    attributes |= _attributes(row)
    _add_metadata(attributes, METADATA, metadata)
    for name, given, used in (("id", row.get("id"), made), ("trace_id", row.get("trace_id"), named)):
        if given not in _EMPTY and given != used:
            attributes[f"{OBSERVATION}{name}"] = plain(given)
    if parent is not None and parent != row["parent_observation_id"]:
        attributes[f"{OBSERVATION}parent_observation_id"] = plain(row["parent_observation_id"])
    _note(row, metadata, report)
    return SpanRecord(
        trace_id=named,
        span_id=made,
        parent_span_id=parent,
        name=_text(row.get("name")) or "",
        start_ns=start,
        end_ns=end,
        status=STATUS_ERROR if row.get("level") == "ERROR" else STATUS_UNSET,
        status_message=_text(row.get("status_message")) or "",
        attributes=attributes,
        resource=Resource(attributes=dict(_values(context["resourceAttributes"]))),
        scope=Scope(
            name=_text(scope.get("name")) or "",
            version=_text(scope.get("version")) or "",
            attributes=dict(_values(_object(scope.get("attributes")) or {})),
        ),
    )


def trace_attributes(trace: Row, metadata: Json) -> dict[str, Value]:
    """What a trace says of itself, for its first span.

    Args:
        trace: the trace, without its observations.
        metadata: of that span: what it says too is left out.
    """
    found: dict[str, Value] = {}
    of_span, span_context = _parted(metadata)
    of_trace, trace_context = _parted(trace.get("metadata"))
    told = {name: value for name, value in of_trace.items() if value != of_span.get(name)}
    told |= {name: value for name, value in trace_context.items() if value != span_context[name]}
    for name, value in trace.items():
        if name in ("public", "bookmarked") and isinstance(value, bool):
            found[f"{TRACE}{name}"] = value
        elif name == "tags" and isinstance(value, list) and value:
            found[f"{TRACE}tags"] = plain(value)
        elif name not in ("id", "metadata", "observations", "environment", "version", *_OF_ALL) and value not in _EMPTY:
            found[f"{TRACE}{name}"] = _scalar(value)
    for name in ("environment", "version"):
        if trace.get(name) not in _EMPTY:
            found[f"langfuse.{name}"] = _scalar(trace[name])
    _add_metadata(found, f"{TRACE}metadata", told)
    return found


def _attributes(row: Row) -> dict[str, Value]:
    if row.get("model") in _EMPTY and row.get("provided_model_name") not in _EMPTY:
        row["model"] = row.pop("provided_model_name")
    usage = row.get("usage")
    if row.get("usage_details") in _EMPTY and isinstance(usage, dict):
        row["usage_details"] = {name: usage[name] for name in ("input", "output", "total") if isinstance(usage.get(name), int)}
    found: dict[str, Value] = {}
    for name, value in row.items():
        if value in _EMPTY or name in _DONE:
            continue
        if name in _TEXTS:
            found[_TEXTS[name]] = _scalar(value)
        else:
            found[f"{OBSERVATION}{name}"] = _scalar(value)
    if row.get("tags") not in _EMPTY:
        found[f"{TRACE}tags"] = plain(row["tags"])
    if isinstance(row.get("public"), bool):
        found[f"{TRACE}public"] = row["public"]
    return found


def _note(row: Row, metadata: Mapping[str, Json], report: ReadReport) -> None:
    report.note(
        "langfuse-kept",
        "comes without span kind, events, links and dropped counts, and with all attributes as text: Langfuse keeps no more",
        advice="send the spans to a Collector with a file exporter too, and import that file",
    )
    given = row.get("start_time")
    digits = len(given.rpartition(".")[2].rstrip("Zz")) if isinstance(given, str) and "." in given else 0
    if digits <= 3:
        report.note("time-ms", "has times cut to milliseconds", advice="a blob storage export keeps more digits, OTLP keeps all")
    if "input" not in row and "output" not in row:
        report.note(
            "io-left-out",
            "comes without inputs and outputs: a list was asked for without them, or a download left them out as too large",
            advice="ask the API for fields=core,basic,time,io,metadata,model,usage,prompt,trace_context",
        )
    if "metadata" not in row:
        report.note(
            "metadata-left-out", "comes from a list that was asked for without metadata", advice="ask for the field group metadata too"
        )
    elif any(isinstance(value, str) and len(value) == _CUT_METADATA for value in metadata.values()):
        report.note(
            "metadata-cut",
            "has metadata of exactly 200 characters, where the API cuts it",
            advice="name the keys in expandMetadata, or download the trace as JSON",
        )


def _parted(given: Json) -> tuple[Row, dict[str, Row]]:
    """Metadata without the attributes, resource and scope of the span, and these: objects in it, JSON text, or spread key by key."""
    metadata = _object(given)
    context: dict[str, Row] = {name: {} for name in _CONTEXT}
    if metadata is None:
        return {} if given in _EMPTY else {"": given}, context
    rest: Row = {}
    for name, value in metadata.items():
        top, dot, inner = name.partition(".")
        whole = _object(value) if name in _CONTEXT else None
        if whole is not None:
            context[name] = {**whole, **context[name]}
        elif dot and top == "scope" and inner.startswith("attributes."):
            held = context[top].setdefault("attributes", {})
            if isinstance(held, dict):
                held[inner.removeprefix("attributes.")] = value
        elif dot and top in _CONTEXT:
            context[top][inner] = value
        else:
            rest[name] = value
    return rest, context


def _object(given: Json) -> Row | None:
    if isinstance(given, str):
        given, _ = decoded_json(given)
    return dict(given) if isinstance(given, dict) else None


def _values(given: Mapping[str, Json]) -> Iterator[tuple[str, Value]]:
    for name, value in given.items():
        if value is not None:
            yield name, plain(value)


def _add_metadata(attributes: MutableMapping[str, Value], prefix: str, metadata: Mapping[str, Json]) -> None:
    for name, value in metadata.items():
        if value not in _EMPTY:
            attributes.setdefault(f"{prefix}.{name}" if name else prefix, _scalar(value))


def _scalar(value: Json) -> Value:
    """A value as the SDK writes it: text, numbers and truth values as they are, anything else as JSON text."""
    if isinstance(value, str | bool | int | float):
        return value
    return json.dumps(value if not too_deep(value) else jsonable(value), ensure_ascii=False, separators=(",", ":"))


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None if value is None else str(value)
