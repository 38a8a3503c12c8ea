"""One span of Arize Phoenix, from whichever export, with the flat attribute names of OpenInference.

Phoenix takes attribute names apart at their dots and keeps the tree; its exports are the tree, the names joined again, or columns.
Source: ``phoenix/trace/attributes.py``, ``trace_dataset.py`` and ``server/api/routers/v1/spans.py`` (20.26.1).
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from spanreplay.replay.inputs.identifiers import SpanIds, trace_id
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.replay.inputs.tables.values import plain
from spanreplay.replay.inputs.timestamps import nanoseconds
from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import MAX_DEPTH
from spanreplay.spans.record import STATUS_ERROR, STATUS_OK, STATUS_UNSET, EventRecord, SpanRecord, Value

KIND: Final = "openinference.span.kind"
_NO_KIND: Final = "UNKNOWN"
_TEXTS: Final = ("document.metadata", "llm.prompt_template.variables", "metadata", "tool.parameters")
"""Attributes that OpenInference has as JSON text and Phoenix as objects."""
_PREFIXES: Final = tuple(f"{name}." for name in _TEXTS)
_COUNTS: Final = "llm.token_count."
_STATUSES: Final[Mapping[str, int]] = {"OK": STATUS_OK, "ERROR": STATUS_ERROR}
_FIELDS: Final = frozenset(
    {"name", "context", "span_kind", "parent_id", "start_time", "end_time", "status_code", "status_message", "attributes", "events"}
)
_MILLI: Final = 1_000_000
_MICRO: Final = 1_000


def span_of(row: Mapping[str, Any], ids: SpanIds, report: ReadReport) -> SpanRecord | None:
    """The span; ``None`` where it has no trace id, span id or start time.

    Args:
        row: its fields; ``context`` and ``attributes`` as objects, or spread over fields such as ``context.span_id``.
        ids: of the input.
        report: told what Phoenix does not keep.
    """
    context = {**_object(row.get("context")), **_spread(row, "context.")}
    named = trace_id(context.get("trace_id"))
    made = ids.of(named, context.get("span_id")) if named else None
    start, end = nanoseconds(row.get("start_time")), nanoseconds(row.get("end_time"))
    if named is None or made is None or start is None:
        return None
    attributes = joined(dict(flat({**_object(row.get("attributes")), **_spread(row, "attributes.")})))
    kind = row.get("span_kind")
    if isinstance(kind, str) and kind and kind != _NO_KIND:
        attributes[KIND] = kind
    for name, given, used in (("trace_id", context.get("trace_id"), named), ("span_id", context.get("span_id"), made)):
        if given != used:
            attributes[f"phoenix.{name}"] = plain(given)
    rest = {name: value for name, value in row.items() if name not in _FIELDS and not name.startswith(("context.", "attributes."))}
    attributes |= {f"phoenix.{name}": value for name, value in flat(rest)}
    code = str(row.get("status_code") or "").rpartition(".")[2].upper()
    tell(start, end, report)
    return SpanRecord(
        trace_id=named,
        span_id=made,
        parent_span_id=ids.of(named, row.get("parent_id")),
        name=str(row.get("name") or ""),
        start_ns=start,
        end_ns=end,
        status=_STATUSES.get(code, STATUS_UNSET),
        status_message=str(row.get("status_message") or ""),
        attributes=attributes,
        events=tuple(_events(row.get("events"), start)),
    )


def flat(tree: dict[str, Any]) -> Iterator[tuple[str, Value]]:
    """The leaves of a tree by their path, joined with dots; objects in lists by their place; what is empty is left out."""
    left: list[tuple[str, Any, int]] = [(name, value, 0) for name, value in reversed(tree.items())]
    while left:
        name, value, depth = left.pop()
        if isinstance(value, str | bool | int):
            yield name, value
        elif isinstance(value, dict) and value and depth < MAX_DEPTH and not name.endswith(_TEXTS):
            left.extend((f"{name}.{key}", inner, depth + 1) for key, inner in reversed(value.items()))
        elif isinstance(value, list | tuple) and depth < MAX_DEPTH and any(isinstance(item, dict) for item in value):
            left.extend((f"{name}.{number}", item, depth + 1) for number, item in reversed(list(enumerate(value))))
        elif isinstance(value, dict):
            if value:
                yield name, json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))
        elif value is not None and not (isinstance(value, float) and math.isnan(value)):
            yield name, plain(value)


def joined(attributes: dict[str, Value]) -> dict[str, Value]:
    """Attributes with what was one JSON text, and came as many, put together again; and counts of tokens as the numbers they were.

    A data frame has floats in a column in which some numbers are missing.
    """
    for name in _TEXTS if any(key.startswith(_PREFIXES) for key in attributes) else ():
        spread = {key: value for key, value in attributes.items() if key.startswith(f"{name}.")}
        if spread and name not in attributes:
            tree: dict[str, Any] = {}
            for key, value in spread.items():
                _put(tree, key.removeprefix(f"{name}.").split("."), value)
            attributes = {key: value for key, value in attributes.items() if key not in spread}
            attributes[name] = json.dumps(tree, ensure_ascii=False, separators=(",", ":"), default=str)
    for name, value in attributes.items():
        if isinstance(value, float) and value.is_integer() and name.startswith(_COUNTS):
            attributes[name] = int(value)
    return attributes


def _put(tree: dict[str, Any], path: list[str], value: Value) -> None:
    *ahead, last = path
    for step in ahead:
        inner = tree.setdefault(step, {})
        if not isinstance(inner, dict):
            tree[".".join(path)] = value
            return
        tree = inner
    tree[last] = value


def _events(given: Any, start: int) -> Iterator[EventRecord]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return
    for event in given if isinstance(given, list | tuple) else ():
        if isinstance(event, dict):
            at = nanoseconds(event.get("timestamp"))
            attributes = dict(flat(_object(event.get("attributes"))))
            yield EventRecord(name=str(event.get("name") or ""), time_ns=start if at is None else at, attributes=attributes)


def tell(start: int, end: int | None, report: ReadReport) -> None:
    """Notes what Phoenix does not keep of a span.

    Args:
        start: in nanoseconds, as the export has it.
        end: likewise.
        report: told.
    """
    report.note(
        "phoenix-kept",
        "comes without resource, scope, links and the kind that OpenTelemetry gives a span: Phoenix keeps none",
        advice="send the spans to a Collector with a file exporter too, and import that file",
    )
    both = start, end or 0
    if not any(at % _MILLI for at in both):
        report.note("time-ms", "has times cut to milliseconds", advice="the REST API of Phoenix gives microseconds, OTLP keeps nanoseconds")
    elif not any(at % _MICRO for at in both):
        report.note("time-us", "has times cut to microseconds", advice="OTLP keeps nanoseconds")


def _object(given: Json) -> dict[str, Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return {}
    return given if isinstance(given, dict) else {}


def _spread(row: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix) and value is not None}
