"""The ledger of a replay: what was matched, what differs, what was refused. Result and exit code come from it alone.

Everything is entered before anything is raised: ``gather`` returns exceptions as values, task groups wrap them, SDKs retry and
frameworks swallow them. In a replayed command each process appends its ledger, line by line, to a file of its own, so that a
process that leaves by ``os._exit`` loses nothing.
"""

import json
import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

from spanreplay.replay.isolation.refusal import Refusal
from spanreplay.replay.model import Run, Step
from spanreplay.replay.rebuilding.origin import is_foreign, judged
from spanreplay.replay.reexecution.stopped import never_came, was_stopped
from spanreplay.replay.reexecution.versions_now import Comparison

DifferenceKind: TypeAlias = Literal[
    "input",
    "order",
    "never_recorded",
    "already_used",
    "unreached",
    "output",
    "outcome",
    "not_replayable",
    "exit_code",
    "beyond",
]

EXIT_EQUAL: Final = 0
EXIT_DIFFERENT: Final = 1
EXIT_UNREADABLE: Final = 3
EXIT_REFUSED: Final = 4
EXIT_CANNOT_JUDGE: Final = 125

CALL: Final = "call"
"""``event`` of a refusal of a live call, which no audit event told of."""


CHANGE: Final = "change"
"""``action`` of a refusal of what the user has chosen for a live call, as it does not fit it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place where the replay and the record part."""

    kind: DifferenceKind
    run_id: str | None
    step: int | None
    """``seq`` of the recorded step; ``None`` for a call that was never recorded."""
    name: str
    """What was called: kind and name."""
    field: str | None = None
    """JSON path of the first value that differs, for example ``messages[0].content``."""
    recorded: str | None = None
    actual: str | None = None
    instead: str | None = None
    """Where another call came than the recorded one: which, with its step if it has one. ``actual`` is what that asks."""
    diff: str | None = None
    """Unified diff of the whole input, or of the two values."""
    also: tuple[str, ...] = ()
    """The other values of this input that differ, by their JSON paths."""
    nearest: tuple[Mapping[str, Any], ...] = ()
    """For a call that is not in the record: the nearest that are, see :mod:`spanreplay.replay.reexecution.nearest`."""
    detail: str = ""
    where: str | None = None
    """``file:line`` of the agent's code that made the call."""
    cause: str | None = None
    """The version change that explains it, or that none can be told."""
    cause_kind: str | None = None
    """What sort of change that is, see :mod:`spanreplay.replay.reexecution.causes`."""
    same_as: int | None = None
    """The same value differed at this earlier step, where a replay goes on after a difference."""
    evidence: Mapping[str, Any] | None = None
    """What tells the cause; no part of the JSON."""

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Self:
        """A difference as it was entered."""
        return cls(**{**facts, "also": tuple(facts.get("also", ())), "nearest": tuple(facts.get("nearest", ()))})

    def to_json(self) -> dict[str, Any]:
        """As in ``spanreplay replay --json -- CMD``."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "evidence"}

    def summary(self) -> str:
        """One line."""
        if self.step is not None:
            place = f"step {self.step}"
        else:
            place = "a call that is not in the record" if self.kind in ("never_recorded", "already_used") else "the run"
        what = f"{place}, {self.name}"
        if self.field is not None:
            return (
                f"{what}: {self.field} differs: recorded {self.recorded}, actual {self.actual}{f'; {self.detail}' if self.detail else ''}"
            )
        return f"{what}: {self.detail}"


@dataclass(slots=True, kw_only=True)
class Totals:
    """What a replay did, over all its processes."""

    processes: int = 0
    first: int = 0
    """Of them those that no other one of them has started: more than one where a shell is the command."""
    used: dict[str, set[int]] = field(default_factory=dict)
    """Run id to the ``seq`` of every recorded step that answered a call."""
    covered: dict[str, set[int]] = field(default_factory=dict)
    """Run id to the steps inside a stubbed tool: nobody asked for them."""
    given_up: dict[str, set[int]] = field(default_factory=dict)
    """Run id to the steps whose answer the agent did not wait for, as a deadline ran out that had not when they were recorded."""
    by_input: int = 0
    """Steps matched by what was asked, because the path could not know the caller."""
    by_meaning: int = 0
    """Steps of runs recorded by others, matched by what was asked, as far as the record shows it."""
    by_renaming: int = 0
    """Steps whose call differed in ids and times that a program makes itself."""
    by_tolerance: int = 0
    """Steps whose call differed in what the user lets differ."""
    by_place: int = 0
    """Steps that answered although their call differed, to find later differences too."""
    ignored: list[Mapping[str, Any]] = field(default_factory=list)
    """What was ignored: run, step, name, field, recorded, actual."""
    by_chance: int = 0
    """Steps of runs recorded by others that another one could have stood for, which asked the same at once and was answered otherwise."""
    not_compared: set[str] = field(default_factory=set)
    """What calls had that the record does not show."""
    order_relaxed: int = 0
    """Answers given out of the recorded order, after a bounded wait."""
    taken: list[Mapping[str, Any]] = field(default_factory=list)
    """Names of temporary files that somebody had, ``recorded``, and those that were given instead, ``actual``."""
    unmade: list[Mapping[str, Any]] = field(default_factory=list)
    """Exceptions of another class than recorded, see :mod:`spanreplay.replay.reexecution.unmade`: run, step, name, error, why."""
    alone: list[Mapping[str, Any]] = field(default_factory=list)
    """What tools had changed in place and was not changed again, as the agent has changed it itself: run, step, names."""
    telemetry_dropped: int = 0
    runs_matched: set[str] = field(default_factory=set)
    differences: list[Difference] = field(default_factory=list)
    refusals: list[Mapping[str, Any]] = field(default_factory=list)
    notices: list[Mapping[str, Any]] = field(default_factory=list)
    isolation: list[str] = field(default_factory=list)
    versions: Comparison | None = None
    """The recorded versions against those of the first process."""
    live: list[Mapping[str, Any]] = field(default_factory=list)
    """Calls that were live, changed or failed by intent: the recorded run and step in whose place (or ``None``), name, what was changed."""
    left: list[Mapping[str, Any]] = field(default_factory=list)
    """Where a process left the record: run, step, name."""
    drift: list[Difference] = field(default_factory=list)
    """What live calls gave otherwise than the recorded ones."""
    begun: dict[str, str] = field(default_factory=dict)
    """Id of each run that the re-execution was recorded as, to that of the run it was forked from."""
    journals: set[str] = field(default_factory=set)
    """Names of the files of the store that it was recorded in."""
    enough: int | None = None
    """The step after which the agent was stopped because it was to come no further."""
    crashes: list[Mapping[str, Any]] = field(default_factory=list)
    """Exceptions of the agent's own that ended a process, see :mod:`spanreplay.replay.reexecution.crashes`."""


