"""Ordinary spans from journal lines to rows, with no form in between: the same rows, in half the time.

Nearly all lines of spans are the start of one, or all of one and nothing out of the ordinary. What has events or links, lost anything, or
is written in another way than this version writes it, is read with the care of :mod:`spanreplay.store.span_lines` and
:mod:`spanreplay.store.merging`. Both ways give equal rows.
"""

from collections.abc import Sequence
from hashlib import sha256
from json.encoder import encode_basestring_ascii as quoted
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from spanreplay.spans.json_parsing import REFUSED
from spanreplay.store.encoding import Json, to_readable_json, to_sorted_json
from spanreplay.store.form import (
    ATTRIBUTES,
    END,
    FLAGS,
    KIND,
    MESSAGE,
    NAME,
    PARENT,
    RESOURCE,
    SCOPE,
    SPAN,
    START,
    STATUS,
    TRACE,
    VERSION,
    Form,
)
from spanreplay.store.journal_reader import TYPE, parse_body
from spanreplay.store.merging import OWN, RECORDER
from spanreplay.store.span_rows import NO_HOT, hot_values, shape_of, sorted_members

_Small = Annotated[int, msgspec.Meta(ge=-(2**15), le=2**15 - 1)]
_Big = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_UNSET: Final = msgspec.UNSET
_UNWRITTEN: Final = msgspec.Raw()
_BEGINNINGS: Final = tuple(f'{{"{TYPE}":"{kind}"'.encode() for kind in ("span", "open"))
_SCOPES: Final = 256
_decode: Final = msgspec.json.Decoder().decode


