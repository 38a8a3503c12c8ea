"""Bytes that are no UTF-8 stand in typed values as base64, where no secret shows: they are looked into as the text that they may be."""

import re
from base64 import b64decode, b64encode
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable
from typing import Final

Clean = Callable[[str], tuple[str, int]]
"""A text without its secrets, and how many were taken out."""

_MARK: Final = '","e":"base64"}'
_CODED: Final = re.compile(r'(","v":")([A-Za-z0-9+/=]++)(?=","e":"base64"\})')
_BINARY: Final = bytes({*range(32)} - {8, 9, 10, 12, 13, 27})
"""Control characters that no text has. Patterns are not for other data: the bytes of a picture may be anything, and are to stay."""


def redact_coded(text: str, clean: Clean, learnt: Callable[[bytes], tuple[bytes, int]]) -> tuple[str, int]:
    """Return a text of the typed codec without the secrets in its bytes.

    Args:
        text: JSON as :func:`spanreplay.content.codec.encode` gives it.
        clean: for bytes that are a text, of one byte a character or UTF-16 with its mark.
        learnt: for other bytes.
    """
    if _MARK not in text:
        return text, 0
    total = 0

    def replaced(match: re.Match[str]) -> str:
        nonlocal total
        try:
            data = b64decode(match[2], validate=True)
        except ValueError:
            return match[0]
        made, count = _clean_bytes(data, clean, learnt)
        total += count
        return match[1] + b64encode(made).decode("ascii") if count else match[0]

    made = _CODED.sub(replaced, text)
    return (made, total) if total else (text, 0)


def _clean_bytes(data: bytes, clean: Clean, learnt: Callable[[bytes], tuple[bytes, int]]) -> tuple[bytes, int]:
    mark, encoding = data[:2], {BOM_UTF16_LE: "utf-16-le", BOM_UTF16_BE: "utf-16-be"}.get(data[:2])
    if encoding is not None:
        try:
            made, count = clean(data[2:].decode(encoding))
        except UnicodeDecodeError:
            return learnt(data)
        return mark + made.encode(encoding, "surrogatepass"), count
    if len(data.translate(None, _BINARY)) != len(data):
        return learnt(data)
    made, count = clean(data.decode("latin-1"))
    return made.encode("latin-1", "replace"), count