class Ledger:
    """Takes entries from any thread; see the module's text."""

    def __init__(self, file: Path | None = None) -> None:
        self.totals = Totals()
        self._lock = threading.RLock()  # the guard enters refusals from wherever the collector runs
        self._descriptor: int | None = None if file is None else os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def enter(self, event: str, /, **facts: Any) -> None:
        """Enter one fact; see :func:`apply` for the events."""
        with self._lock:
            apply(self.totals, event, facts)
            if self._descriptor is not None:
                os.write(self._descriptor, (json.dumps({"entry": event, **facts}) + "\n").encode())

    def differ(self, difference: Difference) -> None:
        """Enter a difference."""
        self.enter("difference", **asdict(difference))

    def refuse(self, refusal: Refusal) -> None:
        """Enter an act on the outside that was stopped: an attempt, or a notice."""
        facts = {name: str(value) for name, value in asdict(refusal).items()}
        self.enter("refused" if refusal.fatal else "notice", **facts, text=refusal.describe())


def apply(totals: Totals, event: str, facts: Mapping[str, Any]) -> None:
    """Add one ledger event to ``totals``. Unknown events are ignored: a newer child may know more."""
    action = _EVENTS.get(event)
    if action is not None:
        action(totals, facts)


def _started(totals: Totals, facts: Mapping[str, Any]) -> None:
    totals.processes += 1
    totals.first += facts.get("first") is True
    totals.isolation.append(facts.get("isolation", "none"))


