"""Rows of ordinary spans, made straight from their records: those of :mod:`spanreplay.store.span_rows`, in a sixth of the time.

Spans of one kind have the same attribute names in the same order, so what follows from the names alone is found out once for them all. A
record that is out of the ordinary gets ``None``, and goes the other way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from json.encoder import encode_basestring as readable
from json.encoder import encode_basestring_ascii as quoted
from math import isfinite
from operator import itemgetter
from typing import Any, Final, NamedTuple

from spanreplay.semconv.attributes import PROCESS_ID
from spanreplay.spans.record import SpanRecord
from spanreplay.store.encoding import BLOB_BYTES, Json, Keep, encode_value, to_readable_json, to_sorted_json
from spanreplay.store.form import (
    ATTRIBUTES,
    DROPPED,
    END,
    EVENTS,
    FLAGS,
    KIND,
    LINKS,
    MESSAGE,
    NAME,
    PARENT,
    RESOURCE,
    SCOPE,
    SPAN,
    START,
    STATE,
    STATUS,
    TRACE,
    VERSION,
    event_form,
    link_form,
)
from spanreplay.store.span_rows import HOT_INTEGERS, HOT_TEXTS, service_of

_SMALL: Final = 2**15
_BIG: Final = 2**63
_SHAPES: Final = 2048
_HOT_SOURCES: Final = (*HOT_TEXTS.values(), *HOT_INTEGERS.values())
_NOTHING: Final = (None,) * len(_HOT_SOURCES)


class Origin(NamedTuple):
    """What the spans of one resource and scope have in common."""

    resource: str | None
    """Digest."""
    service: str | None
    scope_name: str | None
    scope_version: str | None
    scope_json: str | None
    """Where it has more than these two."""
    scope_text: str
    """Sorted JSON, as digests are made of."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """What follows from the names of attributes."""

    heads: tuple[str, ...]
    """Each name as it stands before its value."""
    sort: Callable[[list[str]], tuple[str, ...]]
    """Brings what belongs to the names into their order."""
    hot: tuple[tuple[int, bool, tuple[int, ...]], ...]
    """Column, whether it holds text, and the places of the attributes it may be taken from."""
    process: int | None
    """The place of the id of the process that recorded the span."""


class RecordRows:
    """Makes rows of records.

    Args:
        origin: who delivers them.
        keep: gets the long content; see :func:`spanreplay.store.encoding.encode_map`.
    """

    def __init__(self, origin: str, keep: Keep) -> None:
        self._origin = origin
        self._keep = keep
        self._shapes: dict[tuple[str, ...], _Shape | None] = {}

    def row(self, span: SpanRecord, origin: Origin) -> tuple[Any, ...] | None:
        """The row of a new span, by :data:`~spanreplay.store.span_rows.COLUMNS`, the last of which is the digest.

        ``None`` where the record is out of the ordinary.

        Args:
            span: the span.
            origin: made of its resource and scope.

        Raises:
            UnencodableError: nested deeper than 100.
        """
        if not _is_ordinary(span):
            return None
        attributes, hot, process = None, _NOTHING, None
        sorted_text = ""
        if span.attributes:
            names = tuple(span.attributes)
            shape = self._shapes.get(names) or self._shape(names)
            if shape is None:
                return None
            values = list(span.attributes.values())
            attributes, in_order = self._attributes(shape, values)
            sorted_text = f'"{ATTRIBUTES}":{{{in_order}}},'
            if shape.hot:
                hot = _hot(shape, values)
            if shape.process is not None and isinstance(values[shape.process], str):
                process = values[shape.process]
        events = [event_form(event, self._keep) for event in span.events] or None
        links = [link_form(link, self._keep) for link in span.links] or None
        return (
            span.trace_id,
            span.span_id,
            span.parent_span_id,
            span.name,
            span.kind,
            span.start_ns,
            span.end_ns,
            span.status,
            span.status_message,
            process,
            origin.service,
            *hot,
            attributes,
            events and to_readable_json(events),
            links and to_readable_json(links),
            origin.resource,
            origin.scope_name,
            origin.scope_version,
            origin.scope_json,
            span.trace_state,
            span.flags,
            span.dropped_attributes,
            span.dropped_events,
            span.dropped_links,
            None,
            self._origin,
            span.end_ns is not None,
            True,
            f"sha256:{sha256(_digested(span, origin, sorted_text, events, links).encode('ascii')).hexdigest()}",
        )

    def _shape(self, names: tuple[Any, ...]) -> _Shape | None:
        if len(self._shapes) >= _SHAPES:
            self._shapes.clear()
        made = self._shapes[names] = _shape(names)
        return made

    def _attributes(self, shape: _Shape, values: list[Any]) -> tuple[str, str]:
        """The members of the attributes' JSON in their order, and sorted by name with all but ASCII escaped."""
        texts: list[str] = []
        escaped: list[tuple[int, str]] = []
        """The places where the two differ."""
        for head, value in zip(shape.heads, values, strict=True):
            kind = type(value)
            if kind is str:
                if len(value) < BLOB_BYTES and value.isascii():
                    texts.append(head + quoted(value))
                    continue
                form: Json = encode_value(value, self._keep, 1)
                if type(form) is str:
                    escaped.append((len(texts), head + quoted(form)))
                    texts.append(head + readable(form))
                else:
                    texts.append(f'{head}{{"$blob":"{form["$blob"]}"}}')
            elif kind is int and -_BIG <= value < _BIG:
                texts.append(f"{head}{value}")
            elif kind is bool:
                texts.append(f"{head}true" if value else f"{head}false")
            elif kind is float and isfinite(value):
                texts.append(head + float.__repr__(value))
            else:
                form = encode_value(value, self._keep, 1)
                text, in_order = to_readable_json(form), to_sorted_json(form)
                if text != in_order:
                    escaped.append((len(texts), head + in_order))
                texts.append(head + text)
        whole = f"{{{','.join(texts)}}}"
        for place, text in escaped:
            texts[place] = text
        return whole, ",".join(shape.sort(texts))


