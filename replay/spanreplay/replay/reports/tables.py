"""Lists of runs, and rows of any kind, as text for people. Apart from what shows a run, which takes a while to be imported."""

from collections.abc import Sequence

from spanreplay.replay.lines import LOUD, Line, Piece, rendered
from spanreplay.replay.model import GRADE_WORDS
from spanreplay.replay.showing import NO_STEPS, duration, json_text, moment, safe, short_id, size, width
from spanreplay.store.rows import RunRow


def render_runs(rows: Sequence[RunRow], *, colour: bool | None = None) -> str:
    """The runs of a store, a line each."""
    if not rows:
        return "no runs"
    columns = ("run", "started", "agent", "model", "steps", "outcome", "grade", "took", "tokens")
    cells = [
        (
            short_id(row.run_id),
            moment(row.started_ns)[:19],
            row.agent or "",
            row.model or "",
            row.n_steps,
            row.outcome,
            NO_STEPS
            if not row.n_steps and row.grade == "exact"
            else next((w for g, w in GRADE_WORDS.items() if g == row.grade), row.grade),
            duration(row.started_ns, row.ended_ns),
            in_and_out(row.input_tokens, row.output_tokens),
        )
        for row in rows
    ]
    return render_table(columns, cells, colour=colour)


def render_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, colour: bool | None = None) -> str:
    """Rows under their column names; numbers to the right, long values shortened."""
    cells = [[_cell(value) for value in row] for row in rows]
    names = [safe(name) for name in columns]
    widths = [max([width(name), *(width(row[place]) for row in cells)]) for place, name in enumerate(names)]
    right = [
        any(_is_number(row[place]) for row in rows) and all(row[place] is None or _is_number(row[place]) for row in rows)
        for place in range(len(names))
    ]

    def line(row: Sequence[str], style: str) -> Line:
        padded = [
            " " * (wide - width(text)) + text if at_right else text + " " * (wide - width(text))
            for text, wide, at_right in zip(row, widths, right, strict=True)
        ]
        return [Piece("  ".join(padded).rstrip(), style)]

    return rendered([line(names, LOUD), *(line(row, "") for row in cells)], colour)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json_text(value)
    return safe(text) if len(text) <= 80 else short_text(text)


def short_text(text: str, limit: int = 80) -> str:
    """The beginning of a text, and its size."""
    return f"{safe(text[:limit])}… ({size(len(text.encode('utf-8', 'surrogatepass')))})"


def in_and_out(asked: int | None, said: int | None) -> str:
    """Tokens that went in and came out."""
    return "" if asked is None and said is None else " / ".join("–" if count is None else str(count) for count in (asked, said))
