"""Replacing a function of somebody else's class, and putting it back."""

from collections.abc import Callable
from typing import Any


class Patches:
    """A set of replaced attributes."""

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, Any, bool]] = []

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Set ``owner.name`` to ``make(original)``."""
        own = name in vars(owner)
        original = getattr(owner, name)
        made = make(original)
        setattr(owner, name, made)
        self._done.append((owner, name, original, made, own))

    def undo(self) -> None:
        """Put the originals back, except where somebody else has patched on top since."""
        while self._done:
            owner, name, original, made, own = self._done.pop()
            if vars(owner).get(name) is not made:
                continue
            if own:
                setattr(owner, name, original)
            else:  # it was inherited
                delattr(owner, name)