def _used(totals: Totals, facts: Mapping[str, Any]) -> None:
    totals.used.setdefault(facts["run"], set()).add(facts["step"])
    if facts.get("by") == "path":  # the very call at its place: there is nothing to say of it
        return
    totals.by_input += facts.get("by") == "input"
    totals.by_meaning += facts.get("by") == "meaning"
    totals.by_renaming += facts.get("by") == "renaming"
    totals.by_tolerance += facts.get("by") == "tolerance" or facts.get("tolerated") is True
    totals.by_place += facts.get("by") == "place"
    totals.ignored += [{"run_id": facts["run"], "step": facts["step"], **value} for value in facts.get("ignored", ())]
    totals.by_chance += facts.get("by_chance") is True
    totals.not_compared.update(facts.get("not_compared", ()))


def _one_more(totals: Totals, facts: Mapping[str, Any]) -> None:
    """The call of a step has come: what was told as another input of it was a call more, before that."""
    told = [d for d in totals.differences if (d.run_id, d.step, d.kind) == (facts["run"], facts["step"], "input")]
    if not told:
        return
    totals.by_place -= 1
    first = told[0]
    detail = f"one call more than was recorded: that of step {facts['step']} came after it ({first.field} of this one is {first.actual})"
    extra = Difference(kind="never_recorded", run_id=first.run_id, step=None, name=first.name, detail=detail, where=first.where)
    kept = [d for d in totals.differences if all(d is not other for other in told)]
    totals.differences[:] = [*kept, replace(extra, evidence=first.evidence)]


def _withdrawn(totals: Totals, facts: Mapping[str, Any]) -> None:
    """A live call was refused after all: what was to be changed in it cannot be."""
    for at in range(len(totals.live) - 1, -1, -1):
        if all(totals.live[at][key] == facts[key] for key in ("run", "step", "name")):
            del totals.live[at]
            return


def _covered(totals: Totals, facts: Mapping[str, Any]) -> None:
    totals.covered.setdefault(facts["run"], set()).update(facts["steps"])


_EVENTS: Final[Mapping[str, Callable[[Totals, Mapping[str, Any]], None]]] = {
    "started": _started,
    "used": _used,
    "covered": _covered,
    "given_up": lambda totals, facts: totals.given_up.setdefault(facts["run"], set()).add(facts["step"]),
    "one_more": _one_more,
    "withdrawn": _withdrawn,
    "run": lambda totals, facts: totals.runs_matched.add(facts["run"]),
    "relaxed": lambda totals, _: setattr(totals, "order_relaxed", totals.order_relaxed + 1),
    "taken": lambda totals, facts: totals.taken.append(facts),
    "unmade": lambda totals, facts: totals.unmade.append(facts),
    "alone": lambda totals, facts: totals.alone.append(facts),
    "telemetry": lambda totals, facts: setattr(totals, "telemetry_dropped", totals.telemetry_dropped + facts.get("count", 1)),
    "difference": lambda totals, facts: totals.differences.append(Difference.of(facts)),
    "crashed": lambda totals, facts: totals.crashes.append(facts),
    "enough": lambda totals, facts: setattr(totals, "enough", facts["step"]),
    "refused": lambda totals, facts: totals.refusals.append(facts),
    "notice": lambda totals, facts: totals.notices.append(facts),
    "live": lambda totals, facts: totals.live.append(facts),
    "versions": lambda totals, facts: setattr(totals, "versions", totals.versions or Comparison.of(facts)),
    "left": lambda totals, facts: totals.left.append(facts),
    "drift": lambda totals, facts: totals.drift.append(Difference.of(facts)),
    "kept_in": lambda totals, facts: totals.journals.add(facts["file"]),
    "begun": lambda totals, facts: totals.begun.update({facts["run"]: facts["of"]}),
}


