"""One thing that was judged, a re-execution or a check of a run, as machines that run tests want to hear of it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

Ended: TypeAlias = Literal["passed", "failed", "error"]
"""``error``: it could not be judged."""

EXIT_CODES: Final[Mapping[int, tuple[Ended, str]]] = {
    0: ("passed", "equal"),
    1: ("failed", "different"),
    4: ("failed", "refused"),
    125: ("error", "cannot judge"),
}
"""Exit code of a judgement to how it ended and the word for it."""

_WORST: Final = (4, 1, 125, 0)


def worst(codes: Collection[int]) -> int:
    """The exit code of several judgements.

    4 if an action on the outside was attempted in any, else 1 if any differs, else 125 if any could not be judged or there is none, else 0.
    """
    return next((code for code in _WORST if code in codes), 125)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """See the module's text. All texts may hold anything: whoever writes them makes them safe."""

    group: str
    """The agent, or the check."""
    name: str
    ended: Ended
    word: str
    """``equal``, ``different``, ``refused``, ``cannot judge``, ``failed`` …"""
    message: str = ""
    """One line: what is wrong."""
    text: str = ""
    """All that is to be said of it."""
    said: str = ""
    """What the command printed, its end."""
    seconds: float = 0.0
    where: str | None = None
    """``file:line`` of the agent's code concerned."""
    properties: Mapping[str, Any] = field(default_factory=dict)
