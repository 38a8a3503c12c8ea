"""Options of every command that re-executes: what it may do, and how it compares."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: Final = (
    click.option(
        "--allow-write",
        "allow_write",
        multiple=True,
        type=click.Path(path_type=Path),
        help="A file or folder the command may write. May be repeated.",
    ),
    click.option(
        "--isolate",
        type=click.Choice(["auto", "hook"]),
        default="auto",
        show_default=True,
        help="auto: all that this machine offers to stop the command from acting outside, also in C code. hook: Python's audit hook only.",
    ),
    click.option(
        "--accept-incomplete",
        is_flag=True,
        help="Let steps answer whose record is cut, with what is left of it, and judge as far as it goes.",
    ),
)


def how(function: F) -> F:
    """The options of a re-execution, given to the command as ``options``, a :class:`spanreplay.replay.reexecution.options.Options`."""

    @functools.wraps(function)
    def gathered(*args: Any, allow_write: tuple[Path, ...], isolate: Any, accept_incomplete: bool, **kwargs: Any) -> Any:
        from spanreplay.replay.reexecution.options import Options

        options = Options(allow_write=allow_write, isolate=isolate, accept_incomplete=accept_incomplete)
        return function(*args, options=options, **kwargs)

    made: Any = gathered
    for option in reversed(_OPTIONS):
        made = option(made)
    return cast("F", made)
