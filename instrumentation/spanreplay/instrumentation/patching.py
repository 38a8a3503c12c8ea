"""Replacing a function of somebody else's class, and putting it back."""

import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypeAlias


class Removals:
    """How often something was taken out of a library again.

    Who has installed everything need not do so anew as long as this stays the same.
    """

    times = 0


_There: TypeAlias = tuple[list[ModuleType], list[int]]
"""Modules, and how many names each has."""
_kept: list[_There] = []


def _modules(package: str | None) -> _There:
    if package is None and _kept:
        return _kept[-1]
    there = list(sys.modules.copy().items())  # a copy is made at once: another thread may import
    modules = [
        module for name, module in there if (package is None or name.partition(".")[0] == package) and isinstance(module, ModuleType)
    ]
    return modules, list(map(len, map(vars, modules)))


@contextmanager
def looking_once() -> Iterator[None]:
    """What is rebound everywhere in this block is looked for in what is imported now: nothing in it imports, or binds names otherwise."""
    _kept.append(_modules(None))
    try:
        yield
    finally:
        _kept.pop()


class _Holders:
    """The modules that hold a function, each with a name it has there.

    An agent has thousands of modules: what they all need takes no step of Python for each value, and for each module only where one has
    come, or has more names, since the last look.
    """

    def __init__(self, function: Any) -> None:
        self.function = function
        self._modules: list[ModuleType] = []
        self._sizes: list[int] = []
        self._found: list[tuple[ModuleType, str]] = []

    def now(self, package: str | None) -> list[tuple[ModuleType, str]]:
        """Those that are imported; of one package or of all. A module that has as many names as at the last look is not searched again."""
        modules, sizes = _modules(package)
        if sizes != self._sizes or not all(map(operator.is_, modules, self._modules)):
            self._look(modules, sizes)
        return [(module, alias) for module, alias in self._found if vars(module).get(alias) is self.function]

    def _look(self, modules: list[ModuleType], sizes: list[int]) -> None:
        before = dict(zip(map(id, self._modules), self._sizes, strict=True))
        same = {id(module) for module, size in zip(modules, sizes, strict=True) if before.get(id(module)) == size}
        self._found = [(module, alias) for module, alias in self._found if id(module) in same]
        for module in modules:
            if id(module) not in same and id(self.function) in map(id, list(vars(module).values())):
                self._found += [(module, alias) for alias, value in list(vars(module).items()) if value is self.function]
        self._modules, self._sizes = modules, sizes


class Patches:
    """A set of replaced attributes."""

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, Any, bool]] = []
        self._left: dict[tuple[int, str], tuple[Any, str, Any, Any, bool]] = {}
        self._holders: dict[tuple[str, str], _Holders] = {}

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

    def rebind(
        self,
        module: ModuleType,
        name: str,
        make: Callable[[Any], Any],
        *,
        everywhere: bool = False,
        only: Callable[[ModuleType], bool] = lambda _: True,
    ) -> None:
        """As :meth:`replace`, for a function of a module, also where modules of the same package have imported it by name.

        Args:
            module: that defines it.
            name: of the function.
            make: gives what takes its place.
            everywhere: also in modules of other packages, and in the agent's own.
            only: of those, in these modules.
        """
        original = getattr(module, name)
        self.replace(module, name, make)
        made = getattr(module, name)
        holders = self._holders.get((module.__name__, name))
        if holders is None or holders.function is not original:
            holders = self._holders[module.__name__, name] = _Holders(original)
        for other, alias in holders.now(None if everywhere else module.__name__.partition(".")[0]):
            if other is not module and only(other):
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
