"""Which recorded calls are nearest to one that is not in the record, and in what each differs."""

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from spanreplay.replay.model import Step
from spanreplay.replay.reexecution.diff import differences
from spanreplay.replay.reexecution.forms import parsed
from spanreplay.replay.reexecution.likening import named_keys
from spanreplay.replay.reexecution.matching import RecordedRun
from spanreplay.replay.reexecution.places import written

NAMED: Final = 3
"""Recorded calls that are named."""
_LOOKED_AT: Final = 200
_COUNTED: Final = 50
"""Values that differ, up to which they are counted."""
_CHARACTERS: Final = 2_000_000
"""Of recorded inputs that are looked at."""


def nearest(recorded: RecordedRun, candidates: Iterable[Step], asked: str | None) -> tuple[dict[str, Any], ...]:
    """The recorded calls whose input is nearest to that of a live one, the nearest first.

    Each is ``{"step", "name", "answered": whether it has answered a call, "differs": in how many values, "field", "recorded", "actual"}``;
    the last three tell of the first of these values.

    Args:
        recorded: the run.
        candidates: its calls of the same kind and name.
        asked: the comparable input of the live call.
    """
    live = parsed(asked)
    ranked: list[tuple[tuple[int, bool, int], dict[str, Any]]] = []
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
        ranked.append(((len(found), near["answered"], step.seq), near))
    return tuple(near for _, near in sorted(ranked, key=lambda item: item[0])[:NAMED])
