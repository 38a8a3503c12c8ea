"""What many re-executions showed, as text for people."""

from collections.abc import Collection
from typing import Final

from spanreplay.replay.lines import BAD, DIM, GOOD, LOUD, Line, Piece, rendered
from spanreplay.replay.reexecution.fleet import Result
from spanreplay.replay.reexecution.summary import causes, counts
from spanreplay.replay.showing import safe

_WIDTH: Final = len("cannot judge")
_LONGEST: Final = 300


def render_result(result: Result, *, colour: bool | None = None) -> str:
    """One line."""
    style = GOOD if result.exit_code == 0 else BAD
    message = result.message()
    cut = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"
    line: Line = [Piece(f"{result.word:<{_WIDTH}}  ", style), Piece(safe(f"{result.label}  ")), Piece(safe(cut), DIM)]
    return rendered([line], colour)


def render_summary(results: Collection[Result], *, colour: bool | None = None) -> str:
    """How many came out how, then every cause with an example."""
    found = counts(results)
    told = [f"{number} {word}" for word, number in found.items() if number and word != "equal"]
    lines: list[Line] = [[Piece(", ".join([f"{found['equal']} of {len(results)} equal", *told]), GOOD if not told else BAD)]]
    for cause in causes(results):
        lines += [[], [Piece(f"{cause.runs} {cause.result}: "), Piece(safe(cause.what), LOUD)]]
        lines.append([Piece(safe(f"  {cause.example.label}  {cause.example.message()[:_LONGEST]}"), DIM)])
    return rendered(lines, colour)
