"""Hypothesis strategies for any span or log record, and a comparison that tells ``1`` from ``1.0`` and NaN from a change."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from hypothesis import strategies as st

from spanreplay.spans.record import EventRecord, LinkRecord, LogRecord, Resource, Scope, SpanRecord

MAX_TIME = 2**63 - 1
MAX_UINT32 = 2**32 - 1

any_text = st.text(st.characters(exclude_categories=()), max_size=12)
"""Lone surrogates and control characters included."""
clean_text = st.text(max_size=12)
any_int = st.integers() | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**63, -(2**63) - 1, 2**200])
int64 = st.integers(-(2**63), 2**63 - 1)


def values(text: st.SearchStrategy[str], integers: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    leaves = st.none() | st.booleans() | integers | st.floats() | text | st.binary(max_size=9)
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(text, inner, max_size=3), max_leaves=6
    )


def ids(size: int) -> st.SearchStrategy[str]:
    return st.binary(min_size=size, max_size=size).filter(any).map(bytes.hex)


def attributes(text: st.SearchStrategy[str], integers: st.SearchStrategy[int]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(text, values(text, integers), max_size=3)


times = st.integers(0, MAX_TIME)
counts = st.integers(0, MAX_UINT32)
kinds = st.integers(0, 5) | st.integers(0, 2**31 - 1)


trace_ids = ids(16)
span_ids = ids(8)
parents = st.none() | span_ids
ends = st.none() | st.integers(1, MAX_TIME)


class _Parts(NamedTuple):
    """What spans and log records consist of. A strategy costs far more to make than to draw from, so each is made once."""

    attributes: st.SearchStrategy[dict[str, Any]]
    events: st.SearchStrategy[list[EventRecord]]
    links: st.SearchStrategy[list[LinkRecord]]
    resources: st.SearchStrategy[Resource]
    scopes: st.SearchStrategy[Scope]
    bodies: st.SearchStrategy[Any]


@cache
def _parts(text: st.SearchStrategy[str], integers: st.SearchStrategy[int]) -> _Parts:
    pairs = attributes(text, integers)
    events = st.builds(EventRecord, name=text, time_ns=times, attributes=pairs, dropped_attributes=counts)
    links = st.builds(
        LinkRecord, trace_id=trace_ids, span_id=span_ids, trace_state=text, flags=counts, attributes=pairs, dropped_attributes=counts
    )
    return _Parts(
        attributes=pairs,
        events=st.lists(events, max_size=2),
        links=st.lists(links, max_size=2),
        resources=st.builds(Resource, attributes=pairs, schema_url=text, dropped_attributes=counts),
        scopes=st.builds(Scope, name=text, version=text, attributes=pairs, schema_url=text, dropped_attributes=counts),
        bodies=values(text, integers),
    )


@st.composite
def spans(draw: st.DrawFn, text: st.SearchStrategy[str] = any_text, integers: st.SearchStrategy[int] = any_int) -> SpanRecord:
    """One span. An end of 0 is left out: OTLP says "absent" by it."""
    parts = _parts(text, integers)
    return SpanRecord(
        trace_id=draw(trace_ids),
        span_id=draw(span_ids),
        parent_span_id=draw(parents),
        name=draw(text),
        kind=draw(kinds),
        start_ns=draw(times),
        end_ns=draw(ends),
        status=draw(kinds),
        status_message=draw(text),
        attributes=draw(parts.attributes),
        events=tuple(draw(parts.events)),
        links=tuple(draw(parts.links)),
        resource=draw(parts.resources),
        scope=draw(parts.scopes),
        trace_state=draw(text),
        flags=draw(counts),
        dropped_attributes=draw(counts),
        dropped_events=draw(counts),
        dropped_links=draw(counts),
    )


@st.composite
def logs(draw: st.DrawFn, text: st.SearchStrategy[str] = any_text, integers: st.SearchStrategy[int] = any_int) -> LogRecord:
    """One log record."""
    parts = _parts(text, integers)
    return LogRecord(
        time_ns=draw(times),
        observed_ns=draw(times),
        trace_id=draw(st.none() | trace_ids),
        span_id=draw(parents),
        event_name=draw(text),
        severity=draw(kinds),
        severity_text=draw(text),
        body=draw(parts.bodies),
        attributes=draw(parts.attributes),
        resource=draw(parts.resources),
        scope=draw(parts.scopes),
        flags=draw(counts),
        dropped_attributes=draw(counts),
    )


@st.composite
def batches(draw: st.DrawFn, record: st.SearchStrategy[Any]) -> list[Any]:
    """Some records, of which several may share a resource and a scope."""
    drawn: list[Any] = draw(st.lists(record, max_size=3))
    share: bool = draw(st.booleans())
    if drawn and share:
        twin = dataclasses.replace(draw(record), resource=drawn[0].resource, scope=draw(st.sampled_from(drawn)).scope)
        drawn.insert(draw(st.integers(0, len(drawn))), twin)
    return drawn


def exact(value: Any) -> Any:
    """A form in which equality means equal types, equal order of keys, equal bits of a float; lists and tuples are one."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return (type(value).__name__, *(exact(getattr(value, field.name)) for field in dataclasses.fields(value)))
    if isinstance(value, Mapping):
        return ("map", *((key, exact(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return ("list", *(exact(item) for item in value))
    return (type(value).__name__, repr(value))
