"""Which recorded run each live run stands for: found when it begins, or at its first call where several fit. Not locked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from spanreplay.boundary.session import RunContext
from spanreplay.boundary.step import Step as LiveStep
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.candidates import Rank, Recording
from spanreplay.replay.reexecution.foreign import ForeignRecording, Pool
from spanreplay.replay.reexecution.ledger import Ledger
from spanreplay.replay.reexecution.matching import RecordedRun
from spanreplay.replay.reexecution.stepwise import agent_changes

_INSIDE: Final = "inside "
"""Begins the key of what a process, or a job of a pool, does for a run that another process has begun."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """A live agent run that several recorded runs fit, until it makes its first call."""

    name: str
    path: str
    asked: str | None


class LiveRuns:
    """The runs of one process's replay.

    Args:
        recording: what spanreplay recorded.
        of_others: what others did.
        ledger: each recorded run that is met is entered there.
        begun: told of each live run that a recorded one stands for, as its root step, or its first call where it has none, and that one.
    """

    def __init__(self, recording: Recording, of_others: ForeignRecording, ledger: Ledger, begun: Callable[[LiveStep, Run], None]) -> None:
        self._recording: Final = recording
        self._of_others: Final = of_others
        self._ledger: Final = ledger
        self._begun: Final = begun
        self._known: dict[str, RecordedRun | Pool | Undecided | None] = {}
        self._roots: dict[str, LiveStep] = {}
        self._outside = False
        """What the calls outside every agent run stand for has been told."""

    def __len__(self) -> int:
        return len(self._known)

    def begin(self, step: LiveStep, asked: str | None) -> RecordedRun | Pool | Undecided | None:
        """A live agent run begins.

        Args:
            step: its root.
            asked: its comparable input.
        """
        assert step.run is not None  # noqa: S101 — a step that starts a run has it
        key = step.run.run_id
        self._roots[key] = step
        run = Undecided(step.call.name, step.path, asked)
        if self._recording.several(run.name, run.path, asked):
            self._known[key] = run
            return run
        return self._decide(key, run)

    def known(self, run: RunContext | None) -> RecordedRun | None:
        """The recorded run of a live one, where that is decided."""
        found = self._known.get(_key(run))
        return found if isinstance(found, RecordedRun) else None

    def of(self, step: LiveStep) -> RecordedRun | Pool | None:
        """What answers a call."""
        owner = self._recording.owner(step.run.run_id) if step.run is not None and step.run.fallback else None
        key = _key(step.run) if owner is None else f"{_INSIDE}{owner}"

        def rank(recorded: RecordedRun) -> int:
            return recorded.fit(step.call.kind, step.call.name, step.path, step.input)

        if key not in self._known:
            found = self._recording.command(rank, owner)
            if found is not None:
                self._ledger.enter("run", run=found.run.run_id)
            self._known[key] = self._of_others.pool(None) if found is None and self._of_others else found
        known = self._known[key]
        return self._decide(key, known, rank) if isinstance(known, Undecided) else known

    def id_of(self, step: LiveStep) -> str | None:
        """Id of the recorded run that answers a call, if one does."""
        found = self.of(step)
        return found.run.run_id if isinstance(found, RecordedRun) else None

    def ended(self, step: LiveStep) -> RecordedRun | None:
        """A live agent run is over: the recorded one, also where it has made no call that would tell which."""
        key = _key(step.run)
        found = self._known.get(key)
        if isinstance(found, Undecided):
            found = self._decide(key, found, lambda recorded: len(recorded.run.steps))
        return found if isinstance(found, RecordedRun) else None

    def answered_by(self, step: LiveStep, run: Run) -> None:
        """A run of others has answered a call, or would have: it is what the live run around the call stands for."""
        key = _key(step.run)
        root = self._roots.pop(key, None)
        if not key and not self._outside:
            root, self._outside = step, True
        if root is not None:
            self._begun(root, run)

    def _decide(self, key: str, run: Undecided, rank: Rank | None = None) -> RecordedRun | Pool | None:
        found = self._recording.agent_run(run.name, run.path, run.asked, rank)
        if found is not None:
            self._ledger.enter("run", run=found.run.run_id)
            self._recording.begin(key, found.run.run_id)
            if key in self._roots:
                self._begun(self._roots[key], found.run)
                found.changed = agent_changes(found.run, self._roots[key])
        chosen = self._of_others.pool(run.name) if found is None and self._of_others else found
        self._known[key] = chosen
        return chosen


def _key(run: RunContext | None) -> str:
    """Of all calls outside every agent run, the same."""
    return "" if run is None or run.fallback else run.run_id
