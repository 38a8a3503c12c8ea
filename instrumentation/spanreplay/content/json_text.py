"""JSON encoders set up once: ``json.JSONEncoder`` sets up its C part at each call, which for short texts costs more than the work."""

import json
import json.encoder
from collections.abc import Callable
from typing import Any, Final

LONG: Final = 1024
"""Characters from which on a text is worth looking at before it is escaped character by character."""

_CONTROLS: Final = bytes(code for code in range(32) if code != 10)


def encoder(
    *,
    ascii_only: bool = True,
    sort_keys: bool = False,
    allow_nan: bool = True,
    spaced: bool = False,
    default: Callable[[Any], Any] | None = None,
) -> Callable[[Any], str]:
    """Return ``JSONEncoder(…).encode`` with compact separators and without a check for cycles.

    Args:
        ascii_only: escape characters beyond ASCII; else they stay as they are.
        sort_keys: members by name.
        allow_nan: write what JSON cannot say; else it is a ``ValueError``.
        spaced: a space after each comma and colon, as ``json.dumps`` has them.
        default: makes JSON of a value that is none, or raises ``TypeError``.
    """
    comma, colon = (", ", ": ") if spaced else (",", ":")
    made = json.JSONEncoder(
        ensure_ascii=ascii_only, check_circular=False, allow_nan=allow_nan, sort_keys=sort_keys, separators=(comma, colon), default=default
    )
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    chunks: Any = None
    quote = json.encoder.encode_basestring_ascii if ascii_only else json.encoder.encode_basestring
    try:
        chunks = make(None, made.default, quote, None, colon, comma, sort_keys, False, allow_nan)
        usable = "".join(chunks({"a": [1, "\xe9"]}, 0)) == made.encode({"a": [1, "\xe9"]})
    except Exception:  # noqa: BLE001 - a Python without the C part, or with another one
        usable = False
    if not usable:
        return made.encode
    join = "".join

    def encode(value: Any) -> str:
        return join(chunks(value, 0))

    return encode


def quoted(text: str) -> str:
    """Return an ASCII text as a JSON string, the same as the ASCII encoder does."""
    if len(text) < LONG or "\x7f" in text:
        return json.encoder.encode_basestring_ascii(text)
    return _escaped(text) or json.encoder.encode_basestring_ascii(text)


def readable(text: str) -> str:
    """Return a text as a JSON string with its characters as they are, the same as the readable encoder does."""
    if len(text) < LONG:
        return json.encoder.encode_basestring(text)
    return _escaped(text) or json.encoder.encode_basestring(text)


def _escaped(text: str) -> str | None:
    """Escape a long text by replacing in the whole of it, several times faster; ``None``: it has more to escape than is done here."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return None
    if len(data.translate(None, _CONTROLS)) != len(data):
        return None
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    if '"' in text:
        text = text.replace('"', '\\"')
    if "\n" in text:
        text = text.replace("\n", "\\n")
    return f'"{text}"'
