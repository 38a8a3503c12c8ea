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
    from spanreplay.exporter import environment_variables as env
    from spanreplay.recording.children import child_environment, finish_command
    from spanreplay.replay.command import CommandMissing, run_attached

    path = store_path(store).absolute()
    inner = os.environ.get(env.SPANREPLAY_BOOTSTRAP) == "record"  # a `record` inside a `record`: the outer one sums up
    command_id, run_id = os.urandom(16).hex(), os.urandom(16).hex()
    environment = child_environment(command_id, run_id, path, "record", {env.SPANREPLAY_RUN_PER: run_per})
    try:
        code = run_attached(argv, environment)
    except CommandMissing as error:
        raise click.UsageError(str(error)) from error
    finish_command(environment, code)
    if inner:
        context.exit(code)
    with ready_store(path, create=True) as opened:
        kept = summary(opened, command_id)
    if as_json:
        print_json({"schema": 1, "command_id": command_id, "exit_code": code, **kept.to_json()})
    else:
        for line in kept.lines():
            say(line, quiet=quiet)
        if not kept.processes:
            say(nobody_reported(argv))
    context.exit(code)
