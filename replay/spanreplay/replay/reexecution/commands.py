"""Which commands a replay does not answer: those that the record lacks, and Python programs of the agent's with calls of their own.

A command that is not in the record is an action on the outside, and refused as one. A program whose own calls are in the record is run.
Such a program is replayed as the program around it is: started under the same guard, every call in it answered. That needs the start-up
shim, so it holds for a replayed command only, and outside of an agent's run; inside one, the command is answered as a whole.
"""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Final

from spanreplay.boundary.step import Step as LiveStep
from spanreplay.content import codec
from spanreplay.content.canonical import canonical_json
from spanreplay.content.codec import CodecError
from spanreplay.exporter import environment_variables as env
from spanreplay.replay.isolation.callers import thread_name, user_line
from spanreplay.replay.isolation.refusal import OutsideActionRefused, Refusal
from spanreplay.replay.model import Run, Step
from spanreplay.replay.reexecution.forms import parsed
from spanreplay.replay.reexecution.ledger import Ledger
from spanreplay.replay.reexecution.matching import RecordedRun
from spanreplay.semconv import attributes as names

_LONGEST: Final = 200
_WITHOUT_SHIM: Final = frozenset("IESs")
"""Letters of Python's options with which the start-up shim would not load."""


def takes_part(step: LiveStep, recorded: RecordedRun, found: Step, begun: Sequence[Run]) -> bool:
    """Whether a command is to be run, and answers its own calls.

    Args:
        step: its start.
        recorded: the run it was recorded in.
        found: the recorded command.
        begun: runs that its processes began.
    """
    if os.environ.get(env.SPANREPLAY_BOOTSTRAP) != "replay" or (step.run is not None and not step.run.fallback):
        return False
    words = step.call.attributes.get(names.PROCESS_COMMAND_ARGS)
    if not isinstance(words, list) or not is_python(words):
        return False
    return bool(begun) or recorded.has_inside(found)


def refuse(step: LiveStep, ledger: Ledger) -> BaseException:
    """What to raise for a command that is not in the record, which is entered as the guard enters the start of any other process."""
    words = step.call.attributes.get(names.PROCESS_COMMAND_ARGS)
    target = shlex.join(words) if isinstance(words, list) else step.call.name
    refusal = Refusal(
        event="subprocess.Popen",
        action="process",
        target=target if len(target) <= _LONGEST else target[: _LONGEST - 1] + "…",
        fatal=True,
        where=user_line(sys._getframe(1)) or "unknown",
        thread=thread_name(),
    )
    ledger.enter("refused", **{key: str(value) for key, value in asdict(refusal).items()}, text=refusal.describe())
    return OutsideActionRefused(refusal)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was written to a command while it ran, where that differs."""

    recorded: str
    actual: str

    def whole(self, asked: str | None) -> tuple[str, str]:
        """Recorded and actual input of the command, of which ``asked`` was known at its start."""
        known = parsed(asked)
        start: dict[str, object] = known if isinstance(known, dict) else {}
        return canonical_json({**start, "stdin": self.recorded}), canonical_json({**start, "stdin": self.actual})


def inputs_of(found: Step, given: str) -> Inputs | None:
    """How what the agent has written to a command differs from the record; ``None`` where it does not, or is not known.

    Where either may not be all, one must be the beginning of the other.

    Args:
        found: the recorded command.
        given: typed JSON of ``stdin`` and ``stdin_open``, as in the result of a command.
    """
    wanted, actual = _written(found.typed_result), _written(given)
    if wanted is None or actual is None:
        return None
    (was, was_open), (now, now_open) = wanted, actual
    shared = min(len(was), len(now)) if was_open or now_open else max(len(was), len(now))
    if was[:shared] == now[:shared]:
        return None
    return Inputs(was.decode(errors="backslashreplace"), now.decode(errors="backslashreplace"))


def _written(result: str | None) -> tuple[bytes, bool] | None:
    try:
        held = codec.decode(result or "null")
    except CodecError:
        return None
    written = held.get("stdin") if isinstance(held, Mapping) else None
    if isinstance(written, str):
        written = written.encode("utf-8", "surrogatepass")
    return (written, bool(held.get("stdin_open"))) if isinstance(written, bytes) and isinstance(held, Mapping) else None


def is_python(words: Sequence[str]) -> bool:
    """Whether a command line is this Python's, with the start-up shim in place."""
    program = PurePath(words[0]).name if words else ""
    if not program.startswith("python") and words[:1] != [sys.executable]:
        return False
    for word in words[1:]:
        if not word.startswith("-"):
            break
        if not word.startswith("--") and _WITHOUT_SHIM & set(word[1:].partition("c")[0].partition("m")[0]):
            return False
    return True
