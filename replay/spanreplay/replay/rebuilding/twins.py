"""Spans that came under two ids: two pipelines that each give the spans they make, or convert, ids of their own.

The two records of a trace stand beside each other in it, and are alike span by span in everything but their ids and their resource: name,
kind, scope, times to the nanosecond, status, attributes, events. Two calls made at once under one parent may be alike too, and are two. So
only a whole tree is taken for the copy of another, of two spans at least, with an id in it that no two calls have or a time that is no
whole millisecond.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, Generic, TypeVar

from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord

K = TypeVar("K", bound=tuple[str, ...])

_MS: Final = 1_000_000
_IDS: Final = (a.GEN_AI_TOOL_CALL_ID, a.GEN_AI_RESPONSE_ID, "tool_call.id", "tool.id", "ai.toolCall.id", "ai.response.id", "tool_use_id")
"""Attributes that have an id which no two calls have."""
_NULL: Final = frozenset({"", "unknown", "<not specified>"})
_ALIKE: Final = 8
"""Spans of one name and time that are compared."""


def twins(spans: Mapping[K, SpanRecord]) -> dict[K, K]:
    """For each copy the span that it is a copy of, which is the one with the lower id.

    Args:
        spans: of some traces; only those of one trace are compared.
    """
    first: dict[tuple[str, int, int | None, str], K] = {}
    at: dict[K, list[K]] = {}
    for key, span in spans.items():
        known = first.setdefault((span.trace_id, span.start_ns, span.end_ns, span.name), key)
        if known is not key:
            at.setdefault(known, [known]).append(key)
    like: dict[K, list[K]] = {}
    for keys in at.values():
        like.update(_alike_in(spans, sorted(keys)[:_ALIKE]))
    found: dict[K, K] = {}
    if like:
        trees = _Trees(spans, {spans[key].trace_id for key in like})
        for copy in sorted(key for key in like if trees.is_top(key)):
            kept = next((one for one in like[copy] if one < copy and one not in found and trees.is_top(one)), None)
            if kept is not None:
                found.update(trees.copied(copy, kept, like))
    return found


class _Trees(Generic[K]):
    """The trees of some traces."""

    def __init__(self, spans: Mapping[K, SpanRecord], traces: Collection[str]) -> None:
        self._spans = spans
        self._known = {(span.trace_id, span.span_id): key for key, span in spans.items() if span.trace_id in traces}
        self._inside: dict[K, list[K]] = {}
        for key in self._known.values():
            if (around := self._around(key)) is not None:
                self._inside.setdefault(around, []).append(key)

    def _around(self, key: K) -> K | None:
        span = self._spans[key]
        return self._known.get((span.trace_id, span.parent_span_id or ""))

    def is_top(self, key: K) -> bool:
        return self._around(key) is None

    def copied(self, copy: K, kept: K, like: Mapping[K, Sequence[K]]) -> dict[K, K]:
        """For each span of a tree the one of another that it is a copy of; nothing where they are not alike throughout."""
        found = {copy: kept}
        taken = {kept}
        waiting = [copy]
        sure = False
        while waiting:
            one = waiting.pop()
            sure = sure or _is_sure(self._spans[one])
            inside = self._inside.get(one, [])
            if len(inside) != len(self._inside.get(found[one], ())):
                return {}
            for child in inside:
                other = next((o for o in like.get(child, ()) if o not in taken and self._around(o) == found[one]), None)
                if other is None:
                    return {}
                found[child] = other
                taken.add(other)
                waiting.append(child)
        return found if sure and len(found) > 1 else {}


def _alike_in(spans: Mapping[K, SpanRecord], keys: Sequence[K]) -> Iterator[tuple[K, list[K]]]:
    for key in keys:
        others = [one for one in keys if one != key and _alike(spans[one], spans[key])]
        if others:
            yield key, others


def _alike(one: SpanRecord, other: SpanRecord) -> bool:
    return (
        one.attributes == other.attributes
        and (one.kind, one.status, one.status_message, one.scope) == (other.kind, other.status, other.status_message, other.scope)
        and one.events == other.events
    )


def _is_sure(span: SpanRecord) -> bool:
    fine = span.end_ns is not None and span.end_ns > span.start_ns and (span.start_ns % _MS or span.end_ns % _MS)
    return bool(fine) or any(isinstance(value := span.attributes.get(name), str) and value not in _NULL for name in _IDS)
