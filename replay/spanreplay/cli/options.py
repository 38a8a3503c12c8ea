"""Options that every command has, and how commands speak: data on stdout, everything else on stderr."""

import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click

F = TypeVar("F", bound=Callable[..., Any])

STORE_VARIABLE: Final = "SPANREPLAY_STORE"
DEFAULT_STORE: Final = ".spanreplay"
REMARKS_SHOWN: Final = 3
"""How many remarks of one sort are printed without ``-v``."""

_QUIET: Final = "spanreplay.quiet"
_VERBOSE: Final = "spanreplay.verbose"

_UNSAFE_IN_JSON: Final = re.compile("[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
"""What JSON allows in a text and a terminal obeys."""

_IN_ASCII: Final = str.maketrans({"·": "-", "→": "->", "┃": "|", "✗": "x", "•": "*", "…": "..."})
"""Our own signs, for a terminal that has only ASCII."""


class WrongUse(click.ClickException):
    """The command was given something that it cannot work with; exit code 2, and no usage lines, which would not help."""

    exit_code = 2


def _flag(name: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def remember(context: click.Context, _: click.Parameter, value: bool) -> None:
        context.meta[name] = value

    return remember


def common(function: F) -> F:
    """``--store``, ``--json``, ``-q``, ``-v``."""
    options: Sequence[Callable[[Any], Any]] = (
        click.option(
            "-v", "--verbose", is_flag=True, expose_value=False, callback=_flag(_VERBOSE), help="Say more: what was read, left out, kept."
        ),
        click.option("-q", "--quiet", is_flag=True, expose_value=False, callback=_flag(_QUIET), help="No remarks; errors only."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON for machines (stable, versioned)."),
        click.option(
            "--store",
            type=click.Path(path_type=Path),
            default=None,
            metavar="FOLDER",
            help=f"Folder of the store. Default: ${STORE_VARIABLE}, else ./{DEFAULT_STORE}.",
        ),
    )
    made: Any = function
    for option in options:
        made = option(made)
    return cast("F", made)


def store_path(given: Path | None) -> Path:
    """The store's folder: the option, else the variable, else ``./.spanreplay``."""
    if given is not None:
        return given
    return Path(os.environ.get(STORE_VARIABLE) or DEFAULT_STORE)


def check_kept(store: Path) -> None:
    """Make sure that a command which is there to record can keep something.

    Raises:
        WrongUse: it cannot; the text says why, and what to do.
    """
    from spanreplay.store.errors import StoreError
    from spanreplay.store.folder import check_writable

    try:
        check_writable(store)
    except StoreError as error:
        raise WrongUse(str(error)) from error


def quiet() -> bool:
    """Whether ``-q`` was given."""
    return _meta(_QUIET)


def verbose() -> bool:
    """Whether ``-v`` was given."""
    return _meta(_VERBOSE)


def _meta(name: str) -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(name))


def many(number: int, one: str, more: str | None = None) -> str:
    """``1 step``, ``2 steps``."""
    return f"{number} {one if number == 1 else more or one + 's'}"


def say(text: str) -> None:
    """A remark for people, on stderr; ``-q`` silences it."""
    if not quiet():
        complain(text)


def detail(text: str) -> None:
    """A remark that only ``-v`` wants."""
    if verbose():
        say(text)


def say_some(lines: Sequence[str], indent: str = "") -> None:
    """Remarks of one sort: the first few, all with ``-v``."""
    shown = lines if verbose() else lines[:REMARKS_SHOWN]
    for line in shown:
        say(f"{indent}{line}")
    if len(shown) < len(lines):
        say(f"{indent}and {len(lines) - len(shown)} more; -v lists all")


def complain(text: str) -> None:
    """Something that has to be said even with ``-q``, on stderr."""
    from spanreplay.replay.showing import safe_lines

    click.echo(safe_lines(text), err=True)


def print_json(document: object) -> None:
    """One JSON document on stdout: strict, and with nothing in it that a terminal would obey."""
    from spanreplay.replay.reading.fields import strict

    plain = strict(document)
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False, indent=2)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:  # a lone surrogate, or a terminal of another encoding
        text = json.dumps(plain, allow_nan=False, indent=2)
    _write(_UNSAFE_IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], text) + "\n")


def print_text(text: str) -> None:
    """Text on stdout that is safe to print already, with its colours only on a terminal."""
    encoding = sys.stdout.encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:  # a terminal of another encoding
        text = text.translate(_IN_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    _write(text + "\n")


def print_bytes(data: bytes) -> None:
    """Bytes on stdout."""
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _nobody_reads()


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _nobody_reads()


def _nobody_reads() -> None:
    """Our output's reader has gone, as ``head`` does; the exit code still has to be that of what was done."""
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, sys.stdout.fileno())
    finally:
        os.close(null)
