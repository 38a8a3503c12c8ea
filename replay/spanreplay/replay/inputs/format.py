"""A readable format: what a module in :mod:`spanreplay.replay.sources` offers, and all that there are.

A format is found by its module being there.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from typing import BinaryIO, Protocol, cast

from spanreplay.replay.inputs.report import ReadReport
from spanreplay.spans.record import Record


class Source(Protocol):
    """One readable format: what a module in :mod:`spanreplay.replay.sources` offers."""

    @property
    def NAME(self) -> str:  # noqa: N802 (a constant of the module)
        """The name of the format, such as ``otlp-json``."""
        ...

    def handles(self, head: bytes) -> bool:
        """Whether an input that begins with ``head`` is in this format. At most one source says yes; none looks at a file name.

        Args:
            head: The first bytes, or all there are, already unpacked: first 64 KiB, then, as long as no source says yes, more of
                :data:`~spanreplay.replay.inputs.input_stream.HEADS`. Never empty.
        """
        ...

    def read(self, stream: BinaryIO, where: str, report: ReadReport) -> Iterator[Record]:
        """Reads the records, in the order of the input; may read the whole stream first if the format needs it.

        Args:
            stream: The input from its beginning, unpacked.
            where: Names the input in rejections.
            report: Told about everything left out or altered. What can be kept is kept.

        Raises:
            FormatError: Nothing (more) can be read; ``where`` is the line or byte.
            OSError: From the stream.
        """
        ...


@cache
def registry() -> tuple[Source, ...]:
    """All formats, by the name of their module."""
    from spanreplay.replay import sources

    names = sorted(module.name for module in pkgutil.iter_modules(sources.__path__) if not module.name.startswith("_"))
    return tuple(cast("Source", importlib.import_module(f"{sources.__name__}.{name}")) for name in names)
