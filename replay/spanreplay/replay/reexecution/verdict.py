"""What a re-execution showed, from its ledger alone."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spanreplay.replay.model import Run, Step
from spanreplay.replay.rebuilding.origin import is_foreign, told_by_others
from spanreplay.replay.reexecution import ledger as ledgers
from spanreplay.replay.reexecution.blame import is_asked_for, is_of_model, of_live_calls
from spanreplay.replay.reexecution.intended import never_reached
from spanreplay.replay.reexecution.ledger import Difference, Totals, unreached
from spanreplay.replay.reexecution.missing_state import missing_state
from spanreplay.replay.reexecution.policy import NOTHING, Policy
from spanreplay.replay.reexecution.versions_now import Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of a re-execution."""

    differences: tuple[Difference, ...]
    """In the order of the record; calls that are in no record come last."""
    refusals: tuple[Mapping[str, Any], ...]
    """Attempts to act on the outside; each was refused."""
    notices: tuple[Mapping[str, Any], ...]
    """Known probes and imports that were refused without counting as an attempt."""
    recorded: int
    """Steps in the record."""
    matched: int
    matched_by_input: int
    covered: int
    """Steps inside a stubbed tool."""
    order_relaxed: int
    telemetry_dropped: int
    processes: int
    isolation: str
    unreached: tuple[tuple[str, int], ...] = ()
    """Run id and ``seq`` of every step of the runs replayed that no call asked for."""
    cut_short: tuple[tuple[str, int], ...] = ()
    """Run id, and the step at which it is cut, of every run whose record is not whole: what followed there cannot be judged."""
    accept_incomplete: bool = False
    """It is judged all the same, as far as the record goes."""
    matched_by_meaning: int = 0
    """Steps recorded by others: matched by what was asked and answered with what that means, not with the exact exchange."""
    matched_by_chance: int = 0
    """Of them those that another recorded step could have stood for, which asked the same at once and was answered otherwise."""
    not_compared: tuple[str, ...] = ()
    """What calls had that the record of others does not show."""
    inside: tuple[tuple[str, int], ...] = ()
    """Run id and ``seq`` of every step inside an answered tool: nothing asked for it, so nothing of it was compared."""
    passed: Mapping[str, int] = field(default_factory=dict)
    """Steps recorded by others that needed no answer, by kind: agents, and tools whose calls came by themselves."""

    told_by_others: int = 0
    """Steps of runs of our own that only another instrumentation told of: no call asks for them."""

    matched_by_renaming: int = 0
    """Steps whose call differed in ids and times only that a program makes itself."""
    matched_by_tolerance: int = 0
    """Steps whose call differed in what the user lets differ, and in nothing else."""
    matched_by_place: int = 0
    """Steps that answered though their call differed, where all differences were asked for."""
    ignored: tuple[Mapping[str, Any], ...] = ()
    """What was let differ: ``run_id``, ``step``, ``field``, ``recorded``, ``actual``."""
    versions: Comparison | None = None
    """The recorded versions against the present ones; ``None`` where the record has none."""

    alone: tuple[Mapping[str, Any], ...] = ()
    """What tools had changed in place and was not changed again: run, step, ``names``."""

    unmade: tuple[Mapping[str, Any], ...] = ()
    """Exceptions of another class than recorded: run, step, name, ``error``, the class, and ``why``."""

    missing_state: tuple[str, ...] = ()
    """Where something differs: state that the replay did not have, from which it may come."""

    live: tuple[Mapping[str, Any], ...] = ()
    """Calls that were live, changed or failed by intent; ``run`` and ``step``: in whose place, or ``None``."""
    left: tuple[Mapping[str, Any], ...] = ()
    """Where it left the record, in each process that did."""
    drift: tuple[Difference, ...] = ()
    """What live calls gave otherwise than the recorded ones."""
    never_reached: tuple[Mapping[str, Any], ...] = ()
    """What was to be live, changed or failed, and was not come to, see :mod:`spanreplay.replay.reexecution.intended`."""
    begun: Mapping[str, str] = field(default_factory=dict)
    """Id of each run that the re-execution was recorded as, to that of the run it was forked from."""

    @property
    def equal(self) -> bool:
        """Nothing differs and nothing was refused, as far as the record goes."""
        return not self.differences and not self.refusals and not self.drift

    @property
    def exit_code(self) -> int:
        """0 equal, 1 a difference, 4 an action on the outside was attempted, 125 cannot be judged.

        What a live model says is no difference; where it asks for what the record has no answer to, it cannot be judged.
        """
        if self.refusals:
            return ledgers.EXIT_REFUSED
        if self.processes == 0 or any(d.kind == "not_replayable" for d in self.differences):
            return ledgers.EXIT_CANNOT_JUDGE
        if any(not is_asked_for(d) for d in self.differences) or any(not is_of_model(d) for d in self.drift):
            return ledgers.EXIT_DIFFERENT
        if self.differences:
            return ledgers.EXIT_CANNOT_JUDGE
        return ledgers.EXIT_CANNOT_JUDGE if self.cut_short and not self.accept_incomplete else ledgers.EXIT_EQUAL

    def to_json(self) -> dict[str, Any]:
        """As under ``replay`` in ``spanreplay replay --json -- CMD``."""
        return {
            "equal": self.equal,
            "exit_code": self.exit_code,
            "differences": [d.to_json() for d in self.differences],
            "refusals": [dict(r) for r in self.refusals],
            "notices": [dict(n) for n in self.notices],
            "steps": {
                "recorded": self.recorded,
                "matched": self.matched,
                "matched_by_input": self.matched_by_input,
                "matched_by_meaning": self.matched_by_meaning,
                "matched_by_chance": self.matched_by_chance,
                "matched_by_renaming": self.matched_by_renaming,
                "matched_by_tolerance": self.matched_by_tolerance,
                "matched_by_place": self.matched_by_place,
                "covered": self.covered,
                "passed": dict(self.passed),
                "told_by_others": self.told_by_others,
                "order_relaxed": self.order_relaxed,
                "unreached": [{"run_id": run_id, "step": step} for run_id, step in self.unreached],
            },
            "ignored": [dict(value) for value in self.ignored],
            "versions": None if self.versions is None else self.versions.to_json(),
            "inside_answered": [{"run_id": run_id, "step": step} for run_id, step in self.inside],
            "cut_short": [{"run_id": run_id, "step": step} for run_id, step in self.cut_short],
            "accept_incomplete": self.accept_incomplete,
            "not_compared": list(self.not_compared),
            "telemetry_dropped": self.telemetry_dropped,
            "processes": self.processes,
            "isolation": self.isolation,
            "left_alone": [dict(facts) for facts in self.alone],
            "unmade": [dict(facts) for facts in self.unmade],
            "missing_state": list(self.missing_state),
            "live": [dict(call) for call in self.live],
            "left": [dict(place) for place in self.left],
            "drift": [d.to_json() for d in self.drift],
            "never_reached": [dict(unmet) for unmet in self.never_reached],
            "runs": [{"run_id": run_id, "forked_from": of} for run_id, of in self.begun.items()],
        }


