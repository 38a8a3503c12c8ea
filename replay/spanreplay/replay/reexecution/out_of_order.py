"""Recorded calls that did not come when it was their turn: what each asked, what came in its place, and whether it came at all.

Where a difference stops the replay, nobody can tell whether the agent would have made the call later. Where the replay goes on, it is known
at its end: a call that has come by then was made later, any other was not made.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace

from spanreplay.boundary.step import Step as LiveStep
from spanreplay.replay.isolation.callers import user_line
from spanreplay.replay.model import Step
from spanreplay.replay.reexecution.diff import ABSENT, shown
from spanreplay.replay.reexecution.differing import packages
from spanreplay.replay.reexecution.evidence import fragments
from spanreplay.replay.reexecution.forms import comparable, parsed, telling
from spanreplay.replay.reexecution.ledger import Difference, Totals
from spanreplay.replay.reexecution.matched import Missed
from spanreplay.replay.reexecution.matching import RecordedRun


def of_order(
    step: LiveStep, expected: Step, missed: Missed, recorded: RecordedRun, asked: str | None, where: str | None, *, goes_on: bool
) -> Difference:
    """The difference at a recorded call in whose place another one came.

    Args:
        step: the call that has shown it.
        expected: the recorded step whose call was to come.
        missed: what is known of it.
        recorded: the run.
        asked: the comparable input of the call.
        where: ``file:line`` of the call, where it is another one than this.
        goes_on: the replay does not stop here, and will tell whether the call comes later.
    """
    other, wanted = missed.instead, recorded.input_of(expected)
    instead = f"{step.call.kind} {step.call.name}" if other is None else f"step {other.seq}, {other.kind} {other.name}"
    came = asked if other is None else recorded.input_of(other)
    is_late = other is not None and wanted == asked and wanted != came
    left, right = telling(expected.kind, parsed(wanted)), telling(step.call.kind if other is None else other.kind, parsed(came))
    return Difference(
        kind="order",
        run_id=recorded.run.run_id,
        step=expected.seq,
        name=f"{expected.kind} {expected.name}",
        recorded=None if wanted is None else shown(left, right),
        actual=None if came is None else shown(right, left),
        instead=instead,
        detail=_late(instead) if is_late else _not_yet(instead, known=other is not None, goes_on=goes_on),
        where=where or user_line(sys._getframe(1)),
        evidence={"removed": [], "added": fragments(ABSENT, parsed(asked))[1], "packages": packages(sys._getframe(1))},
    )


def asked_for(step: Step) -> str | None:
    """What a recorded step asked, as a short text."""
    value = step.input if step.typed_input is None else parsed(comparable(step.typed_input))
    return None if value is None else shown(telling(step.kind, value))


def enter_made_later(totals: Totals) -> None:
    """Say of every call that was missing at its turn, and has come by the end of the replay, that it was made later; each is told once."""
    first: dict[tuple[str | None, int | None], Difference] = {}
    for _, difference in _out_of_order(totals):
        first.setdefault((difference.run_id, difference.step), difference)
    again = {id(d) for _, d in _out_of_order(totals) if first[d.run_id, d.step] is not d}
    totals.differences[:] = [d for d in totals.differences if id(d) not in again]
    for number, difference in _out_of_order(totals):
        if difference.step in totals.used.get(difference.run_id or "", ()):
            totals.differences[number] = replace(difference, detail=_late(difference.instead or ""))


def enter_not_made(totals: Totals, run_id: str, seq: int) -> bool:
    """Say of a call that was missing at its turn that it was not made at all; gives whether that one was told of."""
    if any((d.kind, d.run_id, d.step) == ("unreached", run_id, seq) for d in totals.differences):
        return True
    for number, difference in _out_of_order(totals):
        if (difference.run_id, difference.step) == (run_id, seq):
            detail = f"not made: the agent has gone on with {difference.instead}"
            totals.differences[number] = replace(difference, kind="unreached", detail=detail)
            return True
    return False


def _out_of_order(totals: Totals) -> Iterator[tuple[int, Difference]]:
    return ((n, d) for n, d in enumerate(totals.differences) if d.kind == "order" and d.step is not None and d.instead is not None)


def _not_yet(instead: str, *, known: bool, goes_on: bool) -> str:
    if goes_on:
        return f"not made before {instead}"
    what = f"not made so far: {_call(instead)} has come in its place"
    if not known:
        what += ", and asks what no recorded call there has asked"
    return f"{what}; --all-differences goes on, and tells whether it comes later"


def _late(instead: str) -> str:
    return f"made later than recorded: the agent has made {_call(instead)} before it"


def _call(instead: str) -> str:
    return f"the call of {instead}," if instead.startswith("step ") else instead
