"""Options that every command has, and how commands print."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

STORE_VARIABLE: Final = "SPANREPLAY_STORE"
DEFAULT_STORE: Final = ".spanreplay"


def common(function: F) -> F:
    """``--store``, ``--json``, ``-q``, ``-v``."""
    for option in (
        click.option("-v", "--verbose", is_flag=True, help="Say more; show where a fault of spanreplay happened."),
        click.option("-q", "--quiet", is_flag=True, help="Say only what was asked for."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON for machines (stable, versioned)."),
        click.option(
            "--store",
            type=click.Path(path_type=Path, file_okay=False),
            default=None,
            help=f"Folder of the store. Default: ${STORE_VARIABLE}, else ./{DEFAULT_STORE}.",
        ),
    ):
        function = option(function)
    return function


def store_path(given: Path | None) -> Path:
    """The store's folder: the option, else the variable, else ``./.spanreplay``."""
    if given is not None:
        return given
    return Path(os.environ.get(STORE_VARIABLE) or DEFAULT_STORE)


def print_json(document: object) -> None:
    """One JSON document on stdout."""
    text = json.dumps(document, ensure_ascii=False, indent=2)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:  # a lone surrogate, or a terminal of another encoding
        text = json.dumps(document, indent=2)
    click.echo(text)


def say(text: str, *, quiet: bool = False) -> None:
    """A remark for people, on stderr."""
    if not quiet:
        click.echo(text, err=True)


def print_text(text: str) -> None:
    """Rendered text on stdout, with its colours only on a terminal."""
    try:
        click.echo(text)
    except UnicodeEncodeError:  # a terminal of another encoding
        click.echo(text.encode("ascii", "backslashreplace").decode())
