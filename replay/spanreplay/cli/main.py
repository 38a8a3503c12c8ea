"""``spanreplay``: one program, its commands loaded when they are used.

Everything after the first ``--`` is the user's command and is cut off before anything is parsed.
"""

import atexit
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

COMMANDS: Final = {
    "demo": "Record a small agent, replay it, change it: no keys, no network.",
    "record": "Run a command and keep every step of its agents.",
    "proxy": "Record and replay agents of other languages, and MCP servers, from between.",
    "runs": "List the recorded runs.",
    "show": "Show a run, step by step.",
    "replay": "Rebuild a run, or re-execute a command from it.",
    "checkout": "Lay out the code that a run was recorded with.",
    "evaluate": "Judge recorded runs by a function of yours.",
    "fork": "Execute a command again: recorded before a step, live from it.",
    "resume": "Finish a run that crashed: what had ended from the record, the rest live.",
    "verify": "Say whether a run's record is whole, and what is missing or cut.",
    "import": "Read traces into the store.",
    "export": "Write a run to a file.",
    "send": "Send a run to an OTLP endpoint, to look at in Jaeger or Tempo.",
    "serve": "Receive OTLP over HTTP and gRPC into the store.",
    "prune": "Delete runs by age, number, size or session.",
    "archive": "Copy runs into Parquet files by day, here or in an object store.",
    "hold": "Keep a run or a session from being pruned.",
    "query": "Ask the store in SQL, read-only.",
    "doctor": "Check what would be recorded, and what a Collector, Jaeger or Tempo would cut.",
    "collector-config": "Print a configuration of the Collector, Jaeger or Tempo.",
}
"""Command name to its one-line help, so that ``--help`` imports no command. Each is a module of this package."""

TAKE_A_COMMAND: Final = frozenset({"record", "replay", "fork", "resume", "doctor", "proxy"})
"""The commands for which something may stand after ``--``."""

STDIN: Final = "stdin:"
"""Standard input, as ``-`` is; what ``-#RUN`` becomes."""

_CUT: Final = "command"


class LazyGroup(click.Group):
    """A group whose commands are imported when one is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order people meet them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"spanreplay.cli.{cmd_name.replace('-', '_')}_command")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="spanreplay", message="spanreplay %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Record agent runs, keep them, and replay them with every model and tool call answered from the record.

    \b
    spanreplay demo
    spanreplay record -- python agent.py
    spanreplay replay last -- python agent.py
    """  # noqa: D301 — \b is click's mark for "do not wrap"
    name = context.invoked_subcommand
    if name is not None and name not in TAKE_A_COMMAND and user_command(context) is not None:
        raise click.UsageError(f"{name} runs no command; nothing may stand after --. A file whose name begins with - is written ./-name")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program and exit: never shows a traceback to a user."""
    from spanreplay.cli.bisecting import OPTION as BISECT
    from spanreplay.cli.bisecting import bisected
    from spanreplay.cli.failing import exit_code_of

    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 — open as long as the program runs
    arguments = list(sys.argv[1:] if argv is None else argv)
    command: list[str] | None = None
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, command = arguments[:cut], arguments[cut + 1 :]

    # The parser would take it for an option.
    arguments = [f"{STDIN}{a[1:]}" if a.startswith("-#") else a for a in arguments]

    def work() -> int | None:
        # Not cli.main(): it has exit codes of its own for Ctrl-C and for a reader that has gone.
        with cli.make_context("spanreplay", arguments, obj={_CUT: command}) as context:
            cli.invoke(context)
        return 0

    # What is there at the end is about all that the program is made of: looking through it for cycles takes longer than many a command.
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
    code = exit_code_of(work, trace="-v" in arguments or "--verbose" in arguments)
    sys.exit(bisected(code) if BISECT in arguments else code)


def user_command(context: click.Context) -> list[str] | None:
    """The user's command, after ``--``; ``None`` where there was no ``--``."""
    found: list[str] | None = (context.find_root().obj or {}).get(_CUT)
    return found


if __name__ == "__main__":
    main()
