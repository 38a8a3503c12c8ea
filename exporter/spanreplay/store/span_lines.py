"""Journal lines of spans to their forms: what ``json.loads`` gives, with the JSON of the attributes as it stands in the line."""

from typing import Any, Final

import msgspec
from msgspec.structs import astuple

from spanreplay.spans.json_parsing import REFUSED
from spanreplay.store.encoding import written_map
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
    Form,
)
from spanreplay.store.journal_reader import LOST, TYPE

_FIELDS: Final = (
    *(TYPE, "origin", TRACE, SPAN, NAME, START, PARENT, KIND, FLAGS, END, STATUS, MESSAGE, ATTRIBUTES),
    *(RESOURCE, SCOPE, STATE, EVENTS, LINKS, DROPPED, LOST),
)
_Line: Final = msgspec.defstruct(
    "_Line",
    [(name, msgspec.Raw if name == ATTRIBUTES else Any, msgspec.UNSET) for name in _FIELDS],
    forbid_unknown_fields=True,
    gc=False,
)
_AT: Final = _FIELDS.index(ATTRIBUTES)
_decode_line: Final = msgspec.json.Decoder(_Line).decode
_decode: Final = msgspec.json.Decoder().decode
_UNSET: Final = msgspec.UNSET


def span_form(line: bytes) -> Form | None:
    """The record; ``None`` where it is to be read with the care of ``json``, which says what it is, or that it is none.

    Args:
        line: its JSON, of nothing but ASCII.
    """
    try:
        values = astuple(_decode_line(line))
        form = {name: value for name, value in zip(_FIELDS, values, strict=True) if value is not _UNSET}
        raw = values[_AT]
        if raw is not _UNSET:
            text = bytes(raw).decode("ascii")
            if "\\" in text and "\\u" in text:  # characters beyond ASCII are escaped here, and not in a column
                form[ATTRIBUTES] = _decode(text)
            else:
                form[ATTRIBUTES] = written_map(_decode(text), text)
    except (*REFUSED, TypeError):
        return None
    return form