def _shape(names: tuple[Any, ...]) -> _Shape | None:
    """``None`` for names that a plain JSON object cannot have."""
    if not all(type(name) is str and name[:1] != "$" and name.isascii() for name in names):
        return None
    places = {name: place for place, name in enumerate(names)}
    order = sorted(range(len(names)), key=names.__getitem__)
    # An item getter of one place gives the item and not a tuple of it.
    sort = itemgetter(*order) if len(order) > 1 else tuple
    hot = tuple(
        (column, column < len(HOT_TEXTS), found)
        for column, sources in enumerate(_HOT_SOURCES)
        if (found := tuple(places[source] for source in sources if source in places))
    )
    return _Shape(heads=tuple(quoted(name) + ":" for name in names), sort=sort, hot=hot, process=places.get(PROCESS_ID))


def _hot(shape: _Shape, values: list[Any]) -> tuple[Any, ...]:
    found: list[Any] = list(_NOTHING)
    for column, is_text, places in shape.hot:
        for place in places:
            value = values[place]
            if is_text:
                # Long content and what has lone surrogates is kept by digest, and no text in a form.
                if isinstance(value, str) and len(value) < BLOB_BYTES and (value.isascii() or _is_inline(value)):
                    found[column] = value
                    break
            elif type(value) is int and -_BIG <= value < _BIG:
                found[column] = value
    return tuple(found)


def _is_inline(value: str) -> bool:
    try:
        return len(value.encode()) < BLOB_BYTES
    except UnicodeEncodeError:
        return False


def _is_ordinary(span: SpanRecord) -> bool:
    """Whether each field is of its type and fits its column."""
    ends = span.end_ns
    return (
        _is_id(span.trace_id)
        and _is_id(span.span_id)
        and (span.parent_span_id is None or (type(span.parent_span_id) is str and span.parent_span_id.isascii()))
        and _is_clean(span.name)
        and _is_clean(span.status_message)
        and _is_clean(span.trace_state)
        and _is_map(span.attributes)
        and type(span.start_ns) is int
        and -_BIG <= span.start_ns < _BIG
        and (ends is None or (type(ends) is int and -_BIG <= ends < _BIG))
        and type(span.kind) is int
        and -_SMALL <= span.kind < _SMALL
        and type(span.status) is int
        and -_SMALL <= span.status < _SMALL
        and type(span.flags) is int
        and -_BIG <= span.flags < _BIG
        and _is_count(span.dropped_attributes)
        and _is_count(span.dropped_events)
        and _is_count(span.dropped_links)
        and all(type(event.time_ns) is int for event in span.events)
    )


def _is_id(value: object) -> bool:
    return type(value) is str and 0 < len(value) <= 128 and value.isalnum() and value.isascii()


def _is_clean(value: object) -> bool:
    if type(value) is not str:
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_map(value: object) -> bool:
    return type(value) is dict or isinstance(value, Mapping)


def _is_count(value: object) -> bool:
    return type(value) is int and -_BIG < value < _BIG


def _digested(span: SpanRecord, origin: Origin, attributes: str, events: Json, links: Json) -> str:
    """The JSON of the span's form, sorted and in ASCII: what its digest is of."""
    text = "{" + attributes
    if span.dropped_attributes or span.dropped_events or span.dropped_links:
        text += f'"{DROPPED}":[{span.dropped_attributes},{span.dropped_events},{span.dropped_links}],'
    if span.end_ns is not None:
        text += f'"{END}":{span.end_ns},'
    if events:
        text += f'"{EVENTS}":{to_sorted_json(events)},'
    if span.flags:
        text += f'"{FLAGS}":{span.flags},'
    if span.kind:
        text += f'"{KIND}":{span.kind},'
    if links:
        text += f'"{LINKS}":{to_sorted_json(links)},'
    if span.status_message:
        text += f'"{MESSAGE}":{quoted(span.status_message)},'
    text += f'"{NAME}":{quoted(span.name)},'
    if span.parent_span_id is not None:
        text += f'"{PARENT}":{quoted(span.parent_span_id)},'
    if origin.resource is not None:
        text += f'"{RESOURCE}":"{origin.resource}",'
    if origin.scope_text:
        text += f'"{SCOPE}":{origin.scope_text},'
    text += f'"{SPAN}":"{span.span_id}","{START}":{span.start_ns},'
    if span.trace_state:
        text += f'"{STATE}":{quoted(span.trace_state)},'
    if span.status:
        text += f'"{STATUS}":{span.status},'
    return f'{text}"{TRACE}":"{span.trace_id}"}}'


def origin_of(resource: str | None, resource_form: Mapping[str, Json], scope: Mapping[str, Json]) -> Origin:
    """What rows of one resource and scope have in common.

    Args:
        resource: digest of the resource.
        resource_form: its form.
        scope: the form of the scope.
    """
    name, version = scope.get(NAME), scope.get(VERSION)
    plain = all(key in (NAME, VERSION) and isinstance(value, str) for key, value in scope.items())
    return Origin(
        resource=resource,
        service=service_of(resource_form.get(ATTRIBUTES, {})),
        scope_name=name if isinstance(name, str) else None,
        scope_version=version if isinstance(version, str) else None,
        scope_json=None if plain else to_readable_json(scope),
        scope_text=to_sorted_json(scope) if scope else "",
    )
