"""Lines of text for people, with or without terminal colours."""

import os
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

GOOD: Final = "green"
BAD: Final = "red"
DIM: Final = "dim"
LOUD: Final = "bold"


class Piece(NamedTuple):
    """A part of a line and how it looks."""

    text: str
    style: str = ""


Line: TypeAlias = list[Piece]


def wants_colour() -> bool:
    """Whether stdout is a terminal whose user wants colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def rendered(lines: Sequence[Line], colour: bool | None) -> str:
    """The lines as one text; coloured if ``colour`` says so, or, where it is ``None``, on a terminal that wants colours."""
    if not (wants_colour() if colour is None else colour):
        return "\n".join("".join(piece.text for piece in line).rstrip() for line in lines)
    from rich.style import Style

    return "\n".join("".join(Style.parse(piece.style).render(piece.text) for piece in line) for line in lines)
