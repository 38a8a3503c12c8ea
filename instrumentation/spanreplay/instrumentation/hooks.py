"""Patching a library when it is imported, and putting it back: what adapters and transports share.

An adapter names the modules it patches, and a function for each::

    _hooks: Final = Hooks("acme_agents", {"acme.tools": _patch_tools})
    install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


    def _patch_tools(module: ModuleType, patches: Patches) -> None:
        expect(module.ToolRunner, "run", ["self", "tool", "arguments"])
        patches.replace(module.ToolRunner, "run", _observed)

Nothing here imports the library. A module that is not imported yet is patched as soon as it is.
"""

import inspect
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, Final, TypeAlias

from wrapt import register_post_import_hook

from spanreplay.instrumentation.patching import Patches, Removals

_log: Final = logging.getLogger("spanreplay")

Seam: TypeAlias = Callable[[ModuleType, Patches], None]
"""Patches one module; raises :class:`UnsupportedError` where it is not the module known here."""


class UnsupportedError(Exception):
    """A library is not as it is known here: what was wanted and what was found."""


def expect(owner: Any, name: str, parameters: Sequence[str]) -> Callable[..., Any]:
    """The function ``owner.name``, if it takes at least these parameters, in this order.

    Raises:
        UnsupportedError: there is none, or it takes others. Parameters that it has besides are fine: the replacement hands them on.
    """
    found: Callable[..., Any] | None = getattr(owner, name, None)
    where = f"{getattr(owner, '__name__', owner)}.{name}"
    if not callable(found):
        raise UnsupportedError(f"wanted a function {where}, found none")
    try:
        there = list(inspect.signature(found).parameters)
    except (TypeError, ValueError) as error:
        raise UnsupportedError(f"the parameters of {where} cannot be read: {error}") from error
    left = iter(there)
    if not all(parameter in left for parameter in parameters):
        raise UnsupportedError(f"wanted {where}({', '.join(parameters)}), found the parameters ({', '.join(there)})")
    return found


known: Final[dict[str, "Hooks"]] = {}
"""By name, for those who want to say what is patched."""


class Hooks:
    """What patches one library.

    Args:
        name: of the adapter or transport, as users know it.
        seams: dotted module name to the function that patches it.
    """

    def __init__(self, name: str, seams: Mapping[str, Seam]) -> None:
        self.name = name
        self._seams = seams
        self._wanted = False
        self._hooked: set[str] = set()
        self._done: dict[str, Patches] = {}
        self._problems: dict[str, str] = {}
        known[name] = self

    @property
    def modules(self) -> tuple[str, ...]:
        """Dotted names of the modules that are patched."""
        return tuple(self._seams)

    def install(self) -> None:
        """Observe the library: modules that are imported now, the others as soon as they are. Idempotent; raises nothing."""
        if self._wanted:
            return
        self._wanted = True
        for name in self._seams:
            if name not in self._hooked:
                self._hooked.add(name)
                register_post_import_hook(self._patch, name)  # calls at once where it is imported
            elif (module := sys.modules.get(name)) is not None:
                self._patch(module)

    def uninstall(self) -> None:
        """Leave the library as it was, except where somebody else has patched on top since. Idempotent."""
        Removals.times += 1
        self._wanted = False
        self._problems.clear()
        for patches in self._done.values():
            patches.undo()
        self._done.clear()

    def status(self) -> str:
        """``off``, ``waiting`` (not imported yet), ``active``, or why this version of the library cannot be observed."""
        if not self._wanted:
            return "off"
        if self._problems:
            return "unsupported: " + "; ".join(self._problems.values())
        return "active" if self._done else "waiting"

    def _patch(self, module: ModuleType) -> None:
        name = module.__name__
        if not self._wanted or name in self._done or name not in self._seams:
            return
        patches = Patches()
        try:
            self._seams[name](module, patches)
        except Exception as error:  # noqa: BLE001 — telemetry never breaks the agent, nor an import of the agent's
            patches.undo()
            self._problems[name] = str(error) if isinstance(error, UnsupportedError) else f"{type(error).__name__}: {error}"
            _log.warning("spanreplay cannot observe %s as it wants to: %s", self.name, self._problems[name])
            return
        self._done[name] = patches
