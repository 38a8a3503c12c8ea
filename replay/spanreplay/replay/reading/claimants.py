"""Which dialects claim a span, found out once for all spans that look alike.

A trace has many spans of few kinds, and most of a framework's are claimed by none: asking every dialect about each of them took as long as
reading them. A claim that looks at no more than the span's and its scope's name, the names of the attributes and a few short values holds
for every span that has the same; what it looks at is seen while it looks.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn, cast

from spanreplay.replay.reading.dialect import Dialect, registry
from spanreplay.spans.record import SpanRecord, Value

_KINDS: Final = 4096
_VALUES: Final = 64
"""Of one kind of span; a kind with more is not remembered."""
_LONG: Final = 100

_Kind = tuple[str, str, str, tuple[str, ...]]


class _Known:
    """What is known of the spans of one kind."""

    __slots__ = ("claimed", "looked_at")

    def __init__(self) -> None:
        self.looked_at: tuple[str, ...] = ()
        """The attributes whose values some claim depends on."""
        self.claimed: dict[tuple[str | None, ...], tuple[Dialect, ...]] = {}
        """By these values."""


_known: dict[_Kind, _Known | None] = {}
"""``None``: claims depend on more."""


def claimants(span: SpanRecord) -> tuple[Dialect, ...]:
    """The dialects that can read a span: the first is the one to read it, the others may fill what it lacks."""
    if span.dropped_attributes:
        return _claimants(span)
    kind = (span.name, span.scope.name, span.scope.version, tuple(span.attributes))
    try:
        known = _known[kind]
    except KeyError:
        if len(_known) >= _KINDS:
            _known.clear()
        known = _known[kind] = _Known()
    if known is None:
        return _claimants(span)
    try:
        return known.claimed[_values(span, known)]
    except KeyError:
        return _found(span, kind, known)


def _found(span: SpanRecord, kind: _Kind, known: _Known) -> tuple[Dialect, ...]:
    attributes = _Watched(span.attributes)
    scope = _Named(name=span.scope.name, version=span.scope.version)
    try:
        found = _claimants(cast("SpanRecord", _Named(name=span.name, scope=scope, attributes=attributes, dropped_attributes=0)))
    except _LookedCloser:
        _known[kind] = None
        return _claimants(span)
    new = [name for name in attributes.looked_at if name not in known.looked_at]
    if new:
        known.looked_at += tuple(new)
        known.claimed.clear()
    values = _values(span, known)
    if None in values or len(known.claimed) >= _VALUES:
        _known[kind] = None
    else:
        known.claimed[values] = found
    return found


def _values(span: SpanRecord, known: _Known) -> tuple[str | None, ...]:
    """The values that were looked at; ``None`` for one that is no short text, and is not remembered."""
    return tuple([_short(span.attributes[name]) for name in known.looked_at])


def _short(value: Any) -> str | None:
    return value if type(value) is str and len(value) < _LONG else None


def _claimants(span: SpanRecord) -> tuple[Dialect, ...]:
    return tuple(dialect for dialect in registry() if dialect.claims(span))


class _LookedCloser(Exception):  # noqa: N818 (no error)
    """A claim depends on more than names and attributes."""


class _Watched(Mapping[str, Value]):
    """Attributes that remember whose values were looked at."""

    def __init__(self, attributes: Mapping[str, Value]) -> None:
        self._attributes = attributes
        self.looked_at: dict[str, None] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._attributes

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)

    def __getitem__(self, name: str) -> Value:
        value = self._attributes[name]
        self.looked_at[name] = None
        return value


class _Named:
    """Something of which only the fields given are known."""

    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)

    def __getattr__(self, name: str) -> NoReturn:
        raise _LookedCloser
