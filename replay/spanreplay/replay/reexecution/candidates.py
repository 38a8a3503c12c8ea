"""Which recorded run, and which recorded process, is this live one?

A run is found by its input and its place in the process, and where several have both, by its first call: processes that a command starts
one after the other, or at once, all begin at the same place. Calls outside every agent run belong to the command's own run; there a live
process stands for one recorded process, and only that one's steps answer it.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final

from spanreplay.replay.model import Run, Step
from spanreplay.replay.reexecution.claims import Claims
from spanreplay.replay.reexecution.comparing import EXACT, Comparing
from spanreplay.replay.reexecution.forks import NOBODY, is_job
from spanreplay.replay.reexecution.forms import comparable
from spanreplay.replay.reexecution.matching import RecordedRun

_RUN: Final = "run"
_PROCESS: Final = "process"
_STARTED: Final = "/~process#"
"""In the path of what a process does that was started inside a step."""

Rank = Callable[[RecordedRun], int]
"""How badly a run fits what is asked: 0 is best."""


class Recording:
    """The runs a replay is fed from: one, or all runs of a recorded command. Not locked, as its runs are.

    Args:
        runs: the recorded runs.
        focus: ids of the runs that were asked for, preferred where others fit as well.
        claims: shared with the other processes of the replay.
        place: causal path at which this process was started.
        accept_incomplete: steps whose record is known to lack something answer too.
        comparing: what inputs may differ in.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        *,
        focus: Collection[str] = (),
        claims: Claims | None = None,
        place: str = "",
        accept_incomplete: bool = False,
        comparing: Comparing = EXACT,
    ) -> None:
        self._prepared = partial(RecordedRun, accept_incomplete=accept_incomplete, comparing=comparing)
        self.runs = [self._prepared(r) for r in sorted(runs, key=lambda r: r.started_ns)]
        self._in_processes = [r.run for r in self.runs if _STARTED in (r.run.path or "")]
        self._inputs = {id(r): comparable(r.run.typed_input) for r in self.runs}
        self._focus = frozenset(focus)
        self._claims = claims or Claims()
        self._place = place
        self._process: str | None = None
        """The recorded process that this one stands for."""

    def begin(self, live: str, recorded: str) -> None:
        """A live run stands for a recorded one: what the processes that are started inside it must know."""
        self._claims.note(live, recorded)

    def owner(self, live: str) -> str | None:
        """Id of the recorded run for a live one that was begun by another process."""
        return self._claims.noted(live)

    def command(self, rank: Rank, owner: str | None = None) -> RecordedRun | None:
        """The run of the recorded command itself, as far as it was made by the process that this one stands for.

        Args:
            rank: of a process's part, by the call that is made now.
            owner: id of the recorded run that the process was started in, where that is known.
        """
        recorded = next((r for r in self.runs if r.run.is_command), None)
        if recorded is None and not self._place:
            return self.runs[0] if len(self.runs) == 1 and self.runs[0].run.path is None else None
        # A process that was started inside an agent's run went on with that.
        owners = [r.run for r in self.runs if r.run.run_id == owner] or [r.run for r in self.runs]
        runs = owners if self._place else [recorded.run] if recorded is not None else []
        parts = [self._prepared(run, process=name) for run in runs for name in self._processes(run)]
        for part in sorted(parts, key=lambda p: (p.process != self._process, rank(p))):
            if part.process is None or part.process == self._process or self._claims.take(_PROCESS, part.process):
                self._process = part.process
                return part
        jobs = [self._prepared(run, process=NOBODY) for run in runs if any(is_job(s.path) for s in run.steps)]
        return min(jobs, key=rank, default=None)

    def _processes(self, command: Run) -> list[str | None]:
        """The processes that made calls outside every agent run, in order of their start, as far as this one may stand for them."""
        steps: dict[str, list[Step]] = {}
        for step in command.steps:
            if step.process is not None and not is_job(step.path):
                steps.setdefault(step.process, []).append(step)
        below = f"{self._place}/" if self._place else ""
        by_seq = {s.seq: s for s in command.steps}

        def starts_here(name: str, first: Step) -> bool:
            around = by_seq.get(first.parent_seq or 0)
            # What was started inside a step of a process below this place, or of this one, has a place of its own.
            return around is None or around.process == name or not (around.path or "").startswith(below)

        fitting: list[str | None] = [
            name for name, made in steps.items() if all((s.path or "").startswith(below) for s in made) and starts_here(name, made[0])
        ]
        return fitting if steps or self._place else [None]

    def begun_in(self, step: Step) -> list[Run]:
        """The runs that were begun by processes that were started inside a recorded step."""
        return [run for run in self._in_processes if step.path and (run.path or "").startswith(f"{step.path}/")]

    def several(self, name: str, path: str, asked: str | None) -> bool:
        """Do several recorded runs have the place and the input of an agent run that begins now, so that its first call must tell?"""
        return len([r for r in self._named(name) if r.run.path == path and self._inputs[id(r)] == asked]) > 1

    def agent_run(self, name: str, path: str, asked: str | None, rank: Rank | None = None) -> RecordedRun | None:
        """The recorded run for a live one: of the same input and place, else of that input, else of that place, else the next of its name.

        Args:
            name: of the agent.
            path: where in its process the run begins.
            asked: its comparable input.
            rank: of a recorded run, by what is known of the live one beyond that.
        """
        while named := self._named(name):
            equal = [r for r in named if self._inputs[id(r)] == asked]
            tiers = ([r for r in equal if r.run.path == path], equal, [r for r in named if r.run.path == path], named)
            best = next(tier for tier in tiers if tier)
            chosen = best[0] if len(best) == 1 else min(best, key=lambda r: (0 if rank is None else rank(r), *self._preference(r)))
            if self._claims.take(_RUN, chosen.run.run_id):
                self._stand_for(chosen.first_process)
                return chosen
        return None

    def _named(self, name: str) -> list[RecordedRun]:
        free = [r for r in self.runs if not r.run.is_command and not self._claims.known_taken(_RUN, r.run.run_id)]
        return [r for r in free if r.run.agent_name == name] or (free if len(free) == 1 else [])

    def _preference(self, recorded: RecordedRun) -> tuple[bool, bool, bool]:
        process = recorded.first_process
        mine = process is not None and process == self._process
        others = not mine and process is not None and self._claims.taken(_PROCESS, process)
        return not mine, others, recorded.run.run_id not in self._focus

    def _stand_for(self, process: str | None) -> None:
        if self._process is None and process is not None and self._claims.take(_PROCESS, process):
            self._process = process
