"""The JSON of lists whose items come again with each request of a conversation: an item is read and written once."""

import marshal
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from spanreplay.instrumentation._conversations import Member
from spanreplay.instrumentation._lenient import dumps, plainly

_VERSION: Final = 2
"""Of marshal: the last one in which the bytes depend on the value alone, its types and the order of its keys included."""
_LONGEST: Final = 262_144
_HELD: Final = 4_000_000
"""Bytes of items, and of what was written of them, in each of two generations."""

_Make: TypeAlias = Callable[[object], object]
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


def written(items: Sequence[object], make: _Make) -> str:
    """Return ``dumps([make(item) for item in items])``.

    Args:
        items: of a parsed body.
        make: a function of a module, which looks at nothing but the item.
    """
    try:
        return "[" + ",".join([_one(item, make) for item in items]) + "]"
    except (ValueError, TypeError, RecursionError):  # one is no plain JSON: the list is written in another way then
        return dumps([make(item) for item in items])


def _one(item: Any, make: _Make) -> str:
    if type(item) is Member:
        made = item.made.get(make)
        if made is None:
            made = item.made[make] = plainly(make(item))
        return made
    key = make, marshal.dumps(item, _VERSION)
    text = _memo.new.get(key)
    if text is None:
        text = _memo.old.get(key)
        if text is None:
            text = plainly(make(item))
        _memo.keep(key, text)
    return text
