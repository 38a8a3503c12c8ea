"""JSON values as the texts that rows hold."""

from typing import Final

import msgspec

from spanreplay.content.json_text import encoder
from spanreplay.replay.model import Json

_readable: Final = encoder(ascii_only=False, allow_nan=False)
_escaped: Final = encoder(allow_nan=False)
_quickly: Final = msgspec.json.Encoder().encode
_ALIKE: Final = frozenset({str, int, bool, type(None)})
"""What ``msgspec`` writes as ``json`` does. Floats it writes in another form, such as ``1e16`` for ``1e+16``."""


def written(value: Json) -> str:
    """Characters as they are, so that SQL finds them; escaped where there are lone surrogates, which a column of text cannot hold.

    Raises:
        ValueError: There is a number in it that JSON lacks, such as ``NaN``.
        TypeError: It is no JSON.
    """
    if _is_alike(value):
        try:
            return _quickly(value).decode()
        except (UnicodeEncodeError, TypeError, RecursionError):
            pass
    text = _readable(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return _escaped(value)
    return text


def _is_alike(value: Json) -> bool:
    waiting = [value]
    for one in waiting:  # which grows meanwhile
        kind = type(one)
        if kind is dict:
            waiting += one.values()
        elif kind is list:
            waiting += one
        elif kind not in _ALIKE:
            return False
    return True
