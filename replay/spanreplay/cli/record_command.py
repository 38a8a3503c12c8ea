"""``spanreplay record``."""

import os
from pathlib import Path

import click

from spanreplay.cli.main import user_command
from spanreplay.cli.options import common, print_json, say, store_path


@click.command("record")
@click.option("--run-per", type=click.Choice(["auto", "agent", "command"]), default="auto", show_default=True, help="What a run is.")
@common
@click.pass_context
def command(context: click.Context, run_per: str, store: Path | None, as_json: bool, quiet: bool, verbose: bool) -> None:
    """Run a command, child processes too, and keep every step of its agents. Its exit code is kept.

    \b
    spanreplay record -- python agent.py
    """  # noqa: D301
    argv = user_command(context)
    if not argv:
        raise click.UsageError("give the command to record after --, for example: spanreplay record -- python agent.py")
    from spanreplay.cli.interpreters import nobody_reported
    from spanreplay.cli.recorded import summary
    from spanreplay.cli.target import ready_store
    from spanreplay.recording.command import RecordedCommand
    from spanreplay.replay.command import CommandMissing, run_attached

    path = store_path(store).absolute()
    recorded = RecordedCommand(store=path, argv=argv, run_per=run_per)
    try:
        code = run_attached(argv, recorded.environment())
    except CommandMissing as error:
        recorded.end(exit_code=127)
        raise click.UsageError(str(error)) from error
    recorded.end(exit_code=code)
    if os.environ.get("SPANREPLAY_BOOTSTRAP") == "record":  # an inner `record`: the outer one sums up
        context.exit(code)
    with ready_store(path, create=True) as opened:
        kept = summary(opened, recorded.command_id, recorded.run_id)
    if as_json:
        print_json({"schema": 1, "command_id": recorded.command_id, "exit_code": code, **kept.to_json()})
    else:
        for line in kept.lines():
            say(line, quiet=quiet)
        if not kept.processes:
            say(nobody_reported(argv))
    context.exit(code)
