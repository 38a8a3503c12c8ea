"""What was live in a re-execution, where it left the record, and what it was kept as, as lines for people."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from spanreplay.replay.lines import DIM, LOUD, Line, Piece
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.verdict import Verdict
from spanreplay.replay.showing import safe, short_id

_NAMED: Final = 6


def live_lines(verdict: Verdict) -> list[Line]:
    """Where it left the record, what was live, and what was changed or failed on purpose."""
    lines: list[Line] = []
    for left in verdict.left:
        place = "" if left["step"] is None else f" at step {left['step']}"
        lines.append([Piece(safe(f"left the record{place}, {left['name']}: live from there"), LOUD)])
    ran = Counter(call["name"] for call in verdict.live if not call["injected"])
    if ran:
        told = [name if number == 1 else f"{name} (x{number})" for name, number in ran.items()]
        more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
        lines.append([Piece(safe(f"live: {', '.join(told[:_NAMED])}{more}"))])
    changed = Counter(", ".join(call["changed"]) for call in verdict.live if call["changed"])
    lines += [[Piece(safe(f"changed: {what}, in {number} call{'' if number == 1 else 's'}"))] for what, number in changed.items()]
    for call in verdict.live:
        if call["injected"]:
            place = "" if call["step"] is None else f" at step {call['step']}"
            lines.append([Piece(safe(f"injected{place}: {call['injected']}, into {call['name']}"))])
    return lines


def kept_lines(verdict: Verdict, runs: Sequence[Run]) -> list[Line]:
    """The new runs, and those they are forked from."""
    commands = {run.run_id for run in runs if run.is_command and not run.steps}
    named = {new: of for new, of in verdict.begun.items() if of is not None and of not in commands}
    lines: list[Line] = [
        [Piece(f"kept as run {short_id(new)}, forked from {short_id(of or '')}: spanreplay show {short_id(new)}")]
        for new, of in list(named.items())[:_NAMED]
    ]
    if len(named) > _NAMED:
        lines.append([Piece(f"and {len(named) - _NAMED} more runs: spanreplay runs", DIM)])
    return lines
