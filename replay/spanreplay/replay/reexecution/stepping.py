"""A part of a run: stop at a step and look, stop after one, compare from one on.

``until`` N: once steps 1 to N have been answered, the agent is stopped at its next call, with success: what comes later need not come.
``since`` N: calls before step N are answered by the steps at their places, whatever they ask for; only from N on what differs counts.
``break_at`` N: before step N is answered, a debugger opens in the agent's frame that makes the call.
Numbers are those of the one run that is asked for; other runs of its command are answered as ever, and judged as far as they came.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NoReturn, Protocol, Self

from spanreplay.boundary.call import Answer
from spanreplay.boundary.errors import ControlSignal
from spanreplay.boundary.step import Step as LiveStep
from spanreplay.replay.model import Run, Step
from spanreplay.replay.reexecution.errors import ReplayDivergence
from spanreplay.replay.reexecution.ledger import Difference, Ledger, Totals, unreached


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepping:
    """See the module's text."""

    since: int = 1
    until: int | None = None
    break_at: int | None = None

    def __bool__(self) -> bool:
        """Whether it is less than the whole run without a stop."""
        return self != WHOLE

    def to_json(self) -> dict[str, Any]:
        """As in the plan of a replayed command."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Read :meth:`to_json` back."""
        return cls(**found)


WHOLE: Final = Stepping()


class Enough(ControlSignal):
    """The agent has come as far as it was to come."""


class Inner(Protocol):
    """What answers; a :class:`spanreplay.boundary.session.CallInterceptor` that can let go of who waits."""

    def intercept(self, step: LiveStep) -> Answer | None: ...  # noqa: D102
    def ended(self, step: LiveStep) -> None: ...  # noqa: D102
    def release(self) -> None: ...  # noqa: D102


class Stepper:
    """A :class:`spanreplay.boundary.session.CallInterceptor` around the one that answers.

    Args:
        inner: answers.
        stepping: where to stop.
        runs: all that answer.
        focus: ids of those that were asked for.
        ledger: of this process.
        on_enough: called once, when the agent is stopped.
        debug: opens a debugger at a step, told what there is to say of it, and what ends the agent where the user leaves it.
    """

    def __init__(
        self,
        inner: Inner,
        stepping: Stepping,
        runs: Sequence[Run],
        *,
        focus: Collection[str],
        ledger: Ledger,
        on_enough: Callable[[], None],
        debug: Callable[[str, Callable[[], NoReturn]], None],
    ) -> None:
        self._inner = inner
        self._stepping = stepping
        self._runs = [run for run in runs if run.run_id in focus] or list(runs)
        self._ledger = ledger
        self._on_enough = on_enough
        self._debug = debug
        self._stopped: str | None = None
        self._looking = False
        """The debugger has not let go of the step to stop at."""
        broken = {(s.trace_id, s.span_id) for run in self._runs for s in run.steps if s.seq == stepping.break_at}
        self._broken = broken
        """The steps to stop at that were not reached yet."""

    def intercept(self, step: LiveStep) -> Answer | None:
        """Answer a call.

        Raises:
            Enough: the agent is not to go on.
            ReplayDivergence: the record cannot answer it.
        """
        if self._stopped is not None:
            raise Enough(self._stopped)
        until = self._stepping.until
        if until is not None and not step.starts_run and self._is_over(until):
            self._stop(until, f"step {until} is answered, as asked")
        try:
            answer = self._inner.intercept(step)
        except ReplayDivergence as stop:
            self._look_at(stop)
            raise
        found = step.recorded
        if isinstance(found, Step) and (found.trace_id, found.span_id) in self._broken:
            self._broken.discard((found.trace_id, found.span_id))
            self._break(f"before step {found.seq}, {found.kind} {found.name}, is answered")
        return answer

    def ended(self, step: LiveStep) -> None:
        """A step has ended; how it did counts only as long as the agent goes on."""
        if self._stopped is None:
            self._inner.ended(step)

    def release(self) -> None:
        """Nobody waits any more."""
        self._inner.release()

    def _is_over(self, until: int) -> bool:
        totals = self._ledger.totals
        for run in self._runs:
            used = totals.used.get(run.run_id)
            if not used:
                continue
            here = {s.process for s in run.steps if s.seq in used}
            before = replace(run, steps=tuple(s for s in run.steps if s.seq <= until and s.process in here))
            if before.steps and not unreached(before, totals):
                return True
        return False

    def _look_at(self, stop: ReplayDivergence) -> None:
        number = self._stepping.break_at
        if self._broken and number is not None and stop.difference.step == number:
            self._broken.clear()
            self._break(f"at step {number}, which differs: {stop.difference.summary()}")

    def _break(self, what: str) -> None:
        self._looking = True
        self._debug(what, self._leave)
        self._looking = False

    def _leave(self) -> NoReturn:
        """The user has left the agent, at the step to stop at or some lines later: what comes from there on need not come."""
        after, totals = (self._stepping.break_at or 1) - 1, self._ledger.totals
        for run in () if self._looking else self._runs:
            came = totals.used.get(run.run_id, set()) | totals.covered.get(run.run_id, set())
            while after + 1 in came:
                after += 1
        self._stop(after, "left at the debugger")

    def _stop(self, after: int, why: str) -> NoReturn:
        self._stopped = why
        self._ledger.enter("enough", step=after)
        self._inner.release()
        self._on_enough()
        raise Enough(why)


def window(runs: Sequence[Run], totals: Totals, stepping: Stepping, focus: Collection[str]) -> list[Run]:
    """The runs as far as they are judged; what lies outside is taken out of ``totals`` too."""
    until = min([n for n in (stepping.until, totals.enough) if n is not None], default=None)
    if stepping.since == 1 and until is None:
        return list(runs)
    judged = []
    for run in runs:
        if focus and run.run_id not in focus:
            came = totals.used.get(run.run_id, set()) | totals.covered.get(run.run_id, set())
            if totals.enough is None:
                judged.append(run)
            elif came or run.run_id in totals.runs_matched:  # as far as it came until the agent was stopped
                judged.append(replace(run, steps=tuple(s for s in run.steps if s.seq in came)))
            continue
        steps = tuple(s for s in run.steps if s.seq >= stepping.since and (until is None or s.seq <= until))
        inside = {s.seq for s in steps}
        for seen in (totals.used, totals.covered):
            if run.run_id in seen:
                seen[run.run_id] &= inside
        outside = {s.seq for s in run.steps} - inside
        begun = stepping.since > 1  # what the run itself was asked comes before its first step
        kept = [
            d
            for d in totals.differences
            if d.run_id != run.run_id or (d.step not in outside and not (begun and d.step is None and d.kind == "input"))
        ]
        totals.differences = list(_told_inside(kept))
        judged.append(replace(run, steps=steps))
    return judged


def _told_inside(differences: Sequence[Difference]) -> Iterator[Difference]:
    """What was told at a step that is not judged is told at the first that is."""
    first: dict[tuple[str | None, ...], int | None] = {}
    for difference in differences:
        known = first.setdefault((difference.run_id, difference.field, difference.recorded, difference.actual), difference.step)
        again = difference.same_as is not None and known != difference.step
        yield replace(difference, same_as=known if again else None)
