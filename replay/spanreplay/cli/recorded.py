"""What ``record`` says at the end: what was kept, and what of it will not replay exactly."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spanreplay.replay.model import GRADE_WORDS, Grade, Run
from spanreplay.semconv import attributes as names
from spanreplay.spans.record import SpanRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The runs of one recorded command."""

    runs: Sequence[Run]
    processes: int

    @property
    def steps(self) -> int:
        """Steps kept, over all runs."""
        return sum(len(r.steps) for r in self.runs)

    def inexact(self) -> Counter[tuple[Grade, str, str]]:
        """(grade, step, reason) of every step that will not replay exactly."""
        found: Counter[tuple[Grade, str, str]] = Counter()
        for run in self.runs:
            for step in run.steps:
                if step.grade != "exact":
                    found[step.grade, f"{step.kind} {step.name}", "; ".join(r.detail for r in step.reasons) or "no reason known"] += 1
        return found

    def untaped(self) -> list[dict[str, Any]]:
        """What happened outside every seam."""
        return [u for run in self.runs for u in run.untaped if isinstance(u, dict)]

    def lines(self) -> list[str]:
        """For people."""
        runs = ", ".join(f"{r.run_id[:12]}{f' ({r.agent_name})' if r.agent_name else ''}" for r in self.runs if r.steps)
        number = sum(bool(r.steps) for r in self.runs)
        lines = [f"spanreplay: kept {_many(self.steps, 'step')} of {_many(number, 'run')}" + (f": {runs}" if runs else "")]
        for (grade, step, why), number in self.inexact().most_common():
            lines.append(f"  {step}{f' (x{number})' if number > 1 else ''} {_WORDS[grade]}: {why}")
        lines += [f"  not recorded: {item.get('what')} {item.get('target')}{_advice(item)}" for item in self.untaped()]
        dropped = sum(r.dropped for r in self.runs)
        if dropped:
            lines.append(f"  {_many(dropped, 'record')} could not be kept; the runs are incomplete")
        return lines

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "runs": [{"run_id": r.run_id, "agent": r.agent_name, "steps": len(r.steps), "grade": r.grade} for r in self.runs],
            "steps": self.steps,
            "processes": self.processes,
            "inexact": [{"grade": g, "step": s, "reason": w, "count": n} for (g, s, w), n in self.inexact().items()],
            "untaped": self.untaped(),
        }


_WORDS = {grade: ("is " + words if grade in ("structure", "incomplete") else words) for grade, words in GRADE_WORDS.items()}


def _advice(item: dict[str, Any]) -> str:
    if item.get("what") not in ("file written", "database opened"):
        return ""
    return f"; a replay refuses it unless told --allow-write {item['target']}"


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def summary(store: Any, command_id: str) -> Kept:
    """Collect what ``store`` has of a recorded command."""
    from spanreplay.replay.runs import build_runs

    traces = store.traces_of_command(command_id)
    records = [*store.traces(traces), *store.logs(traces)] if traces else []
    processes = {r.attributes.get(names.PROCESS_ID) for r in records if isinstance(r, SpanRecord)} - {None}
    runs = [r for r in build_runs(records) if r.command_id == command_id]
    return Kept(runs=runs, processes=len(processes))
