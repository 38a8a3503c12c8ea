"""How a command ended that something was live in: its own end counts too, as what was done then is the command's own doing."""

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spanreplay.cli.options import complain
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.ledger import EXIT_DIFFERENT

if TYPE_CHECKING:
    from spanreplay.replay.reexecution.command import CommandReplay
    from spanreplay.replay.reexecution.policy import Policy

_BY_SIGNAL: Final = 128


def failed(done: "CommandReplay", runs: Sequence[Run], policy: "Policy") -> bool:
    """Whether a command that is kept as a run of its own ended otherwise than with success; in a mix, otherwise than it was recorded."""
    if done.command_id is None or done.exit_code == 0:
        return False
    return policy.is_fork or done.exit_code != next((run.exit_code for run in runs if run.is_command), None)


def exit_code(done: "CommandReplay", runs: Sequence[Run], policy: "Policy") -> int:
    """That of the verdict; 1 where it is 0 and the command has :func:`failed`.

    Args:
        done: what re-executing it showed.
        runs: the recorded command's.
        policy: what was live.
    """
    return done.verdict.exit_code or (EXIT_DIFFERENT if failed(done, runs, policy) else 0)


def say_failed(done: "CommandReplay", store: Path) -> None:
    """Say how it ended, and which of its calls may have acted.

    Args:
        done: what re-executing it showed.
        store: where it is kept.
    """
    faults = any(call["injected"] for call in done.verdict.live)
    complain(f"{'the agent did not survive the fault: ' if faults else ''}the command itself {_how(done.exit_code)}")
    for line in _cut_short(store, done.command_id or ""):
        complain(line)


def _how(code: int) -> str:
    if code > _BY_SIGNAL:
        try:
            return f"exited with {code}: ended by {signal.Signals(code - _BY_SIGNAL).name}"
        except ValueError:
            pass
    return f"exited with {code}"


def _cut_short(store: Path, command_id: str) -> list[str]:
    """The calls that began and never ended, as ``record`` says them."""
    from spanreplay.cli.recorded import summary
    from spanreplay.cli.stored import ready_store
    from spanreplay.store.errors import StoreError

    try:
        with ready_store(store, create=False) as opened:
            kept = summary(opened, command_id)
    except StoreError as error:
        return [f"what it did cannot be shown: {error}"]
    return [
        f"  step {step.seq}, {step.kind} {step.name}: {'; '.join(r.detail for r in step.reasons)}"
        for run in kept.runs
        for step in run.steps
        if step.outcome == "unknown" and step.grade == "incomplete"
    ]
