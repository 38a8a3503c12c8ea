"""Which dialects claim a span, found out once for all spans that look alike.

A trace has many spans of few kinds, and most of a framework's are claimed by none: asking every dialect about each of them took as long as
reading them. A claim that looks at no more than the span's and its scope's name and the names of the attributes holds for every span of
those names; whether it does is seen while it looks.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NoReturn, cast

from spanreplay.replay.dialect import Dialect, registry
from spanreplay.spans.record import SpanRecord, Value

_KINDS: Final = 4096

_Kind = tuple[str, str, str, tuple[str, ...]]
_known: dict[_Kind, tuple[Dialect, ...] | None] = {}
"""``None``: the names alone do not tell."""


def claimants(span: SpanRecord) -> tuple[Dialect, ...]:
    """The dialects that can read a span: the first is the one to read it, the others may fill what it lacks."""
    if span.dropped_attributes:
        return _claimants(span)
    kind = (span.name, span.scope.name, span.scope.version, tuple(span.attributes))
    try:
        found = _known[kind]
    except KeyError:
        if len(_known) >= _KINDS:
            _known.clear()
        try:
            found = _claimants(cast("SpanRecord", _outline(kind)))
        except _LookedCloser:
            found = None
        _known[kind] = found
    return _claimants(span) if found is None else found


def _claimants(span: SpanRecord) -> tuple[Dialect, ...]:
    return tuple(dialect for dialect in registry() if dialect.claims(span))


class _LookedCloser(Exception):  # noqa: N818 (no error)
    """A claim depends on more than names."""


class _Names(Mapping[str, Value]):
    """Attributes of which only the names are known."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = dict.fromkeys(names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, name: str) -> Value:
        if name in self._names:
            raise _LookedCloser
        raise KeyError(name)


class _Named:
    """Something of which only the fields given are known."""

    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)

    def __getattr__(self, name: str) -> NoReturn:
        raise _LookedCloser


def _outline(kind: _Kind) -> _Named:
    name, scope, version, names = kind
    return _Named(name=name, scope=_Named(name=scope, version=version), attributes=_Names(names), dropped_attributes=0)
