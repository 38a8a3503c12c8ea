"""One text for equal JSON values, and the digest of a text: what two runs are compared by."""

import hashlib
from collections.abc import Callable
from typing import Any, Final

from spanreplay.content.json_text import encoder

_encode: Final = encoder(sort_keys=True)
_DECIMAL_SAFE_BITS: Final = 2000  # CPython never limits the decimal text of an int below 640 digits


def canonical_json(value: object) -> str:
    """Return the matching form of a JSON value: members sorted by code point, no spaces, ASCII only.

    Total over everything ``json.loads`` returns: lone surrogates, ``NaN`` and infinities, integers of any size, any depth.
    Values of different JSON type never share a text: ``True``, ``1`` and ``1.0`` differ, and so do ``0.0`` and ``-0.0``.

    Args:
        value: ``None``, ``bool``, ``int``, ``float``, ``str``, and lists, tuples and string-keyed dicts of them, without cycles.

    Raises:
        TypeError: The value holds something that is no JSON value.
    """
    try:
        return _encode(value)
    except (RecursionError, ValueError):
        return _canonical_deep(value)


def canonical_writer(default: Callable[[Any], Any]) -> Callable[[object], str]:
    """Return a function that does as :func:`canonical_json` for values that are not yet JSON everywhere.

    What :mod:`json` would write of a subclass of a JSON type, and of a name that is a number, is written so. The function raises
    ``RecursionError`` for what is nested too deep, and ``ValueError`` for integers of too many digits.

    Args:
        default: Makes JSON of a value that is none; what it raises is raised.
    """
    return encoder(sort_keys=True, default=default)


def _canonical_deep(value: object) -> str:
    """Do the same without recursion and without a limit on the digits of an integer."""
    parts: list[str] = []
    work: list[tuple[bool, object]] = [(False, value)]
    while work:
        is_text, item = work.pop()
        if is_text:
            parts.append(str(item))
        elif isinstance(item, dict):
            work.append((True, "}"))
            members = sorted(item.items())
            for index in range(len(members) - 1, -1, -1):
                key, member = members[index]
                work.append((False, member))
                work.append((True, f"{',' if index else ''}{_encode(key)}:"))
            work.append((True, "{"))
        elif isinstance(item, list | tuple):
            work.append((True, "]"))
            for index in range(len(item) - 1, -1, -1):
                work.append((False, item[index]))
                if index:
                    work.append((True, ","))
            work.append((True, "["))
        elif isinstance(item, int) and item.bit_length() > _DECIMAL_SAFE_BITS:
            parts.append(_decimal(item))
        else:
            parts.append(_encode(item))
    return "".join(parts)


def _decimal(value: int) -> str:
    """Write an integer in decimal, in pieces that CPython's limit on ``str(int)`` (never below 640 digits) lets through."""
    sign, rest = ("-", -value) if value < 0 else ("", value)
    pieces: list[str] = []
    while rest:
        rest, piece = divmod(rest, 10**600)
        pieces.append(f"{piece:0600d}")
    return sign + "".join(reversed(pieces)).lstrip("0")


def digest(data: bytes | str) -> str:
    """Return ``sha256:`` and 64 lower-case hex digits; a string is taken as UTF-8, lone surrogates included."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return "sha256:" + hashlib.sha256(raw).hexdigest()
