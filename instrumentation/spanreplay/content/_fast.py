"""JSON encoders that are set up once: ``json.JSONEncoder`` sets up its C part anew at each call, which for short texts costs more than the work."""

import json
import json.encoder
from collections.abc import Callable
from typing import Any, Final

_BIG: Final = 4096
"""Characters from which on a text is worth looking at before it is escaped character by character."""

_NEEDS_CARE: Final = bytes([*(code for code in range(32) if code != 10), 127])
"""ASCII bytes that JSON escapes, but for quotes, backslashes and line ends."""


def encoder(*, readable: bool = False, sort_keys: bool = False, allow_nan: bool = True) -> Callable[[Any], str]:
    """Return ``JSONEncoder(…).encode`` with compact separators and without a check for cycles.

    Args:
        readable: keep characters beyond ASCII as they are.
        sort_keys: members by name.
        allow_nan: write what JSON cannot say; else it is a ``ValueError``.
    """
    made = json.JSONEncoder(
        ensure_ascii=not readable, check_circular=False, allow_nan=allow_nan, sort_keys=sort_keys, separators=(",", ":")
    )
    make = getattr(json.encoder, "c_make_encoder", None)
    quote = json.encoder.encode_basestring if readable else json.encoder.encode_basestring_ascii
    try:
        chunks = make(None, made.default, quote, None, ":", ",", sort_keys, False, allow_nan)
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
    """Return an ASCII text as a JSON string, the same as the ASCII encoder does; long texts are escaped by whole-text replacement."""
    if len(text) < _BIG:
        return json.encoder.encode_basestring_ascii(text)
    data = text.encode("ascii")
    if len(data.translate(None, _NEEDS_CARE)) != len(data):
        return json.encoder.encode_basestring_ascii(text)
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    if '"' in text:
        text = text.replace('"', '\\"')
    if "\n" in text:
        text = text.replace("\n", "\\n")
    return f'"{text}"'
