"""What went into a run, what came out and how it ended, where its root does not say so."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from spanreplay.boundary.call import OutcomeName
from spanreplay.replay.model import Json, Reason
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.messages import asked_for
from spanreplay.replay.reading.outcomes import failure, outcome
from spanreplay.replay.reasons import FROM_MODEL
from spanreplay.replay.rebuilding.order import NEVER
from spanreplay.replay.rebuilding.placed import Placed
from spanreplay.spans.record import SpanRecord

_TALKING: Final = frozenset({"agent", "model_call"})


@dataclass(frozen=True, slots=True)
class Ends:
    """The step whose input is the run's, and the step whose output is; ``None`` where that is not certain."""

    first: Placed | None
    last: Placed | None


def from_model_calls(first: Placed | None, last: Placed | None) -> list[Reason]:
    """What to say of a run that has its input from one step and its output from another, where these are model calls."""
    steps = (("input", first), ("output", last))
    told = [f"its {side} is that of step {step.seq}" for side, step in steps if step is not None and step.draft.kind == "model_call"]
    return [Reason(code=FROM_MODEL, detail=f"no span of an agent has it: {' and '.join(told)}")] if told else []


def ends(steps: Iterable[Placed]) -> Ends:
    """What came first in a run and what came last, where that was an agent or a model call.

    It is not certain where something else came first or last, where another agent or model call ran beside it, or where the last answer
    asks for a call or is an error.

    Args:
        steps: of the run, in order.
    """
    inside: dict[int | None, list[Placed]] = {}
    for step in steps:
        inside.setdefault(step.parent_seq, []).append(step)
    first = _outermost(inside, _first, lambda step: step.draft.input)
    last = _outermost(inside, _last, lambda step: step.draft.output)
    if last is not None and (last.draft.outcome != "ok" or any(True for _ in asked_for(last.draft.output))):
        last = None
    return Ends(first, last)


def _outermost(
    inside: Mapping[int | None, Sequence[Placed]], pick: Callable[[Sequence[Placed]], Placed | None], has: Callable[[Placed], Json]
) -> Placed | None:
    scope: int | None = None
    while (beside := inside.get(scope)) is not None:
        step = pick(beside)
        if step is None or step.draft.kind not in _TALKING:
            return None
        if has(step) is not None:
            return step
        if step.draft.kind != "agent":
            return None
        scope = step.seq
    return None


def _first(steps: Sequence[Placed]) -> Placed | None:
    first = steps[0]
    end = NEVER if first.ended_ns is None else first.ended_ns
    meanwhile = (other for other in islice(steps, 1, None) if other.draft.kind in _TALKING and other.started_ns < end)
    return first if next(meanwhile, None) is None else None


def _last(steps: Sequence[Placed]) -> Placed | None:
    last = max(steps, key=lambda step: (NEVER if step.ended_ns is None else step.ended_ns, step.seq))
    meanwhile = (
        other
        for other in steps
        if other is not last and other.draft.kind in _TALKING and (NEVER if other.ended_ns is None else other.ended_ns) > last.started_ns
    )
    return last if next(meanwhile, None) is None else None


def outcome_without_root(spans: Sequence[SpanRecord], steps: Sequence[Placed]) -> tuple[OutcomeName, Json]:
    """How a run ended that no agent span is around, and its error.

    One span around all of it says so. Of several, none does: it ended well if all of them ended and what came last did; whether a failure
    among them was the run's is not known.

    Args:
        spans: the outermost spans of the run.
        steps: of the run, in order.
    """
    if any(span.end_ns is None for span in spans):
        return "unknown", None
    if len(spans) == 1:
        (span,) = spans
        error = failure(span, Fields(span.attributes))
        return ("ok", None) if error is None else (outcome(span, error), error)
    outermost = [step for step in steps if step.parent_seq is None]
    last = max(outermost, key=lambda step: (step.ended_ns or 0, step.seq), default=None)
    return "ok" if last is not None and last.draft.outcome == "ok" else "unknown", None
