"""``spanreplay fork``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from spanreplay.cli.fetching import fetching
from spanreplay.cli.how import how
from spanreplay.cli.judged import Reports
from spanreplay.cli.living import forking, of_target
from spanreplay.cli.main import user_command
from spanreplay.cli.options import common
from spanreplay.cli.sections import Sectioned

if TYPE_CHECKING:
    from spanreplay.replay.reexecution.options import Options


@click.command("fork", cls=Sectioned)
@click.argument("target", default="last")
@click.option("--rerun", is_flag=True, help="Execute the recorded command instead of one given after --.")
@click.option("--yes", is_flag=True, help="Do not ask before --rerun.")
@how
@forking
@fetching
@common
@click.pass_context
def command(
    context: click.Context,
    target: str,
    rerun: bool,
    yes: bool,
    options: "Options",
    store: Path | None,
    as_json: bool,
) -> None:
    """Execute a command again: its steps before --at N are answered from the record, from there on it is live.

    What is live: model calls, at the recorded hosts; tools that only read; and tools that --allow-effect names, where --target says
    that they act elsewhere than when they were recorded. Every other tool stays closed: a call of one ends the run, and the line to
    add is said. What is executed is kept as a new run, which spanreplay show and replay take as any.

    Exit code: 0 done, 1 a difference before step N, or the command itself ended otherwise than with 0, also by a fault, a signal or
    Ctrl-C, 2 wrong use, 3 the input cannot be read, 4 an action was refused.

    \b
    spanreplay fork last --at 5 --set model=gpt-5 -- python agent.py
    spanreplay fork 4f2a --at 3 --set prompt="Be brief." --set temperature=0 -- python agent.py
    spanreplay fork 4f2a --fault timeout@3 --fault error@6 -- python agent.py
    spanreplay fork 4f2a --at 4 --allow-effect send_email --target sandbox -- python agent.py
    """  # noqa: D301
    from spanreplay.cli.about import about
    from spanreplay.cli.ended import exit_code
    from spanreplay.cli.executing import re_execute
    from spanreplay.cli.target import load

    argv = user_command(context)
    if bool(argv) == rerun:
        raise click.UsageError("give the command after --, or --rerun for the recorded one")
    loaded = load(target, store)
    about(loaded)
    options = of_target(options, loaded)
    cwd = None
    if argv is None or rerun:
        from spanreplay.cli.rerunning import confirmed_command

        argv, cwd = confirmed_command(loaded, yes=yes)
    done = re_execute(loaded, argv, options, reports=Reports(junit=None, github=False), as_json=as_json, cwd=cwd, store=store)
    context.exit(exit_code(done, loaded.siblings, options.policy))
