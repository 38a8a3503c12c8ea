"""JSON to Python values: what ``json.loads`` gives, in half its time.

``msgspec`` (0.19 to 0.23) reads numbers as Python does, ints of any size and floats to the last bit, and keeps the last of equal keys.
What it refuses is left to ``json``, to accept or to explain: ``NaN`` and the infinities, numbers beyond doubles, lone surrogates, a byte
order mark, and all that is no JSON.
"""

import json
from typing import Any, Final

import msgspec

_decode: Final = msgspec.json.Decoder().decode
REFUSED: Final = (msgspec.MsgspecError, ValueError, RecursionError)
"""What ``msgspec`` raises on a text that it does not read."""


def loads(text: str) -> Any:
    """What ``json.loads`` gives.

    Raises:
        ValueError: The text is no JSON, as ``json.loads`` says it, or has a number of too many digits.
        RecursionError: It nests too deep.
    """
    try:
        return _decode(text)
    except REFUSED:
        return json.loads(text)


def whole_document(line: bytes) -> Any:
    """The same of UTF-8.

    Raises:
        ValueError: The bytes are no such document, or one that only ``json.loads`` reads.
        RecursionError: It nests too deep.
    """
    try:
        return _decode(line)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
