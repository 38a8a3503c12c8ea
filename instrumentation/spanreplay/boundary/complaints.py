"""Saying that something of ours went wrong, to whoever reads the application's log, without ever being a fault of the application."""

import logging
import sys

_LONGEST = 200


def complain(log: logging.Logger, message: str, *args: object) -> None:
    """Log one line that ends with the exception being handled; its traceback goes to the debug level.

    Raises nothing, whatever handlers and filters the application has put on the logger.

    Args:
        log: where to.
        message: what could not be done, with ``%`` places for ``args``.
        args: for these places.
    """
    try:
        error = sys.exc_info()[1]
        log.warning("%s: %s", message % args if args else message, _shown(error))
        log.debug("where that came from", exc_info=error)
    except Exception:  # noqa: BLE001 — telemetry never breaks the agent
        return


def _shown(error: BaseException | None) -> str:
    if error is None:
        return "no exception"
    name = type(error).__name__
    try:
        lines = str(error).splitlines()
    except Exception:  # noqa: BLE001 — the message of somebody else's exception
        return name
    return f"{name}: {lines[0][:_LONGEST]}" if lines else name
