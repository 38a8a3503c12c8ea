"""Which differences come from what was live: a call that gave something else than the recorded one changes all that is made of it.

What a live model says differs nearly always. So what a run gives in the end is then told as drift, as the model's words are, and a call
that the model asked for and the record cannot answer is no difference of the agent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from spanreplay.replay.reexecution.ledger import Difference

LIVE: Final = "live"
"""``cause_kind`` of what comes from a live call."""
_MODEL: Final = "model_call "
_AGENT: Final = "agent "
_ASKED: Final = frozenset({"input", "never_recorded", "already_used", "order"})


def of_live_calls(
    differences: Sequence[Difference], drift: Sequence[Difference], live: Sequence[Mapping[str, Any]]
) -> tuple[list[Difference], list[Difference]]:
    """Differences and drift, with what comes from live calls said so, and what runs make of the words of live models among the drift.

    Args:
        differences: of a re-execution.
        drift: what its live calls gave otherwise than the recorded ones, in their order.
        live: its live calls, as they were entered.
    """
    first = next((d for d in drift if d.name.startswith(_MODEL)), next(iter(drift), None))
    if first is None:
        return list(differences), list(drift)
    by_model, cause = first.name.startswith(_MODEL), _cause(first, live)
    left, told = [], list(drift)
    for difference in differences:
        is_end = difference.name.startswith(_AGENT) and difference.kind in ("output", "outcome")
        if not is_end and not (difference.kind in _ASKED and not difference.name.startswith(_AGENT) and _is_behind(difference, first)):
            left.append(difference)
            continue
        blamed = replace(difference, cause=cause, cause_kind=LIVE)
        (told if by_model and is_end and difference.kind == "output" else left).append(blamed)
    return left, told


def is_of_model(difference: Difference) -> bool:
    """Whether it is only what a live model said, or what comes of that."""
    return difference.name.startswith(_MODEL) or difference.cause_kind == LIVE


def is_asked_for(difference: Difference) -> bool:
    """Whether a live call has led to a call that the record has no answer to."""
    return difference.cause_kind == LIVE and difference.kind in _ASKED


def _is_behind(difference: Difference, drift: Difference) -> bool:
    same_run = difference.run_id == drift.run_id
    return not same_run or difference.step is None or drift.step is None or difference.step > drift.step


def _cause(drift: Difference, live: Sequence[Mapping[str, Any]]) -> str:
    call = next((c for c in live if (c["run"], c["step"]) == (drift.run_id, drift.step)), None)
    sets = () if call is None else [f"--set {key}" for key in call["changed"]]
    changed = f", asked with {', '.join(sets)}" if sets else ""
    return f"{drift.name}, live for step {drift.step}{changed}, gave something else"
