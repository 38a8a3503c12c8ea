"""Recorded exceptions that came back as another class, since theirs could not be had: named, with what helps.

A replay imports nothing that a record names. So a class that only a tool's body imports is not there, as the body does not run.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from spanreplay.content import codec
from spanreplay.content.codec import CodecError, RecordedError
from spanreplay.content.errors import written
from spanreplay.replay.model import Run, Step
from spanreplay.replay.reexecution.ledger import Difference, Ledger

_FOLLOW: Final = frozenset({"outcome", "output", "unreached", "never_recorded", "exit_code"})
"""Differences that an exception of another class makes: an ``except`` that it does not come to."""


def enter_unmade(ledger: Ledger, run: Run, step: Step, error: str | None) -> None:
    """Enter it, where the exception that a step raised when it was recorded cannot be made again.

    Args:
        ledger: of the replay.
        run: of the step.
        step: which answers a call.
        error: its typed text, if it raised.
    """
    if error is None or step.wire is not None:  # a client library makes an error of its own of an exchange
        return
    try:
        made = codec.decode_exception(error)
    except CodecError:
        return
    if isinstance(made, RecordedError):
        name = f"{step.kind} {step.name}"
        ledger.enter("unmade", run=run.run_id, step=step.seq, name=name, error=written(made.type_name), why=made.why)


def told(facts: Mapping[str, Any]) -> str:
    """What is said of one."""
    return f"step {facts['step']}, {facts['name']}, raised {facts['error']}, and no exception of that class could be made: {facts['why']}"


def cause(unmade: Sequence[Mapping[str, Any]], difference: Difference) -> str | None:
    """What to say of a difference that comes from one; ``None`` where it does not seem to."""
    if difference.kind not in _FOLLOW:
        return None
    at = difference.step
    before = [facts for facts in unmade if difference.run_id in (None, facts["run"]) and (at is None or facts["step"] <= at)]
    return told(before[-1]) if before else None
