"""What is written of plain values that come again and again: of values that are equal, once."""

import marshal
from collections.abc import Callable
from typing import Any, Final, TypeAlias

_VERSION: Final = 2
"""Of marshal: the last one in which the bytes depend on the value alone, its types and the order of its keys included."""
_LONGEST: Final = 262_144
_HELD: Final = 4_000_000
"""Bytes of values, and of what was written of them, in each of two generations."""

_Make: TypeAlias = Callable[[Any], object]
_Key: TypeAlias = tuple[_Make, bytes]


class _Memo:
    """Two generations: what is asked for again moves to the new one; when that is full, the old one is forgotten. It needs no lock."""

    __slots__ = ("held", "new", "old")

    def __init__(self) -> None:
        self.new: dict[_Key, str] = {}
        self.old: dict[_Key, str] = {}
        self.held = 0

    def keep(self, key: _Key, text: str) -> None:
        size = len(key[1]) + len(text)
        if size <= _LONGEST:
            if self.held + size > _HELD:
                self.old, self.new, self.held = self.new, {}, 0
            self.new[key] = text
            self.held += size


_memo: Final = _Memo()


def remembered(value: Any, make: _Make, write: Callable[[Any], str] = str) -> str:
    """Return ``write(make(value))``.

    Args:
        value: any; what marshal has no form of is never remembered.
        make: a function of a module, which looks at nothing but the value.
        write: the same for each ``make``.

    Raises:
        Exception: what ``make`` and ``write`` raise.
    """
    try:
        key = make, marshal.dumps(value, _VERSION)
    except ValueError:
        return write(make(value))
    text = _memo.new.get(key)
    if text is None:
        text = _memo.old.get(key)
        if text is None:
            text = write(make(value))
        _memo.keep(key, text)
    return text
