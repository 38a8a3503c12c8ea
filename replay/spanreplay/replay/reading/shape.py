"""Messages come in the shapes of many APIs and frameworks; this module says what the reader of a shape has to give, and finds all.

A shape is one module in :mod:`spanreplay.replay.shapes` that satisfies :class:`Shape`; it is found by being there. Everything that a shape
returns is in the parts shape of the GenAI conventions. Shapes are pure and never raise, whatever they are given.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Protocol, cast

from spanreplay.replay import shapes
from spanreplay.replay.model import Json


class Shape(Protocol):
    """One shape: what a module in :mod:`spanreplay.replay.shapes` offers."""

    @property
    def NAME(self) -> str:  # noqa: N802 (a constant of the module)
        """The name of the shape, such as ``gemini``."""
        ...

    def reads(self, item: Mapping[str, Json]) -> bool:
        """Whether one object of a list is a message of this shape, told by names that no other shape has."""
        ...

    def messages(self, item: Mapping[str, Json], role: str) -> list[dict[str, Json]]:
        """The message in the parts shape; several where one object holds several, such as a text and a tool's result.

        Args:
            item: an object that :meth:`reads` said yes to.
            role: of a message that names none.
        """
        ...

    def asked(self, body: Mapping[str, Json]) -> Json:
        """``{"messages", "system", "tools", "params"}`` from a whole request, or ``None`` where it is no request of this shape.

        Messages and parts may still be as they were found: the caller brings them into the parts shape.
        """
        ...

    def answered(self, body: Mapping[str, Json]) -> Json:
        """``{"messages", "finish"}`` from a whole response, or ``None`` where it is none of this shape; messages as they were found."""
        ...


@cache
def registry() -> tuple[Shape, ...]:
    """All shapes, by the name of their module."""
    names = sorted(module.name for module in pkgutil.iter_modules(shapes.__path__) if not module.name.startswith("_"))
    return tuple(cast("Shape", importlib.import_module(f"{shapes.__name__}.{name}")) for name in names)
