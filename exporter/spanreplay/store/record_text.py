"""Journal lines of ordinary records, written straight as text: the JSON objects of :mod:`spanreplay.store.form`, in a third of the time.

A record that has more than these lines can say gets ``None``, and goes the other way.
"""

from json.encoder import encode_basestring_ascii as quoted
from typing import Final

from spanreplay.boundary.call import StepStarted
from spanreplay.spans.record import Resource, Scope, SpanRecord
from spanreplay.store.form import ATTRIBUTES, END, FLAGS, KIND, NAME, PARENT, RESOURCE, SCOPE, SPAN, START, STATUS, TRACE
from spanreplay.store.journal_reader import TYPE

OPEN: Final = f'{{"{TYPE}":"open"'
"""How the line of a span that has started begins."""

_PLACE: Final = f'"{TRACE}":"%032x","{SPAN}":"%016x","{NAME}":%s,"{START}":%d'
_TRACE_AT: Final = len(f'"{TRACE}":"')
_SPAN_AT: Final = _TRACE_AT + 32 + len(f'","{SPAN}":"')
_PARENT: Final = f',"{PARENT}":"%016x"'
_KIND: Final = f',"{KIND}":%d'
_FLAGS: Final = f',"{FLAGS}":%d'
_PLACE_OF_CHILD: Final = _PLACE + _PARENT + _KIND + _FLAGS
_END: Final = f',"{END}":%d'


def origin_head(origin: str) -> str:
    """How the line of a whole span begins."""
    return f'{{"{TYPE}":"span","origin":{quoted(origin)}'


def span_line(head: str, span: SpanRecord, resource: str | None, scope: str, attributes: str) -> str | None:
    """The line of a span without events, links, status and the like.

    Args:
        head: :data:`OPEN`, or what :func:`origin_head` gave.
        span: the span.
        resource: digest of its resource, ``None`` for the empty one.
        scope: JSON of its scope, ``""`` for the empty one.
        attributes: JSON of its attributes, ``""`` where it has none.
    """
    name = span.name
    if (
        span.events
        or span.links
        or span.status
        or span.status_message
        or span.trace_state
        or span.dropped_attributes
        or span.dropped_events
        or span.dropped_links
        or not name.isascii()
    ):
        return None
    line = f'{head},"{TRACE}":{quoted(span.trace_id)},"{SPAN}":{quoted(span.span_id)},"{NAME}":{quoted(name)},"{START}":{span.start_ns:d}'
    if span.parent_span_id is not None:
        line += f',"{PARENT}":{quoted(span.parent_span_id)}'
    if attributes:
        line += f',"{ATTRIBUTES}":{attributes}'
    if resource is not None:
        line += f',"{RESOURCE}":"{resource}"'
    if scope:
        line += f',"{SCOPE}":{scope}'
    if span.kind:
        line += f',"{KIND}":{span.kind:d}'
    if span.end_ns is not None:
        line += f',"{END}":{span.end_ns:d}'
    if span.flags:
        line += f',"{FLAGS}":{span.flags:d}'
    return line + "}"


def plain_place(trace_id: int, span_id: int, parent_span_id: int | None, name: str, kind: int, start_ns: int, flags: int) -> str:
    """What the lines of a span have in common: the members that are known when it starts.

    Args:
        trace_id: of the span.
        span_id: of the span.
        parent_span_id: ``None`` where it has no parent.
        name: ASCII.
        kind: as in a span record.
        start_ns: when it started.
        flags: as in a span record.
    """
    if parent_span_id is not None and kind and flags:  # nearly all have these: one expansion takes half the time of one for each part
        return _PLACE_OF_CHILD % (trace_id, span_id, quoted(name), start_ns, parent_span_id, kind, flags)
    place = _PLACE % (trace_id, span_id, quoted(name), start_ns)
    if parent_span_id is not None:
        place += _PARENT % parent_span_id
    if kind:
        place += _KIND % kind
    return place + _FLAGS % flags if flags else place


def plain_end(end_ns: int | None, status: int) -> str:
    """What is known when it ends, to go after its place."""
    end = "" if end_ns is None else _END % end_ns
    return f'{end},"{STATUS}":{status:d}' if status else end


def ids_of(place: str) -> str:
    """Trace id and span id, of which ``place`` is what :func:`plain_place` gave."""
    return place[_TRACE_AT : _TRACE_AT + 32] + place[_SPAN_AT : _SPAN_AT + 16]


def plain_origin(resource: str | None, scope: str) -> str:
    """What the lines of all spans of a scope have in common.

    Args:
        resource: digest of their resource, ``None`` for the empty one.
        scope: JSON of the scope, ``""`` for the empty one.
    """
    origin = "" if resource is None else f',"{RESOURCE}":"{resource}"'
    return f'{origin},"{SCOPE}":{scope}' if scope else origin


def plain_line(head: str, place: str, attributes: str, origin: str) -> str:
    """The line of a span, of which ``place`` is what :func:`plain_place` gave, and ``attributes`` are the members of their JSON.

    Args:
        head: :data:`OPEN`, or what :func:`origin_head` gave.
        place: members of the line.
        attributes: ``""`` where it has none.
        origin: what :func:`plain_origin` gave.
    """
    return f'{head},{place},"{ATTRIBUTES}":{{{attributes}}}{origin}}}' if attributes else f"{head},{place}{origin}}}"


def step_record(step: StepStarted, *, kind: int, resource: Resource, scope: Scope) -> SpanRecord:
    """The span of a step that has begun."""
    return SpanRecord(
        trace_id=step.trace_id,
        span_id=step.span_id,
        parent_span_id=step.parent_span_id,
        name=step.name,
        kind=kind,
        start_ns=step.start_ns,
        attributes=step.attributes,
        resource=resource,
        scope=scope,
        trace_state=step.trace_state,
        flags=step.trace_flags,
    )


def step_line(step: StepStarted, kind: int, resource: str | None, scope: str, attributes: str) -> str | None:
    """The line of a step that has begun: what :func:`span_line` gives for its span."""
    name = step.name
    if step.trace_state or not name.isascii():
        return None
    line = f'{OPEN},"{TRACE}":"{step.trace_id}","{SPAN}":"{step.span_id}","{NAME}":{quoted(name)},"{START}":{step.start_ns:d}'
    if step.parent_span_id is not None:
        line += f',"{PARENT}":"{step.parent_span_id}"'
    if attributes:
        line += f',"{ATTRIBUTES}":{attributes}'
    if resource is not None:
        line += f',"{RESOURCE}":"{resource}"'
    line += f',"{SCOPE}":{scope},"{KIND}":{kind:d}'
    if step.trace_flags:
        line += f',"{FLAGS}":{step.trace_flags:d}'
    return line + "}"


def close_line(trace_id: str, span_id: str, end_ns: int, status: int, attributes: str) -> str:
    """The line of the rest of a span opened before, without events, links, message and the like."""
    line = f'{{"{TYPE}":"close","{TRACE}":{quoted(trace_id)},"{SPAN}":{quoted(span_id)},"{END}":{end_ns:d}'
    if status:
        line += f',"{STATUS}":{status:d}'
    if attributes:
        line += f',"{ATTRIBUTES}":{attributes}'
    return line + "}"
