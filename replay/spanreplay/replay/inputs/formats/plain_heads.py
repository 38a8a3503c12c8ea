"""Which of the formats of plain JSON an input is in, by its beginning: a list of spans, or what a console printed."""

import re
from typing import Final, Literal

from spanreplay.replay.inputs.formats.plain_span import CONTEXTS, OBSERVED, STARTS
from spanreplay.replay.inputs.json_stream import BOM, key_paths

Form = Literal["list", "console"]

_ARRAY: Final = re.compile(rb"\[\s*[\[{]")
_CONSOLE: Final = re.compile(
    rb'"context": ?\{[^"{}]*"trace_id": ?"0x[0-9a-f]+",|"span_id": ?"0x[0-9a-f]+",[^"{}]*"trace_flags": ?\d+,[^"{}]*"resource": ?'
)
"""A span, or a log record, as ``to_json`` of the Python SDK writes it. Between the lines may be what a log viewer puts before each."""
_PHOENIX: Final = frozenset(("span_kind", "context.trace_id", "context.span_id"))
_TRACE_KEY: Final = re.compile(r"trace\S*|(?=\S*\d)[\w-]{8,}", re.IGNORECASE)
"""What the id of a trace looks like, as the key of its list."""
_TRACE_IDS: Final = ("trace_id", "traceId")
_SPAN_IDS: Final = ("span_id", "spanId")
"""Jaeger writes ``traceID`` and ``spanID``."""


def form(head: bytes) -> Form | None:
    """The form, if it is one of these.

    A list is an array of spans, an object with them in ``spans``, a list of traces or an object of lists by trace, or a span a line.
    """
    text = head.removeprefix(BOM).lstrip()
    array, object_ = _ARRAY.match(text) is not None, text[:1] == b"{"
    paths = key_paths(head, depth=3) if array or object_ else frozenset()
    if paths >= _PHOENIX:
        return None
    alone = _is_span(paths, "")
    if _CONSOLE.search(head) and not array and (alone or not object_):
        return "console"
    places = ("spans.", "traces.spans.", *(f"{path}." for path in paths if _TRACE_KEY.fullmatch(path)))
    return "list" if alone or any(_is_span(paths, place) for place in places) else None


def _is_span(paths: frozenset[str], place: str) -> bool:
    """Whether an object there has the ids of a span, or that of its trace around it, and what else a span has."""
    owners = (place, place.removesuffix("spans."))
    ids = any(f"{place}{name}" in paths for name in _SPAN_IDS) and any(f"{owner}{name}" in paths for owner in owners for name in _TRACE_IDS)
    ids = ids or any(f"{place}{context}.{name}" in paths for context in CONTEXTS for name in _SPAN_IDS)
    timed = any(f"{place}{name}" in paths for name in (*STARTS, *OBSERVED))
    return ids and (timed or (f"{place}name" in paths and f"{place}attributes" in paths))
