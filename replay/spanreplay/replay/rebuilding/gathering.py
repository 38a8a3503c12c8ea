"""What is said of a call outside its own span is put to it, for the dialects whose spans are told of so.

Some tools write the log records of a call into the span around it, and open spans inside a call that are only a part of it (waiting for
approval, running). A dialect that offers :meth:`Addressing.about` says what is about what; the dialects' reading sees it as if it had been
written in the span of the call: log records and span events among its own, a part, and what is a part of that, as an event of its name.
A dialect that offers :meth:`Telling.told` has attributes of the span around a call tell of the call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple, Protocol, runtime_checkable

from spanreplay.replay.reading.dialect import Dialect, registry
from spanreplay.replay.rebuilding.tree import Forest, SpanKey
from spanreplay.spans.record import STATUS_ERROR, EventRecord, LogRecord, SpanRecord

ENDED: Final = "spanreplay.part.end_ns"
FAILED: Final = "spanreplay.part.error"
"""Attributes of the event that a part becomes: when it ended, and the message of its status where that is ERROR."""


@runtime_checkable
class Addressing(Dialect, Protocol):
    """A dialect whose spans are told of elsewhere than in themselves."""

    def about(self, told: SpanRecord | LogRecord, around: SpanRecord, inside: Sequence[SpanRecord]) -> SpanRecord | None:
        """The span that a record is about.

        Args:
            told: a log record written in ``around``, or one of the spans directly inside it.
            around: a span that the dialect claims.
            inside: the spans directly inside ``around``, in order of start.

        Returns:
            One of ``inside``, or ``around``; ``None`` where the record says nothing of another span than the one it is or stands in.
        """
        ...


@runtime_checkable
class Telling(Dialect, Protocol):
    """A dialect in whose spans stands what spans inside them lack."""

    def told(self, around: SpanRecord, inside: Sequence[SpanRecord]) -> SpanRecord | None:
        """One of the spans inside another with the attributes that tell of it; ``None`` where nothing is lacking, or nothing tells.

        Args:
            around: a span that the dialect claims.
            inside: the spans directly inside it, in order of start.
        """
        ...


class Gathered(NamedTuple):
    """A span and what is said of it."""

    span: SpanRecord
    logs: tuple[LogRecord, ...]
    """In order of time."""
    part: bool = False
    """Of another span: no dialect reads it."""


@cache
def _addressing() -> tuple[Addressing, ...]:
    return tuple(dialect for dialect in registry() if isinstance(dialect, Addressing))


@cache
def _telling() -> tuple[Telling, ...]:
    return tuple(dialect for dialect in registry() if isinstance(dialect, Telling))


def gathered(forest: Forest) -> Mapping[SpanKey, Gathered]:
    """The spans of which more, or less, is said than stands in them; all others are as the forest has them."""
    return {**_told(forest), **_addressed(forest)}


def _told(forest: Forest) -> dict[SpanKey, Gathered]:
    found: dict[SpanKey, Gathered] = {}
    for key, children in forest.children.items():
        around = forest.spans.get(key)
        dialect = None if around is None else next((dialect for dialect in _telling() if dialect.claims(around)), None)
        if around is None or dialect is None:
            continue
        span = dialect.told(around, sorted((forest.spans[child] for child in children), key=lambda child: child.start_ns))
        if span is not None:
            found[_key(span)] = Gathered(span, tuple(forest.logs.get(_key(span), ())))
    return found


def _addressed(forest: Forest) -> dict[SpanKey, Gathered]:
    parts: dict[SpanKey, SpanKey] = {}
    heard: dict[SpanKey, list[tuple[SpanKey, LogRecord]]] = {}
    for key, span in forest.spans.items():
        logs, children = forest.logs.get(key, ()), forest.children.get(key, ())
        if not (logs or children):
            continue
        dialect = next((dialect for dialect in _addressing() if dialect.claims(span)), None)
        if dialect is None:
            continue
        inside = sorted((forest.spans[child] for child in children), key=lambda child: child.start_ns)
        parts.update((_key(child), key) for child in inside if dialect.about(child, span, inside) is span)
        heard[key] = [(_key(dialect.about(log, span, inside) or span), log) for log in logs]
    for part in parts:
        heard.setdefault(part, [(part, log) for log in forest.logs.get(part, ())])
    logs_of: dict[SpanKey, list[LogRecord]] = {key: [] for key in (*heard, *parts, *parts.values())}
    for told in heard.values():
        for about, log in told:
            key = _whole(about, parts)
            if key not in logs_of:
                logs_of[key] = [] if key in heard else list(forest.logs.get(key, ()))
            logs_of[key].append(log)
    events: dict[SpanKey, list[EventRecord]] = {}
    for part in parts:
        inner = forest.spans[part]
        events.setdefault(_whole(part, parts), []).extend((_event(inner), *inner.events))
    return {
        key: Gathered(_with_events(forest.spans[key], events.get(key, ())), _in_order(logs), key in parts) for key, logs in logs_of.items()
    }


def _key(span: SpanRecord) -> SpanKey:
    return SpanKey(span.trace_id, span.span_id)


def _whole(key: SpanKey, parts: Mapping[SpanKey, SpanKey]) -> SpanKey:
    """What a part is a part of in the end; the tree has no loops."""
    while key in parts:
        key = parts[key]
    return key


def _in_order(logs: Sequence[LogRecord]) -> tuple[LogRecord, ...]:
    return tuple(sorted(logs, key=lambda log: log.time_ns or log.observed_ns))


def _with_events(span: SpanRecord, events: Sequence[EventRecord]) -> SpanRecord:
    return replace(span, events=tuple(sorted((*span.events, *events), key=lambda event: event.time_ns))) if events else span


def _event(part: SpanRecord) -> EventRecord:
    more: dict[str, int | str] = {} if part.end_ns is None else {ENDED: part.end_ns}
    if part.status == STATUS_ERROR:
        more[FAILED] = part.status_message
    return EventRecord(name=part.name, time_ns=part.start_ns, attributes={**part.attributes, **more})
