"""The names met last, for membership only."""

from collections.abc import Hashable


class Latest:
    """Remembers at least the ``most`` names added last, and at most twice as many.

    Two sets that take turns. A dictionary that loses its oldest entry with each new one gets slow: its first entry is looked for behind
    all that were deleted.

    Args:
        most: how many.
    """

    __slots__ = ("_most", "_new", "_old")

    def __init__(self, most: int) -> None:
        self._most = most
        self._new: set[Hashable] = set()
        self._old: set[Hashable] = set()

    def __contains__(self, name: Hashable) -> bool:
        return name in self._new or name in self._old

    def __len__(self) -> int:
        return len(self._new | self._old)

    def add(self, name: Hashable) -> None:
        """Remember a name."""
        if len(self._new) >= self._most:
            self._old, self._new = self._new, set()
        self._new.add(name)
