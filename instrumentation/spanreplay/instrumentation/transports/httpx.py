"""HTTP through ``httpx``: every request of its clients is seen, whatever transport carries it."""

from typing import Final

from spanreplay.instrumentation.httpx_family import Seam

NAME: Final = "httpx"
_seam: Final = Seam(NAME)


def install() -> None:
    """Observe ``httpx``: now if it is imported, else as soon as it is. Idempotent; raises nothing."""
    _seam.install()


def uninstall() -> None:
    """Leave ``httpx`` as it was. Idempotent."""
    _seam.uninstall()


def status() -> str:
    """``off``, ``waiting`` (not imported yet), ``active``, or why this version cannot be observed."""
    return _seam.status