def unreached(run: Run, totals: Totals) -> list[Step]:
    """The steps of a run that no call asked for, or whose answer was not waited for, in order.

    A call that was cancelled or stopped, or never ended, need not come again.
    """
    used = totals.used.get(run.run_id, set()) | {facts["step"] for facts in totals.live if facts["run"] == run.run_id}
    used -= totals.given_up.get(run.run_id, set())
    spoken = used | totals.covered.get(run.run_id, set())
    if is_foreign(run):
        spoken |= _excused(run, used, spoken)
    missed = (step for step in judged(run) if step.seq not in spoken and step.outcome not in ("cancelled", "unknown"))
    return [step for step in missed if not was_stopped(step) and not never_came(step)]


def _excused(run: Run, used: Collection[int], spoken: Collection[int]) -> set[int]:
    """Steps of a run of others that need not come, as what they did has come.

    A tool that is an agent was passed through: its calls came by themselves. A tool that failed may have failed before its function was
    called (arguments that are none, an approval that was asked for): the model call that tells the model so has come.
    """
    by_seq = {step.seq: step for step in run.steps}
    found: set[int] = set()
    for seq in used:
        around = by_seq[seq].parent_seq if seq in by_seq else None
        while around is not None and around not in found and around not in spoken:
            if by_seq.get(around) is None or by_seq[around].kind != "model_call":
                found.add(around)
            around = by_seq[around].parent_seq if around in by_seq else None
    told = max((by_seq[seq].started_ns for seq in used if seq in by_seq and by_seq[seq].kind == "model_call"), default=0)
    found.update(step.seq for step in run.steps if step.kind == "tool_call" and step.outcome != "ok" and step.started_ns < told)
    return found


def expected_runs(runs: Sequence[Run], totals: Totals, focus: Collection[str] = ()) -> list[Run]:
    """The runs that a replay is judged against: those asked for, and what of the others it came to.

    Args:
        runs: all runs of the recorded command.
        totals: what the replay did.
        focus: ids of the runs asked for; empty for all of them.
    """
    if not focus:
        return list(runs)
    expected = []
    for run in runs:
        if run.run_id in focus:
            expected.append(run)
        elif run.run_id in totals.runs_matched:
            used = totals.used.get(run.run_id, set())
            processes = {s.process for s in run.steps if s.seq in used}
            partly = run.is_command and processes  # each of its processes is asked for by itself
            expected.append(replace(run, steps=tuple(s for s in run.steps if s.process in processes)) if partly else run)
    return expected


def cut_short(runs: Sequence[Run]) -> list[tuple[str, int]]:
    """Run id and step of every run whose record is known to lack something; 0 where not even a first step is there."""
    found = []
    for run in runs:
        bare = run.is_command and not run.steps and not run.dropped  # its agents are runs of their own
        if (run.grade == "incomplete" or run.dropped) and not bare:
            broken = next((s.seq for s in run.steps if s.grade == "incomplete" or s.outcome == "unknown"), None)
            found.append((run.run_id, broken or max((s.seq for s in run.steps), default=0)))
    return found


def read_ledgers(folder: Path) -> Totals:
    """Add up the ledgers that the processes of a replayed command left in ``folder``. A cut last line is left out."""
    totals = Totals()
    for file in sorted(folder.glob("*.ledger")):
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            apply(totals, entry.pop("entry", ""), entry)
    return totals
