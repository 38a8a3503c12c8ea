"""Options of ``replay`` for a part of a run, and for how time passes in it."""

import functools
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from spanreplay.cli.options import WrongUse
from spanreplay.cli.sections import under
from spanreplay.replay.showing import short_id

if TYPE_CHECKING:
    from spanreplay.cli.target import Loaded
    from spanreplay.replay.reexecution.options import Options

F = TypeVar("F", bound=Callable[..., Any])
_STEP: Final = click.IntRange(1)

_OPTIONS: Final = (
    click.option("--break-at", type=_STEP, metavar="N", help="Open a debugger in the agent's frame before step N is answered."),
    click.option("--from", "first", type=_STEP, metavar="N", help="Compare from step N on: what earlier calls ask for does not count."),
    click.option("--until", type=_STEP, metavar="N", help="Stop the agent, with success, once steps 1 to N are answered."),
    click.option("--fast", is_flag=True, help="Waits take no time: sleeps, and calls that the agent cancels."),
)


def stepping(function: F) -> F:
    """``--break-at``, ``--from``, ``--until``, ``--fast``: they become a part of the command's ``options``."""

    @functools.wraps(function)
    def gathered(*args: Any, options: "Options", break_at: Any, first: Any, until: Any, fast: bool, **kwargs: Any) -> Any:
        from spanreplay.replay.reexecution.stepping import Stepping

        asked = Stepping(since=first or 1, until=until, break_at=break_at)
        if until is not None and (first or break_at or 1) > until:
            raise click.UsageError(f"--until {until} is before {'--from' if first else '--break-at'} {first or break_at}")
        comparing = replace(options.comparing, all_differences=True) if asked.since > 1 else options.comparing
        return function(*args, options=replace(options, stepping=asked, fast=fast, comparing=comparing), **kwargs)

    return cast("F", under("Step by step", *_OPTIONS)(gathered))


def check_terminal(options: "Options", *, as_json: bool) -> None:
    """A debugger talks to its user.

    Raises:
        WrongUse: there is none.
    """
    if options.stepping.break_at is None:
        return
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise WrongUse("--break-at opens a debugger, which needs a terminal for input and output, and no --json")


def check_steps(loaded: "Loaded", options: "Options") -> None:
    """Steps that are asked for are there: what lies beyond the last would be neither compared nor stopped at.

    Raises:
        WrongUse: the run has no such step, or the TARGET has several runs.
    """
    asked = options.stepping
    if not asked:
        return
    run = loaded.one()
    last = max((step.seq for step in run.steps), default=0)
    for option, number in (("--from", asked.since), ("--until", asked.until), ("--break-at", asked.break_at)):
        if number is not None and number > max(last, 1 if option == "--from" else 0):
            has = f"has steps 1 to {last}" if last else "has no steps"
            raise WrongUse(f"run {short_id(run.run_id)} {has}; there is no step {number} ({option})")


def shown_part(loaded: "Loaded", options: "Options") -> "Loaded":
    """The steps from ``--from`` to ``--until`` only, where nothing is executed."""
    asked = options.stepping
    if not asked:
        return loaded
    run = loaded.one()
    steps = tuple(s for s in run.steps if s.seq >= asked.since and (asked.until is None or s.seq <= asked.until))
    return replace(loaded, runs=[replace(run, steps=steps)])
