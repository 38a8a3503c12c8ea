"""``spanreplay replay --check-determinism K``: the same command replayed again and again, what it must not depend on decided by chance."""

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spanreplay.cli.joining import asked_join
from spanreplay.cli.options import WrongUse, complain, print_json, print_text
from spanreplay.cli.progress import working

if TYPE_CHECKING:
    from spanreplay.cli.target import Loaded
    from spanreplay.replay.reexecution.options import Options
    from spanreplay.replay.reexecution.verdict import Verdict


def check_determinism(
    loaded: "Loaded", argv: Sequence[str], options: "Options", number: int, *, as_json: bool, cwd: Path | None = None
) -> int:
    """Replay ``argv`` so many times; gives the exit code.

    Args:
        loaded: the runs that answer.
        argv: the command. What it prints is not shown.
        options: how.
        number: of replays.
        as_json: one JSON document instead of text.
        cwd: where to run it.

    Raises:
        WrongUse: there is no such program.
    """
    from spanreplay.replay.reexecution.command import CommandMissing, replay_command
    from spanreplay.replay.reexecution.determinism import compared, seeds
    from spanreplay.replay.reports.determinism import render_determinism

    every = replace(options, comparing=replace(options.comparing, all_differences=True))
    focus = [r.run_id for r in loaded.runs if not r.is_command] if loaded.asked else []
    verdicts: list[Verdict] = []
    with working("replaying", total=number) as advance:
        for seed in seeds(number):
            with tempfile.TemporaryFile() as said:
                try:
                    done = replay_command(
                        loaded.siblings,
                        loaded.records,
                        argv,
                        focus=focus,
                        options=replace(every, shuffled=seed),
                        join=asked_join(),
                        cwd=cwd,
                        output=said,
                        errors=said,
                        stdin=subprocess.DEVNULL,
                    )
                except CommandMissing as error:
                    raise WrongUse(str(error)) from error
            verdicts.append(done.verdict)
            advance(1)
    found = compared(verdicts)
    if as_json:
        print_json(found.to_json())
    else:
        print_text(render_determinism(found))
    if not any(verdict.processes for verdict in verdicts):
        from spanreplay.cli.interpreters import nobody_reported

        complain(nobody_reported(argv))
    return found.exit_code
