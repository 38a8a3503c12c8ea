"""Whether a command replays the same way each time, as text for people."""

from spanreplay.replay.lines import BAD, DIM, GOOD, LOUD, Line, Piece, rendered
from spanreplay.replay.reexecution.determinism import Determinism, Finding
from spanreplay.replay.showing import safe

_ACTUAL = 3


def render_determinism(found: Determinism, *, colour: bool | None = None) -> str:
    """How many replays were equal, what differed by chance, with file and line, and what has changed."""
    number = len(found.verdicts)
    equal = sum(verdict.exit_code == 0 for verdict in found.verdicts)
    lines: list[Line] = [[Piece(f"{equal} of {number} shuffled replays equal", GOOD if equal == number else BAD)]]
    for finding in found.by_chance:
        lines += _lines(finding, f"differs in {finding.replays} of {number}, by chance")
    for finding in found.changed:
        lines += _lines(finding, "differs the same way in each: not by chance, it has changed since it was recorded")
    for text in dict.fromkeys(str(refusal.get("text")) for verdict in found.verdicts for refusal in verdict.refusals):
        lines.append([Piece(safe(f"refused: {text}"), BAD)])
    return rendered(lines, colour)


def _lines(finding: Finding, how: str) -> list[Line]:
    shown = finding.difference
    where = f"{shown.where}: " if shown.where else ""
    place = f"step {shown.step}, " if shown.step is not None else ""
    lines: list[Line] = [[], [Piece(safe(f"{where}{place}{shown.name}"), LOUD), Piece(f"  {how}")]]
    if shown.field is not None:
        lines.append([Piece(safe(f"  {shown.field}: recorded {shown.recorded}"), DIM)])
        lines += [[Piece(safe(f"    actual {actual}"), DIM)] for actual in [*finding.actual][:_ACTUAL]]
    elif shown.detail:
        lines.append([Piece(safe(f"  {shown.detail}"), DIM)])
    return lines
