"""HTTP through ``httpx2``: every request of its clients is seen, whatever transport carries it."""

from typing import Final

from spanreplay.instrumentation.httpx_family import Seam

NAME: Final = "httpx2"
_seam: Final = Seam(NAME)


def install() -> None:
    """Observe ``httpx2``: now if it is imported, else as soon as it is. Idempotent; raises nothing."""
    _seam.install()


def uninstall() -> None:
    """Leave ``httpx2`` as it was. Idempotent."""
    _seam.uninstall()


def status() -> str:
    """``off``, ``waiting`` (not imported yet), ``active``, or why this version cannot be observed."""
    return _seam.status
