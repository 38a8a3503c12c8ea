"""Steps beside each other that say the same, id and time included: one call told twice by one recorder, or two that nothing tells apart.

A callback that is registered twice, or a copy of a span under another id, looks like this; so do two equal requests at once to a server
that gives both one id. They stay two steps, and the run says so.
"""

from collections.abc import Hashable, Iterable, Iterator
from typing import Final

from spanreplay.replay.model import Reason
from spanreplay.replay.reasons import MAYBE_TWICE
from spanreplay.replay.rebuilding.order import NEVER
from spanreplay.replay.rebuilding.origin import OWN
from spanreplay.replay.rebuilding.placed import Placed

_COMPARED: Final = 8
"""Steps of one id that are compared with a further one."""
_NAMED: Final = 8
_US: Final = 1_000


def alike(steps: Iterable[Placed]) -> Iterator[Reason]:
    """One reason that names the pairs, or none.

    Args:
        steps: of a run, in order. Those that spanreplay recorded are several.
    """
    known: dict[Hashable, list[Placed]] = {}
    pairs: list[tuple[int, int]] = []
    for step in steps:
        evidence = _evidence(step)
        if evidence is None:
            continue
        others = known.setdefault((step.parent_seq, step.draft.kind, step.draft.name, evidence), [])
        twin = next((other for other in others[-_COMPARED:] if _meet(other, step) and _say_the_same(other, step)), None)
        if twin is not None:
            pairs.append((twin.seq, step.seq))
        others.append(step)
    if pairs:
        shown = ", ".join(f"{one} and {other}" for one, other in pairs[:_NAMED])
        more = f" and {len(pairs) - _NAMED} more pairs" if len(pairs) > _NAMED else ""
        detail = f"steps {shown}{more} say the same and ran at the same time: each pair may be one call that was recorded twice"
        yield Reason(code=MAYBE_TWICE, detail=detail)


def _evidence(step: Placed) -> Hashable:
    """The id of a call; without one its start and end, where they are exact enough that no two calls share both."""
    draft = step.draft
    if step.dialect == OWN or draft.kind not in ("model_call", "tool_call"):
        return None
    call_id = draft.response_id if draft.kind == "model_call" else draft.call_id
    if call_id is not None:
        return call_id
    ends = step.ended_ns
    return (step.started_ns, ends) if ends is not None and ends > step.started_ns and step.started_ns % _US and ends % _US else None


def _meet(one: Placed, other: Placed) -> bool:
    ends = (NEVER if step.ended_ns is None else step.ended_ns for step in (one, other))
    return one.started_ns == other.started_ns or max(one.started_ns, other.started_ns) < min(ends)


def _say_the_same(one: Placed, other: Placed) -> bool:
    ours, theirs = one.draft, other.draft
    return (ours.outcome, ours.input, ours.output) == (theirs.outcome, theirs.input, theirs.output)
