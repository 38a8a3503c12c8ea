"""Which recorded calls are nearest to one that is not in the record, and in what each differs."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final

from spanreplay.replay.model import Step
from spanreplay.replay.reexecution.diff import ValueDifference, differences, parts_at
from spanreplay.replay.reexecution.forms import parsed
from spanreplay.replay.reexecution.likening import named_keys
from spanreplay.replay.reexecution.matching import RecordedRun
from spanreplay.replay.reexecution.places import written

NAMED: Final = 3
"""Recorded calls that are named."""
_ALIKE: Final = 0.5
"""Share of two texts that may differ where one of them is near the other."""
_LOOKED_AT: Final = 200
_COUNTED: Final = 50
"""Values that differ, up to which they are counted."""
_CHARACTERS: Final = 2_000_000
"""Of recorded inputs that are looked at."""


def nearest(recorded: RecordedRun, candidates: Iterable[Step], asked: str | None) -> tuple[dict[str, Any], ...]:
    """The recorded calls whose input is nearest to that of a live one, the nearest first.

    Each is ``{"step", "name", "answered": whether it has answered a call, "differs": in how many values, "field", "recorded", "actual"}``;
    the last three tell of the first of these values. Where more than :data:`NAMED` are just as near, none of these is: they are left out.

    Args:
        recorded: the run.
        candidates: its calls of the same kind and name.
        asked: the comparable input of the live call.
    """
    live = parsed(asked)
    ranked: list[tuple[tuple[int, float], tuple[bool, int], dict[str, Any]]] = []
    room = _CHARACTERS
    for step in islice(candidates, _LOOKED_AT):
        text = recorded.input_of(step)
        room -= len(text or "")
        if room < 0 and ranked:
            break
        found = list(islice(differences(parsed(text), live), _COUNTED))
        near: dict[str, Any] = {"step": step.seq, "name": f"{step.kind} {step.name}", "answered": step.seq in recorded.used}
        near["differs"] = len(found)
        if found:
            left, right, _ = found[0].texts()
            near |= {"field": written(named_keys(step, found[0].keys)) or "input", "recorded": left, "actual": right}
        ranked.append(((len(found), _unlike(found)), (near["answered"], step.seq), near))
    ranked.sort(key=lambda item: item[:2])
    beyond = ranked[NAMED][0] if len(ranked) > NAMED else None
    return tuple(near for distance, _, near in ranked[:NAMED] if distance != beyond or near["differs"] == 0)


def _unlike(found: Sequence[ValueDifference]) -> float:
    """The share of the first value that differs, where that is a text, up to :data:`_ALIKE`. 1.0 of others, 0.0 where nothing differs."""
    if not found:
        return 0.0
    left, right = found[0].recorded, found[0].actual
    if not isinstance(left, str) or not isinstance(right, str):
        return 1.0
    longest = max(len(left), len(right))
    before = parts_at(left, right)
    behind = parts_at(left[before:][::-1], right[before:][::-1])
    share = 1 - (before + behind) / longest
    return share if share <= _ALIKE else 1.0
