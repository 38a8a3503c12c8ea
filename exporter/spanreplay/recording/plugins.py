"""Installing everything that makes calls pass the Boundary: shims, HTTP transports, framework adapters."""

import importlib
import logging
import os
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Final

from spanreplay.boundary.complaints import complain
from spanreplay.exporter import environment_variables as env
from spanreplay.instrumentation.patching import Removals
from spanreplay.recording._config import Adapters

_log: Final = logging.getLogger("spanreplay")
_TRANSPORTS: Final = "spanreplay.instrumentation.transports"
_ADAPTERS: Final = "spanreplay.instrumentation.adapters"
_SHORTCUTS: Final = "spanreplay.instrumentation.shortcuts"
_SHIMS: Final = "spanreplay.instrumentation.shims"


@dataclass(slots=True)
class Installed:
    """What was installed, in order, to be taken out in reverse."""

    modules: list[tuple[str, ModuleType]] = field(default_factory=list)

    def names(self, package: str | None = None) -> tuple[str, ...]:
        """Short names of what is installed."""
        return tuple(name.rpartition(".")[2] for name, _ in self.modules if package is None or name.startswith(package + "."))

    def uninstall(self) -> None:
        """Take everything out again; what cannot be taken out stays, and does nothing while recording is off."""
        while self.modules:
            name, module = self.modules.pop()
            try:
                module.uninstall()
            except Exception:  # noqa: BLE001 — telemetry never breaks the agent
                complain(_log, "spanreplay could not take %s out again", name)


def install(adapters: Adapters, *, shortcuts: bool = False) -> Installed:
    """Install shims and transports, and the adapters asked for. One that fails is said and left out.

    Args:
        adapters: ``auto`` for every adapter, ``none``, or their names.
        shortcuts: also those of a replay, unless ``SPANREPLAY_SHORTCUTS=off``.

    Raises:
        ValueError: there is no adapter of a given name.
    """
    shorter = _found(_SHORTCUTS).values() if shortcuts and os.environ.get(env.SPANREPLAY_SHORTCUTS) != "off" else ()
    there = (adapters if isinstance(adapters, str) else tuple(adapters), bool(shorter), Removals.times)
    if _latest.there == there:
        return Installed(list(_latest.modules))
    available = _found(_ADAPTERS)
    if adapters == "auto":
        wanted = list(available)
    elif adapters == "none":
        wanted = []
    else:
        wanted = [adapters] if isinstance(adapters, str) else list(adapters)
    unknown = sorted(set(wanted) - set(available))
    if unknown:
        raise ValueError(f"no adapter is called {', '.join(unknown)}; there are: {', '.join(sorted(available)) or 'none'}")
    installed = Installed()
    for name in (_SHIMS, *_found(_TRANSPORTS).values(), *(available[short] for short in wanted), *shorter):
        try:
            module = importlib.import_module(name)
            module.install()
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            complain(_log, "spanreplay could not install %s; calls that pass there are not recorded", name)
        else:
            installed.modules.append((name, module))
    _latest.there, _latest.modules = there, tuple(installed.modules)
    return installed


class _Latest:
    """What was installed last: each re-execution asks for all of it again, and nearly always it is still there."""

    there: object = None
    modules: tuple[tuple[str, ModuleType], ...] = ()


_latest: Final = _Latest()


def names() -> tuple[str, ...]:
    """Modules of all transports and adapters."""
    return (*_found(_TRANSPORTS).values(), *_found(_ADAPTERS).values())


def adapters_of(installed: Installed) -> tuple[str, ...]:
    """Names of the installed transports and adapters."""
    return installed.names(_TRANSPORTS) + installed.names(_ADAPTERS)


@cache
def _found(package: str) -> Mapping[str, str]:
    """The plug-ins of a package: short name to module, in the order of their names."""
    path = importlib.import_module(package).__path__
    short = sorted(info.name for info in pkgutil.iter_modules(path) if not info.name.startswith("_"))
    return {name: f"{package}.{name}" for name in short}
