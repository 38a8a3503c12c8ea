"""``spanreplay record``."""

import os
import sys
from pathlib import Path

import click

from spanreplay.cli.main import user_command
from spanreplay.cli.options import WrongUse, common, complain, detail, many, print_json, say, store_path


@click.command("record")
@click.option(
    "--run-per",
    type=click.Choice(["auto", "agent", "command"]),
    default="auto",
    show_default=True,
    help="What a run is: each agent, or the whole command. auto: each agent, where there is one.",
)
@click.option(
    "--state",
    multiple=True,
    type=click.Path(),
    help="A file, folder or SQLite database that the command starts from: kept with the run, and put back in a replay. May be repeated.",
)
@click.option(
    "--seed-secrets",
    is_flag=True,
    help="Make what the module secrets gives from the recorded seed, so that a replay has it again. Whoever has the record can, too.",
)
@common
@click.pass_context
def command(context: click.Context, run_per: str, state: tuple[str, ...], seed_secrets: bool, store: Path | None, as_json: bool) -> None:
    """Run a command, child processes too, and keep every step of its agents. Its exit code is kept.

    What the command is stands after --. Where nothing can be kept, it is not run: exit code 2. With --json its own output goes to
    standard error.

    \b
    spanreplay record -- python agent.py
    spanreplay record --state memory.db -- python agent.py
    """  # noqa: D301
    argv = user_command(context)
    if not argv:
        raise click.UsageError("give the command to record after --, for example: spanreplay record -- python agent.py")
    from spanreplay.cli.interpreters import nobody_reported
    from spanreplay.cli.recorded import summary
    from spanreplay.cli.stored import ready_store
    from spanreplay.exporter import environment_variables as env
    from spanreplay.recording.children import begin_command, child_environment, finish_command
    from spanreplay.recording.state import left_out
    from spanreplay.replay.reexecution.command import CommandMissing, run_attached
    from spanreplay.store.errors import StoreError
    from spanreplay.store.folder import check_writable

    output = sys.stderr if as_json else None
    inside = os.environ.get(env.SPANREPLAY_BOOTSTRAP)
    try:
        if inside:
            context.exit(_inside(inside, argv, as_json=as_json))
        path = store_path(store).absolute()
        check_writable(path)
        command_id, run_id = os.urandom(16).hex(), os.urandom(16).hex()
        chosen = {env.SPANREPLAY_RUN_PER: run_per} | ({env.SPANREPLAY_SEED_SECRETS: "1"} if seed_secrets else {})
        environment = child_environment(command_id, run_id, path, "record", chosen)
        taken = begin_command(environment, Path.cwd(), state)
        for lacking, why in left_out(taken) if taken is not None else ():
            complain(f"not kept of the state: {lacking}: {why}")
        code = run_attached(argv, environment, output=output)
    except (CommandMissing, StoreError) as error:
        raise WrongUse(str(error)) from error
    written = finish_command(environment, code)
    try:
        with ready_store(path, create=True) as opened:
            kept = summary(opened, command_id)
    except StoreError as error:  # the command has its exit code all the same
        complain(f"spanreplay: nothing of this can be shown: {error}")
        if as_json:
            print_json({"schema": 1, "command_id": command_id, "exit_code": code, "runs": [], "steps": 0, "error": str(error)})
        context.exit(code)
    if as_json:
        print_json({"schema": 1, "command_id": command_id, "exit_code": code, **kept.to_json()})
    else:
        for line in kept.lines():
            say(line)
    if not kept.processes:
        complain(nobody_reported(argv) if written else f"{path} could not be written: nothing of this is kept")
    detail(f"kept in {path}, by {many(kept.processes, 'Python process', 'Python processes')}; exit code {code}")
    for run in kept.runs:
        detail(f"run {run.run_id}{f' ({run.agent_name})' if run.agent_name else ''}: {many(len(run.steps), 'step')}, {run.outcome}")
    context.exit(code)


def _inside(mode: str, argv: list[str], *, as_json: bool) -> int:
    """A ``record`` inside a recorded or replayed command: that one goes on, so the command just runs."""
    from spanreplay.replay.reexecution.command import run_attached

    say(f"this runs inside a command that is being {mode}ed already; its steps are part of that")
    code = run_attached(argv, dict(os.environ), output=sys.stderr if as_json else None)
    if as_json:
        print_json(
            {
                "schema": 1,
                "command_id": None,
                "exit_code": code,
                "runs": [],
                "steps": 0,
                "processes": 0,
                "inexact": [],
                "untaped": [],
                "dropped": 0,
            }
        )
    return code
