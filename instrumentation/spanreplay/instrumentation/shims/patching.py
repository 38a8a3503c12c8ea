"""Replacing a function of somebody else's class, and putting it back."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class Removals:
    """How often something was taken out of a library again.

    Who has installed everything need not do so anew as long as this stays the same.
    """

    times = 0


class Patches:
    """A set of replaced attributes."""

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, Any, bool]] = []
        self._left: dict[tuple[int, str], tuple[Any, str, Any, Any, bool]] = {}

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Set ``owner.name`` to ``make(original)``; what :meth:`undo` has left under somebody else's patch serves again."""
        own = name in vars(owner)
        left = self._left.pop((id(owner), name), None)
        if left is not None and own and vars(owner)[name] is not left[2]:
            self._done.append(left)
            return
        original = getattr(owner, name)
        made = make(original)
        kept = vars(owner)[name] if own else original  # what a staticmethod or classmethod is, not what it gives
        setattr(owner, name, made)
        self._done.append((owner, name, kept, made, own))

    def rebind(self, module: ModuleType, name: str, make: Callable[[Any], Any], *, everywhere: bool = False) -> None:
        """As :meth:`replace`, for a function of a module, also where modules of the same package have imported it by name.

        Args:
            module: that defines it.
            name: of the function.
            make: gives what takes its place.
            everywhere: also in modules of other packages, and in the agent's own.
        """
        original = getattr(module, name)
        self.replace(module, name, make)
        made = getattr(module, name)
        package = module.__name__.partition(".")[0]
        for other_name, other in list(sys.modules.items()):
            if other is module or not (everywhere or other_name.partition(".")[0] == package) or not isinstance(other, ModuleType):
                continue
            for alias, value in list(vars(other).items()):
                if value is original:
                    setattr(other, alias, made)
                    self._done.append((other, alias, original, made, True))

    def undo(self) -> None:
        """Put the originals back, except where somebody else has patched on top since."""
        while self._done:
            owner, name, original, made, own = self._done.pop()
            if vars(owner).get(name) is not made:
                self._left[id(owner), name] = (owner, name, original, made, own)
                continue
            if own:
                setattr(owner, name, original)
            else:  # it was inherited
                delattr(owner, name)
