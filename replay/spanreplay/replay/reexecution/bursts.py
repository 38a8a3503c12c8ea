"""Calls that ended together: what an error has cancelled had not been cancelled yet when these ended.

A task that fails has its siblings cancelled, in a ``TaskGroup`` and by many who ``gather``, though not at once: those whose answers came in
the same turn of the event loop go on first, and those whose timers were due. A replay that gave one answer after the other would have them
cancelled. So such answers are given in one turn of the loop, in their order, when all of them have been asked for.

The record need not show who was cancelled: all may have come to their ends, or have been between two calls. So what ended right after the
error of another task, with nothing begun meanwhile, is given with it too. How many turns of its loop lie between two ends is recorded.
"""

from bisect import bisect, bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from spanreplay.boundary.loops import NEAR
from spanreplay.replay.model import Step
from spanreplay.replay.reexecution.forks import FORK, NOT_AWAITED, scope_of
from spanreplay.replay.reexecution.holding import is_read_on

_AT_ONCE_NS: Final = 50_000_000
"""What an answer has cancelled ends so soon after it, or so few turns of the loop: a busy machine may take the processor away meanwhile."""
_SEEN_TURNS: Final = 2
"""So many turns after an error has ended a call, who waits for several tasks goes on, and finds what has come by then."""
_SEEN_NS: Final = 5_000_000
"""The same where the record tells no turns: that of an error takes a millisecond to keep."""
_MOST: Final = 200
"""Calls that are looked at for those that ended with one: more seldom do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """Calls that ended together.

    Attributes:
        steps: in the order in which they ended; only the first, where that has not failed: who takes the first of several answers and has
            the others cancelled takes those as well that came with it.
        until: where in the order of the record the first call was cancelled, or, where none was, something else may have come.
    """

    steps: tuple[Step, ...]
    until: int

    def may_have_begun(self, step: Step) -> bool:
        """Whether a call that began after the first of them had ended was made by somebody else, and not because of any of them."""
        first = self.steps[0]
        if (step.seq_start or 0) < (first.seq_end or 0):
            return True
        return not any(_is_near(step, one) for one in self.steps)


def bursts(ended: Sequence[Step], all_steps: Iterable[Step]) -> Sequence[Burst]:
    """The calls of a process that ended together.

    Args:
        ended: its calls, in the order in which they ended.
        all_steps: of the run.
    """
    cancelled = [step for step in ended if step.outcome == "cancelled"]
    ends = [step.seq_end or 0 for step in cancelled]
    found: list[Burst] = []
    begins: list[Step] | None = None
    for number, first in enumerate(ended):
        at = bisect(ends, first.seq_end or 0)
        if not _may_cancel(first) or (found and (first.seq_end or 0) < found[-1].until):
            continue
        victim = cancelled[at] if at < len(ends) else None
        if victim is None or not _may_have_cancelled(first, victim):
            found += _right_after(ended, number)
            continue
        until = ends[at]
        if first.typed_error is None and ended[number + 1] is not victim:
            continue
        begins = sorted(all_steps, key=_start) if begins is None else begins
        meanwhile = islice(begins, bisect(begins, first.seq_end or 0, key=_start), bisect(begins, until, key=_start))
        if any(_is_near(step, first) for step in meanwhile):
            continue  # somebody has seen the answer, and went on
        burst = Burst(steps=(first,), until=until)
        upto = min(bisect_left(ended, until, key=_end), number + _MOST) if first.typed_error is not None else 0
        for step in ended[number + 1 : upto]:
            if burst.may_have_begun(step) and not is_read_on(step):
                burst = Burst(steps=(*burst.steps, step), until=until)
        found.append(burst)
    return found


def _right_after(ended: Sequence[Step], number: int) -> Sequence[Burst]:
    """An error, and what ended right after it in other tasks, with nothing begun in between; nothing where there is none."""
    first = last = ended[number]
    steps = [first]
    for step in islice(ended, number + 1, number + _MOST) if first.typed_error is not None else ():
        if (step.seq_end or 0) != (last.seq_end or 0) + 1 or not _are_seen_together(first, last, step):
            break
        if (step.seq_start or 0) > (first.seq_end or 0) or not _may_cancel(step) or any(_is_near(step, one) for one in steps):
            break
        steps.append(step)
        last = step
    return [Burst(steps=tuple(steps), until=(last.seq_end or 0) + 1)] if len(steps) > 1 else []


def _are_seen_together(first: Step, last: Step, step: Step) -> bool:
    if first.turn is None or step.turn is None:
        return _ns_between(last, step) <= _SEEN_NS
    return step.turn - first.turn <= _SEEN_TURNS


def _may_have_cancelled(step: Step, victim: Step) -> bool:
    if _ns_between(step, victim) <= _AT_ONCE_NS:
        return True
    return step.turn is not None and victim.turn is not None and victim.turn - step.turn < NEAR


def _ns_between(step: Step, later: Step) -> int:
    return (later.ended_ns or 0) - (step.ended_ns or 0)


def in_bursts(ended: Sequence[Step], found: Sequence[Burst]) -> Sequence[tuple[Step, ...]]:
    """The calls in the order in which they ended, with those together that ended together.

    Args:
        ended: all of them, in that order.
        found: those that ended together.
    """
    first: Mapping[int, Burst] = {burst.steps[0].seq: burst for burst in found}
    others = {step.seq for burst in found for step in burst.steps[1:]}
    return [first[s.seq].steps if s.seq in first else (s,) for s in ended if s.seq not in others]


def _start(step: Step) -> int:
    return step.seq_start or 0


def _end(step: Step) -> int:
    return step.seq_end or 0


def _may_cancel(step: Step) -> bool:
    """Whether a task made it that has ended with its answer, or its error, for all that the record tells."""
    return FORK in (step.path or "") and step.outcome not in NOT_AWAITED and not is_read_on(step)


def _is_near(step: Step, other: Step) -> bool:
    """Whether the same task made both, or one that had to do with the other."""
    here, there = f"{scope_of(step.path or '')}/", f"{scope_of(other.path or '')}/"
    return here.startswith(there) or there.startswith(here) or "/" in (here, there)
