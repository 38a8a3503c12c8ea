"""Attributes of the GenAI conventions that have structure, from the names of their leaves.

Some back ends, and Collectors on the way to them, have no lists or maps as values: ``gen_ai.input.messages`` becomes
``gen_ai.input.messages.0.role``, or ``gen_ai.input.messages[0].role``, and so on. An empty list or map has no leaf and is gone.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.flattened import LEAF, Node, unflattened
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord, Value

_NAMES: Final = (
    a.GEN_AI_INPUT_MESSAGES,
    a.GEN_AI_OUTPUT_MESSAGES,
    a.GEN_AI_SYSTEM_INSTRUCTIONS,
    a.GEN_AI_TOOL_DEFINITIONS,
    a.GEN_AI_TOOL_CALL_ARGUMENTS,
    a.GEN_AI_TOOL_CALL_RESULT,
    a.GEN_AI_RESPONSE_FINISH_REASONS,
)
_LEAVES: Final = tuple(f"{name}{mark}" for name in _NAMES for mark in (".", "["))
_MANY: Final = 128
"""Names of attributes that are not worth remembering."""
_PLACE: Final = re.compile(r"\[(\d{1,9})\]")


def rejoined(span: SpanRecord) -> SpanRecord:
    """The span with such attributes whole, where it has only their leaves; most spans are themselves."""
    names = tuple(span.attributes)
    return _rejoined(span) if (_has_leaves if len(names) <= _MANY else _has_leaves.__wrapped__)(names) else span


@lru_cache(maxsize=1024)  # most spans of a trace have the names that others have
def _has_leaves(names: tuple[str, ...]) -> bool:
    return any(name.startswith(_LEAVES) for name in names)


def _rejoined(span: SpanRecord) -> SpanRecord:
    leaves = {_PLACE.sub(r".\1", name): value for name, value in span.attributes.items() if name.startswith(_LEAVES)}
    found: dict[str, Value] = {}
    for name in _NAMES:
        if span.attributes.get(name) is None and (node := unflattened(leaves, name)[name]):
            found[name] = plain(node)
    return replace(span, attributes={**span.attributes, **found}) if found else span


def plain(node: Mapping[str, Json]) -> Any:
    """A node as the list or the map that it was.

    Args:
        node: of limited depth, as :func:`~spanreplay.replay.reading.flattened.unflattened` gives it.
    """
    members = {name: plain(value) if isinstance(value, dict) else value for name, value in node.items() if name != LEAF}
    if not members:
        return node.get(LEAF)
    if all(name.isdecimal() and len(name) < 10 for name in members):
        return [members[name] for name in sorted(members, key=int)]
    return members


def content_of(node: Node, name: str) -> Any:
    """What was said: a text, or the JSON text that something on the way took for what it holds."""
    value = member(node, name)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value


def member(node: Node, name: str) -> Any:
    """A member's value, whether it is one or has members of its own."""
    value = node.get(name)
    return plain(value) if isinstance(value, dict) else value