def _last_inside(run: Run) -> dict[int, int]:
    """``seq`` of each step to that of the last step inside it, or its own."""
    last: dict[int, int] = {}
    for step in reversed(run.steps):  # parents come before what is inside them
        last.setdefault(step.seq, step.seq)
        if step.parent_seq is not None:
            last[step.parent_seq] = max(last.get(step.parent_seq, step.parent_seq), last[step.seq])
    return last


def verdict(
    totals: Totals, runs: Sequence[Run], *, accept_incomplete: bool = False, command: Run | None = None, policy: Policy = NOTHING
) -> Verdict:
    """Sum up a ledger.

    Args:
        totals: what the replay did.
        runs: the runs it is judged against.
        accept_incomplete: judge records that are known to lack something too, as far as they go.
        command: the run that knows the versions of the recorded command, which need not be judged itself.
        policy: what was to be live.
    """
    isolation = totals.isolation[0] if totals.isolation else "none"
    differences, drift = _explained(totals, runs, command) if totals.differences or totals.drift else ((), ())
    of_command = [run for run in (*runs, command) if run is not None and (run.untaped or run.state is not None)] if differences else []
    foreign = [run for run in runs if is_foreign(run)]
    return Verdict(
        differences=differences,
        refusals=tuple(totals.refusals),
        notices=tuple(totals.notices),
        recorded=sum(len(r.steps) for r in runs),
        matched=sum(map(len, totals.used.values())),
        matched_by_input=totals.by_input,
        covered=sum(len(_inside(totals, run_id)) for run_id in totals.covered),
        order_relaxed=totals.order_relaxed,
        telemetry_dropped=totals.telemetry_dropped,
        processes=totals.processes,
        isolation=isolation,
        alone=tuple(totals.alone),
        unmade=tuple(totals.unmade),
        missing_state=missing_state(of_command, isolation) if differences else (),
        unreached=tuple((r.run_id, s.seq) for r in runs for s in unreached(r, totals)),
        cut_short=tuple(ledgers.cut_short(runs)),
        accept_incomplete=accept_incomplete,
        matched_by_meaning=totals.by_meaning,
        matched_by_chance=totals.by_chance,
        matched_by_renaming=totals.by_renaming,
        matched_by_tolerance=totals.by_tolerance,
        matched_by_place=totals.by_place,
        ignored=tuple(totals.ignored),
        versions=totals.versions,
        not_compared=tuple(sorted(totals.not_compared)),
        inside=tuple((r.run_id, seq) for r in runs for seq in sorted(_inside(totals, r.run_id))),
        live=tuple(totals.live),
        left=tuple(totals.left),
        drift=drift,
        never_reached=never_reached(policy, totals),
        begun=dict(totals.begun),
        passed=Counter(step.kind for run in foreign for step in _passed(run, totals)) if foreign else {},
        told_by_others=sum(len(told_by_others(run) - totals.covered.get(run.run_id, set())) for run in runs),
    )


