"""Writing runs for other tools: this module says what a format has to give, and finds all of them.

A format is one module in :mod:`spanreplay.replay.writers` that satisfies :class:`Writer`; it is found by being there.
"""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol, cast

from spanreplay.replay import writers
from spanreplay.replay.model import Run
from spanreplay.spans.record import Record


class Writer(Protocol):
    """One format: what a module in :mod:`spanreplay.replay.writers` offers."""

    @property
    def NAME(self) -> str:  # noqa: N802 (a constant of the module)
        """The name of the format, as ``spanreplay export --format`` has it."""
        ...

    @property
    def BINARY(self) -> bool:  # noqa: N802
        """Not for a terminal."""
        ...

    @property
    def LOGS(self) -> bool:  # noqa: N802
        """Whether log records have a place in it; else they are left out."""
        ...

    def write(self, records: Sequence[Record], runs: Sequence[Run]) -> bytes:
        """The whole file.

        Args:
            records: every span and log record of the runs.
            runs: what was rebuilt from them.
        """
        ...


@cache
def registry() -> Mapping[str, Writer]:
    """All formats by their names."""
    names = sorted(module.name for module in pkgutil.iter_modules(writers.__path__) if not module.name.startswith("_"))
    found = [cast("Writer", importlib.import_module(f"{writers.__name__}.{name}")) for name in names]
    return {writer.NAME: writer for writer in found}
