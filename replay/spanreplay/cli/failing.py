"""Errors become one clear line and an exit code; no traceback reaches a user who has not asked for it."""

import traceback
from collections.abc import Callable
from typing import Final

import click

from spanreplay.cli.options import complain

EXIT_WRONG_USE: Final = 2
EXIT_UNREADABLE: Final = 3
EXIT_INTERNAL: Final = 70
"""A fault of spanreplay itself (``EX_SOFTWARE`` of sysexits)."""
EXIT_INTERRUPTED: Final = 130
"""128 + SIGINT, as shells have it."""
QUERY_INTERRUPTED: Final = "Query interrupted"
"""The ``RuntimeError`` that DuckDB raises in place of what a signal's handler has raised during a query."""


def exit_code_of(work: Callable[[], int | None], *, trace: bool) -> int:
    """Do ``work``; what it and the layers below raise becomes a message on stderr and an exit code.

    Args:
        work: gives its exit code; ``None`` is 0.
        trace: show where a fault of spanreplay happened.
    """
    try:
        return work() or 0
    except click.exceptions.Exit as asked:
        return asked.exit_code
    except click.UsageError as error:
        if error.ctx is not None:
            complain(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n")
        complain(f"Error: {error.format_message()}")
        return error.exit_code
    except click.ClickException as error:
        complain(f"Error: {error.format_message()}")
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        complain("interrupted")
        return EXIT_INTERRUPTED
    except RuntimeError as error:
        if str(error) != QUERY_INTERRUPTED:
            return _reported(error, trace=trace)
        complain("interrupted")
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 — whatever it is, a user gets one line of it
        return _reported(error, trace=trace)


def _reported(error: Exception, *, trace: bool) -> int:
    code, text = _explain(error)
    if trace and code == EXIT_INTERNAL:
        complain("".join(traceback.format_exception(error)))
    complain(f"Error: {text}")
    return code


def _explain(error: Exception) -> tuple[int, str]:
    from spanreplay.replay.inputs.report import UnreadableSource
    from spanreplay.spans.errors import FormatError
    from spanreplay.store.errors import QueryError, StoreError

    if isinstance(error, QueryError):
        return EXIT_WRONG_USE, str(error)
    if isinstance(error, UnreadableSource | FormatError | StoreError):
        return EXIT_UNREADABLE, str(error)
    if isinstance(error, OSError):
        return EXIT_UNREADABLE, f"{error.strerror or error}: {error.filename}" if error.filename else str(error)
    return EXIT_INTERNAL, f"{type(error).__name__}: {error}. This is a fault of spanreplay; run again with -v to see where"