def _inside(totals: Totals, run_id: str) -> set[int]:
    """The steps inside answered ones. One that answered a call itself, in another process or before, is none."""
    return totals.covered.get(run_id, set()) - totals.used.get(run_id, set())


def _explained(totals: Totals, runs: Sequence[Run], command: Run | None) -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
    """The differences with their causes, and the drift, in the order of the record."""
    from spanreplay.replay.reexecution.causes import Causes

    last = {r.run_id: _last_inside(r) for r in runs}

    def place(difference: Difference) -> tuple[bool, float]:
        step = difference.step
        if step is None:
            return True, 0
        at_end = difference.kind in ("output", "outcome")  # behind what happened inside the step
        return False, last.get(difference.run_id or "", {}).get(step, step) + 0.5 if at_end else step

    differences, drift = of_live_calls(totals.differences, sorted(totals.drift, key=place), totals.live)
    causes = Causes(runs, totals.versions, command, totals.taken, totals.unmade, totals.differences)
    return tuple(causes.explain(d) for d in _told_once(sorted(differences, key=place))), tuple(drift)


def _told_once(differences: Sequence[Difference]) -> list[Difference]:
    """What a step gave otherwise, as an earlier one of that name did already, such as a skill that is read twice, names that one."""
    known: dict[tuple[str | None, ...], int] = {}
    made = []
    for difference in differences:
        step = difference.step
        if difference.kind == "output" and step is not None and difference.same_as is None:
            first = known.setdefault((difference.run_id, difference.name, difference.field, difference.recorded, difference.actual), step)
            difference = difference if first == step else replace(difference, same_as=first)  # noqa: PLW2901
        made.append(difference)
    return made


def _passed(run: Run, totals: Totals) -> Iterator[Step]:
    """The steps that answered nothing, were not inside one that did, and are not missed either."""
    spoken = totals.used.get(run.run_id, set()) | totals.covered.get(run.run_id, set()) | {step.seq for step in unreached(run, totals)}
    return (step for step in run.steps if step.seq not in spoken)