class _Line(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The members of the JSON of a line, which are those of a form."""

    t: str
    trace: str
    span: str
    name: str
    start: _Big
    origin: str | msgspec.UnsetType = _UNSET
    parent: str | msgspec.UnsetType = _UNSET
    kind: _Small | msgspec.UnsetType = _UNSET
    flags: _Big | msgspec.UnsetType = _UNSET
    end: _Big | msgspec.UnsetType = _UNSET
    status: _Small | msgspec.UnsetType = _UNSET
    message: str | msgspec.UnsetType = _UNSET
    attrs: msgspec.Raw = _UNWRITTEN
    resource: str | msgspec.UnsetType = _UNSET
    scope: msgspec.Raw = _UNWRITTEN


_decode_line: Final = msgspec.json.Decoder(_Line).decode


class _Scope(NamedTuple):
    """A scope as columns and digests have it."""

    name: str | None
    version: str | None
    json: str | None
    """Where it has more than these two."""
    sorted_text: str


_scopes: Final[dict[bytes, _Scope]] = {}
"""By their JSON: spans have one of a few."""


class PlainSpan(NamedTuple):
    """What a line says of a span."""

    line: _Line
    text: str
    """JSON of the attributes, as it was written."""
    body: bytes
    made: tuple[tuple[Any, ...], tuple[Any, ...]] | None
    """Columns before process and service and those after them, of a span that has ended: later its parts lie all over the memory."""

    @property
    def key(self) -> tuple[str, str]:
        """Trace and span."""
        return self.line.trace, self.line.span

    @property
    def resource(self) -> str | None:
        """The digest of its resource."""
        return None if self.line.resource is _UNSET else self.line.resource

    def form(self) -> Form:
        """The record, as it is read where it is not plain."""
        return parse_body(self.body) or {}

    def begins(self, whole: "PlainSpan") -> bool:
        """Whether this is the start of a span, all of which the other one is, and says nothing that the other one does not say.

        Both are of one process, and of one span.
        """
        line, later, text = self.line, whole.line, self.text
        return (
            line.t == "open"
            and line.end is _UNSET
            and later.t == "span"
            and later.end is not _UNSET
            and (later.origin is _UNSET or later.origin in OWN)
            and (not text or (whole.text.startswith(text[:-1]) and whole.text[len(text) - 1] in ",}"))
        )

    def row(self, process: str | None, service: str | None) -> tuple[Any, ...]:
        """The row of a span of which this is all that is known, in the order of :data:`~spanreplay.store.span_rows.COLUMNS`."""
        before, after = self.made or _columns(self.line, _attributes(self.text), self.text, _scope_of(bytes(self.line.scope)))
        return *before, process, service, *after


def parse_plainly(body: bytes) -> Form | PlainSpan | None:
    """What :func:`~spanreplay.store.journal_reader.parse_body` gives, but for plain spans."""
    return (plain_span(body) if body.startswith(_BEGINNINGS) else None) or parse_body(body)


def plain_span(body: bytes) -> PlainSpan | None:
    """What a line says; ``None`` where it is to be read in the other way.

    Args:
        body: its JSON, which begins as that of a span, or of the start of one.
    """
    try:
        line = _decode_line(body)
        text = str(line.attrs, "ascii")
        attributes, scope = _attributes(text), _scope_of(bytes(line.scope))
    except (*REFUSED, TypeError):
        return None
    return PlainSpan(line, text, body, None if line.end is _UNSET else _columns(line, attributes, text, scope))


def _attributes(text: str) -> dict[str, Json] | None:
    if not text:
        return None
    attributes = _decode(text)
    if type(attributes) is not dict or not attributes or "$map" in attributes:
        raise TypeError(text)
    return attributes


def _columns(line: _Line, attributes: dict[str, Json] | None, text: str, scope: _Scope | None) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Those before process and service, and those after them."""
    hot: Sequence[Any] = NO_HOT
    column, sums = None, ""
    if attributes is not None:
        shape = shape_of(attributes)
        hot = hot_values(attributes, shape)
        if "\\u" in text:  # characters beyond ASCII are escaped here, and not in a column
            column, in_order = to_readable_json(attributes), to_sorted_json(attributes)
        else:
            column, in_order = text, sorted_members(text, len(attributes), shape) or to_sorted_json(attributes)
        sums = f'"{ATTRIBUTES}":{in_order},'
    end = None if line.end is _UNSET else line.end
    parent = None if line.parent is _UNSET else line.parent
    resource = None if line.resource is _UNSET else line.resource
    if end is not None:
        sums += f'"{END}":{end},'
    if line.flags is not _UNSET:
        sums += f'"{FLAGS}":{line.flags},'
    if line.kind is not _UNSET:
        sums += f'"{KIND}":{line.kind},'
    if line.message is not _UNSET:
        sums += f'"{MESSAGE}":{quoted(line.message)},'
    sums += f'"{NAME}":{quoted(line.name)},'
    if parent is not None:
        sums += f'"{PARENT}":{quoted(parent)},'
    if resource is not None:
        sums += f'"{RESOURCE}":{quoted(resource)},'
    if scope is not None:
        sums += f'"{SCOPE}":{scope.sorted_text},'
    sums += f'"{SPAN}":{quoted(line.span)},"{START}":{line.start},'
    if line.status is not _UNSET:
        sums += f'"{STATUS}":{line.status},'
    sums = f'{{{sums}"{TRACE}":{quoted(line.trace)}}}'
    before = (line.trace, line.span, parent, line.name, line.kind or 0, line.start, end, line.status or 0, line.message or "")
    return before, (
        *hot,
        column,
        None,
        None,
        resource,
        None if scope is None else scope.name,
        None if scope is None else scope.version,
        None if scope is None else scope.json,
        "",
        line.flags or 0,
        0,
        0,
        0,
        None,
        RECORDER if line.origin is _UNSET else line.origin,
        end is not None,
        True,
        f"sha256:{sha256(sums.encode('ascii')).hexdigest()}",
    )


def _scope_of(text: bytes) -> _Scope | None:
    if not text:
        return None
    known = _scopes.get(text)
    if known is None:
        form = _decode(text)
        if type(form) is not dict:
            raise TypeError(text)
        name, version = form.get(NAME), form.get(VERSION)
        plain = all(key in (NAME, VERSION) and isinstance(value, str) for key, value in form.items())
        known = _Scope(
            name=name if isinstance(name, str) else None,
            version=version if isinstance(version, str) else None,
            json=None if plain else to_readable_json(form),
            sorted_text=to_sorted_json(form),
        )
        if len(_scopes) >= _SCOPES:
            _scopes.clear()
        _scopes[text] = known
    return known
