"""Options of every command that re-executes: what it may do, and how it compares."""

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from spanreplay.cli.sections import under

if TYPE_CHECKING:
    from spanreplay.replay.reexecution.comparing import Comparing

F = TypeVar("F", bound=Callable[..., Any])

_SAFETY: Final = (
    click.option(
        "--allow-write",
        "allow_write",
        multiple=True,
        type=click.Path(path_type=Path),
        help="A file or folder the command may write. May be repeated.",
    ),
    click.option(
        "--isolate",
        type=click.Choice(["auto", "net", "hook"]),
        default="auto",
        show_default=True,
        help="auto: all that this machine offers to stop the command from acting outside, also in C code. net: besides that a network of "
        "its own, or nothing is run. hook: Python's audit hook only.",
    ),
)
_COMPARING: Final = (
    click.option(
        "--accept-incomplete",
        is_flag=True,
        help="Let steps answer whose record is cut, with what is left of it, and judge as far as it goes.",
    ),
    click.option(
        "--mode",
        type=click.Choice(["strict", "tolerant", "from-here"]),
        help="strict: every difference of an input counts. tolerant: but what --ignore names. from-here: after the first difference it "
        "goes on live, as a fork does, and is kept as a new run.  [default: strict]",
    ),
    click.option(
        "--ignore",
        multiple=True,
        metavar="PLACE",
        help="A place whose differences do not count, such as messages[*].content or arguments.when; or a regular expression between "
        "slashes, taken out of every text. May be repeated; what was ignored is reported. Implies --mode tolerant.",
    ),
    click.option(
        "--all-differences",
        is_flag=True,
        help="Do not stop at the first difference of an input: answer the call from the step at its place, and list every difference.",
    ),
)


def _comparing(mode: Any, ignore: tuple[str, ...], all_differences: bool) -> "Comparing":
    from spanreplay.replay.reexecution.comparing import Comparing
    from spanreplay.replay.reexecution.places import PatternError

    if mode == "strict" and ignore:
        raise click.UsageError("--mode strict ignores nothing; leave out --ignore, or use --mode tolerant")
    if mode == "tolerant" and not ignore:
        raise click.UsageError("--mode tolerant needs to know what may differ: --ignore PLACE")
    try:
        return Comparing(mode="tolerant" if ignore else "strict", ignore=ignore, all_differences=all_differences)
    except PatternError as error:
        raise click.UsageError(f"--ignore: {error}") from error


def how(function: F) -> F:
    """The options of a re-execution, given to the command as ``options``, a :class:`spanreplay.replay.reexecution.options.Options`."""

    @functools.wraps(function)
    def gathered(
        *args: Any,
        allow_write: tuple[Path, ...],
        isolate: Any,
        accept_incomplete: bool,
        mode: Any,
        ignore: tuple[str, ...],
        all_differences: bool,
        **kwargs: Any,
    ) -> Any:
        from spanreplay.replay.reexecution.options import Options

        comparing = _comparing(mode, ignore, all_differences)
        options = Options(allow_write=allow_write, isolate=isolate, accept_incomplete=accept_incomplete, comparing=comparing)
        if mode == "from-here":
            from spanreplay.replay.reexecution.policy import Policy

            options = replace(options, policy=Policy(leave=True))
        return function(*args, options=options, **kwargs)

    made = under("What it may do", *_SAFETY)(under("Comparing", *_COMPARING)(gathered))
    return cast("F", made)
