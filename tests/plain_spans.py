"""Spans as they can be in plain JSON, and the comparison with what was read of them."""

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from span_strategies import clean_text, exact, ids, values
from spanreplay.spans.record import EventRecord, LinkRecord, Record, Resource, Scope, SpanRecord

times = st.integers(10**17, 2**63 - 1)
"""Since 1973, from when on nanoseconds differ from larger units."""
states = st.sampled_from(["", "a=b", "vendor=1,other=x:y"])


def without_bytes(value: Any) -> Any:
    """JSON has no bytes, and tells a list from nothing."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {key: without_bytes(item) for key, item in value.items()}
    return tuple(without_bytes(item) for item in value) if isinstance(value, tuple) else value


attributes = st.dictionaries(clean_text, values(clean_text, st.integers()), max_size=3).map(without_bytes)


@st.composite
def plain_spans(draw: st.DrawFn) -> SpanRecord:
    """One span of which JSON of any SDK loses nothing but what is told."""
    events = st.builds(EventRecord, name=clean_text, time_ns=times, attributes=attributes)
    links = st.builds(LinkRecord, trace_id=ids(16), span_id=ids(8), trace_state=states, attributes=attributes)
    start = draw(times)
    return SpanRecord(
        trace_id=draw(ids(16)),
        span_id=draw(ids(8)),
        parent_span_id=draw(st.none() | ids(8)),
        name=draw(clean_text),
        kind=draw(st.integers(1, 5)),
        start_ns=start,
        end_ns=draw(st.none() | st.integers(start, 2**63 - 1)),
        status=draw(st.integers(0, 2)),
        status_message=draw(clean_text),
        attributes=draw(attributes),
        events=tuple(draw(st.lists(events, max_size=2))),
        links=tuple(draw(st.lists(links, max_size=2))),
        resource=draw(st.builds(Resource, attributes=attributes, schema_url=clean_text)),
        scope=draw(st.builds(Scope, name=st.text(min_size=1, max_size=8), version=clean_text)),
        trace_state=draw(states),
        flags=draw(st.integers(0, 255)),
    )


def time_text(time_ns: int) -> str:
    """A time as the Python SDK writes it, cut to microseconds."""
    seconds, rest = divmod(time_ns, 10**9)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def exact_but_losses(
    found: Sequence[Record], records: Sequence[SpanRecord], *, scope: bool = True, resource: bool = True, unit: int = 1
) -> None:
    """Asserts that what was read is what was written, but for the losses of the format.

    Args:
        found: What was read.
        records: What was written.
        scope: Whether the format keeps the scope.
        resource: Whether it keeps the resource.
        unit: Of its times, in nanoseconds.
    """
    wanted = [
        dataclasses.replace(
            record,
            start_ns=record.start_ns // unit * unit,
            end_ns=None if record.end_ns is None else record.end_ns // unit * unit,
            events=tuple(dataclasses.replace(event, time_ns=event.time_ns // unit * unit) for event in record.events),
            scope=record.scope if scope else Scope(),
            resource=record.resource if resource else Resource(),
        )
        for record in records
    ]
    assert exact(list(found)) == exact(wanted)
