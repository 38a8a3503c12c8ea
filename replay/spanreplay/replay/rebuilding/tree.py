"""Span records to a forest: who is inside whom, whatever is missing, doubled or wrong about the records.

The forest keeps every span. A parent that never arrived leaves an orphan, a loop of parents is cut at its earliest span and where time
contradicts it, several records of one span become one. Nothing here knows a dialect, and nothing recurses: a trace may be a million spans
deep.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from spanreplay.replay.reading.pending import settled
from spanreplay.replay.reading.streamed import completed
from spanreplay.replay.rebuilding.twins import twins
from spanreplay.semconv.attributes import STEP_PARENT
from spanreplay.spans.record import LogRecord, Record, SpanRecord, Value

_ROUNDED_NS: Final = 1_000_000


class SpanKey(NamedTuple):
    """What identifies a span: lower-case hex, 32 and 16 characters."""

    trace_id: str
    span_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """All spans of some traces and how they hang together."""

    spans: Mapping[SpanKey, SpanRecord]
    """In order of first appearance."""
    parents: Mapping[SpanKey, SpanKey]
    """Only where the parent is present. Never a loop."""
    children: Mapping[SpanKey, tuple[SpanKey, ...]]
    """In order of appearance; only where there are any."""
    roots: tuple[SpanKey, ...]
    """Spans without a parent here: real roots, orphans, cut loops."""
    orphans: Mapping[SpanKey, str]
    """Spans whose parent id is the id of no span here, and that id."""
    cycles: frozenset[SpanKey]
    """Spans whose parent was ignored because it is inside them."""
    duplicates: int
    """Records beyond the first of a span."""
    copies: Mapping[SpanKey, tuple[SpanKey, ...]]
    """Of spans that came under other ids too, those ids; no spans of the forest."""
    logs: Mapping[SpanKey, tuple[LogRecord, ...]]
    """Log records by the span they were written in, in order of time; the span may be absent."""
    loose_logs: tuple[LogRecord, ...]
    """Log records outside any span."""

    def ancestors(self, key: SpanKey) -> Iterator[SpanKey]:
        """The spans around a span, the nearest first."""
        parent = self.parents.get(key)
        while parent is not None:
            yield parent
            parent = self.parents.get(parent)


def build(records: Iterable[Record]) -> Forest:
    """Reads records, in any order and however often, into a forest.

    The parent of a span is the one its OpenTelemetry context names; where that span is absent (a sampler lost it, another service has it),
    the step that ``spanreplay.parent`` names; else the span is an orphan.
    """
    spans: dict[SpanKey, SpanRecord] = {}
    logs: dict[SpanKey, list[LogRecord]] = {}
    loose: list[LogRecord] = []
    duplicates = 0
    for record in records:
        if isinstance(record, LogRecord):
            if record.trace_id and record.span_id:
                logs.setdefault(SpanKey(record.trace_id, record.span_id), []).append(record)
            else:
                loose.append(record)
            continue
        span = settled(record)
        key = SpanKey(span.trace_id, span.span_id)
        known = spans.get(key)
        if known is None:
            spans[key] = span
        else:
            duplicates += 1
            spans[key] = merged(known, span)
    spans.update(completed(spans))
    copied = twins(spans)
    copies: dict[SpanKey, tuple[SpanKey, ...]] = {}
    for copy, kept in sorted(copied.items()):
        copies[kept] = (*copies.get(kept, ()), copy)
        del spans[copy]
        logs.setdefault(kept, []).extend(replace(log, span_id=kept.span_id) for log in logs.pop(copy, ()))

    parents, orphans = _parents(spans, copied)
    cycles = _cut_loops(spans, parents)
    children: dict[SpanKey, list[SpanKey]] = {}
    for key, parent in parents.items():
        children.setdefault(parent, []).append(key)
    return Forest(
        spans=spans,
        parents=parents,
        children={key: tuple(inside) for key, inside in children.items()},
        roots=tuple(key for key in spans if key not in parents),
        orphans=orphans,
        cycles=cycles,
        duplicates=duplicates,
        copies=copies,
        logs={key: _told_once(entries) for key, entries in logs.items()},
        loose_logs=_told_once(loose),
    )


def merged(one: SpanRecord, other: SpanRecord) -> SpanRecord:
    """Two records of one span as one: the fuller wins, and what only the poorer knows is added.

    The result is the same whichever comes first.
    """
    if one == other:
        return one
    fuller, poorer = (one, other) if _fullness(one) >= _fullness(other) else (other, one)
    missing = {name: value for name, value in poorer.attributes.items() if name not in fuller.attributes}
    events = fuller.events + tuple(event for event in poorer.events if event not in fuller.events)
    return replace(
        fuller,
        parent_span_id=fuller.parent_span_id or poorer.parent_span_id,
        end_ns=fuller.end_ns if fuller.end_ns is not None else poorer.end_ns,
        status=fuller.status or poorer.status,
        status_message=fuller.status_message or poorer.status_message,
        attributes={**fuller.attributes, **missing} if missing else fuller.attributes,
        events=tuple(sorted(events, key=lambda event: event.time_ns)),
        dropped_attributes=min(fuller.dropped_attributes, poorer.dropped_attributes),
        dropped_events=min(fuller.dropped_events, poorer.dropped_events),
    )


def disagree(one: SpanRecord, other: SpanRecord) -> bool:
    """Whether two records of one span say different things; what only one of them has, or is rounded to milliseconds, is none."""
    if any(one.attributes.get(name, value) != value for name, value in other.attributes.items()):
        return True
    said = ((one.name, other.name), (one.status, other.status), (one.status_message, other.status_message))
    if any(a and b and a != b for a, b in (*said, (one.parent_span_id, other.parent_span_id))):
        return True
    times = ((one.start_ns, other.start_ns), (one.end_ns, other.end_ns))
    if any(a is not None and b is not None and abs(a - b) >= _ROUNDED_NS for a, b in times):
        return True
    known = {(event.name, event.time_ns // _ROUNDED_NS): event.attributes for event in one.events}
    return any(
        found.get(name, value) != value
        for event in other.events
        if (found := known.get((event.name, event.time_ns // _ROUNDED_NS))) is not None
        for name, value in event.attributes.items()
    )


def _fullness(span: SpanRecord) -> tuple[bool, int, int, int, str]:
    # The text of the record comes last, so that even equally full records merge the same way round whatever their order.
    size = sum(len(name) + _size(value) for name, value in span.attributes.items())
    return (span.end_ns is not None, size, len(span.events), len(span.links), repr(span))


def _size(value: Value) -> int:
    return len(value) if isinstance(value, str | bytes) else len(repr(value))


def _told_once(logs: Iterable[LogRecord]) -> tuple[LogRecord, ...]:
    """Log records in order of time, each once however often it was delivered.

    Those of one time stay as they came: emitters that log a conversation message by message give several of them one time.
    """
    at: dict[tuple[int, int], list[LogRecord]] = {}
    for log in logs:
        at.setdefault((log.time_ns or log.observed_ns, log.observed_ns), []).append(log)
    found: list[LogRecord] = []
    for _, told in sorted(at.items()):
        found += told if len(told) == 1 else {repr(log): log for log in told}.values()
    return tuple(found)


def _parents(spans: Mapping[SpanKey, SpanRecord], copied: Mapping[SpanKey, SpanKey]) -> tuple[dict[SpanKey, SpanKey], dict[SpanKey, str]]:
    parents: dict[SpanKey, SpanKey] = {}
    orphans: dict[SpanKey, str] = {}
    for key, span in spans.items():
        wanted = span.parent_span_id
        if wanted and wanted.strip("0"):
            parent = SpanKey(span.trace_id, wanted)
            parent = copied.get(parent, parent)
            if parent in spans:
                parents[key] = parent
                continue
            orphans[key] = wanted
        step = span.attributes.get(STEP_PARENT)
        if isinstance(step, str) and step != key.span_id and SpanKey(span.trace_id, step) in spans:
            parents[key] = SpanKey(span.trace_id, step)
    return parents, orphans


def _ran(span: SpanRecord, moment: int) -> bool:
    return span.start_ns <= moment and (span.end_ns is None or moment <= span.end_ns)


def _cut_loops(spans: Mapping[SpanKey, SpanRecord], parents: dict[SpanKey, SpanKey]) -> frozenset[SpanKey]:
    """Takes the parent, in place, from the earliest span of every loop, and from those in it that began when their parents did not run."""
    settled: set[SpanKey] = set()
    cut: set[SpanKey] = set()
    for start in spans:
        walked: dict[SpanKey, None] = {}
        here: SpanKey | None = start
        while here is not None and here not in settled and here not in walked:
            walked[here] = None
            here = parents.get(here)
        if here is not None and here in walked:
            path = list(walked)
            loop = path[path.index(here) :]
            first = min(loop, key=lambda key: (spans[key].start_ns, key))
            for key in loop:
                if key == first or not _ran(spans[parents[key]], spans[key].start_ns):
                    del parents[key]
                    cut.add(key)
        settled.update(walked)
    return frozenset(cut)
