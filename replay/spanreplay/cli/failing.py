"""Errors become one clear line and an exit code; no traceback reaches a user."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

EXIT_UNREADABLE: Final = 3
EXIT_INTERNAL: Final = 70
"""A fault of spanreplay itself (``EX_SOFTWARE`` of sysexits)."""


class Unreadable(click.ClickException):
    """The input cannot be read: which file, which line, what was expected."""

    exit_code = EXIT_UNREADABLE


@contextmanager
def report(*, verbose: bool) -> Iterator[None]:
    """Turn what the layers below raise into messages on stderr and exit codes."""
    try:
        yield
    except BrokenPipeError:  # the reader of our output has gone, as ``head`` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if verbose:
            raise
        code, text = _explain(error)
        click.echo(f"Error: {text}", err=True)
        sys.exit(code)


def _explain(error: Exception) -> tuple[int, str]:
    from spanreplay.replay.source import UnreadableSource
    from spanreplay.spans.errors import FormatError
    from spanreplay.store.errors import QueryError, StoreError

    if isinstance(error, QueryError):
        return 2, str(error)
    if isinstance(error, UnreadableSource | FormatError | StoreError):
        return EXIT_UNREADABLE, str(error)
    if isinstance(error, OSError):
        return EXIT_UNREADABLE, f"{error.strerror or error}: {error.filename}" if error.filename else str(error)
    return EXIT_INTERNAL, f"{type(error).__name__}: {error}. This is a fault of spanreplay; run again with -v to see where"
