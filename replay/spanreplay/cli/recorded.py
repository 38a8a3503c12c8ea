"""What ``record`` says at the end: what was kept, and what of it will not replay exactly."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from spanreplay.cli.options import many
from spanreplay.cli.stored import processes_of, records_of, runs_of
from spanreplay.replay.model import GRADE_WORDS, Grade, Json, Run
from spanreplay.replay.reasons import untaped
from spanreplay.replay.rebuilding.origin import told_by_others
from spanreplay.replay.reexecution.missing_state import is_kept
from spanreplay.replay.showing import short_id

if TYPE_CHECKING:
    from spanreplay.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The runs of one recorded command."""

    runs: Sequence[Run]
    processes: int
    """Python processes that reported in."""
    dropped: int
    """Records that they could not keep."""

    @property
    def steps(self) -> int:
        """Steps kept, over all runs."""
        return sum(len(r.steps) for r in self.runs)

    def inexact(self) -> Counter[tuple[Grade, str, str]]:
        """(grade, step, reason) of every step that will not replay exactly."""
        found: Counter[tuple[Grade, str, str]] = Counter()
        for run in self.runs:
            told = told_by_others(run)
            for step in run.steps:
                if step.grade != "exact" and step.seq not in told:
                    found[step.grade, f"{step.kind} {step.name}", "; ".join(r.detail for r in step.reasons) or "no reason known"] += 1
        return found

    def untaped(self) -> list[dict[str, Any]]:
        """What happened outside every seam."""
        return [u for run in self.runs for u in run.untaped if isinstance(u, dict) and not is_kept(self.runs, u)]

    def lines(self) -> list[str]:
        """For people."""
        named = [f"{short_id(r.run_id)}{f' ({r.agent_name})' if r.agent_name else ''}" for r in self.runs if r.steps]
        shown = ", ".join(named[:_RUNS_NAMED]) + (f" and {len(named) - _RUNS_NAMED} more" if len(named) > _RUNS_NAMED else "")
        lines = [f"spanreplay: kept {many(self.steps, 'step')} of {many(len(named), 'run')}" + (f": {shown}" if shown else "")]
        for (grade, step, why), number in self.inexact().most_common():
            lines.append(f"  {step}{f' (x{number})' if number > 1 else ''} {_WORDS[grade]}: {why}")
        outside = Counter(f"  {untaped(item)}" for item in self.untaped())
        lines += [f"{line} (x{number})" if number > 1 else line for line, number in outside.items()]
        lines += [f"  {lost}" for run in self.runs if (lost := _lost_code(run.code)) is not None]
        if self.dropped:
            lines.append(f"  {many(self.dropped, 'record')} could not be kept; the runs are incomplete")
        return lines

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "runs": [{"run_id": r.run_id, "agent": r.agent_name, "steps": len(r.steps), "grade": r.grade} for r in self.runs],
            "steps": self.steps,
            "processes": self.processes,
            "inexact": [{"grade": g, "step": s, "reason": w, "count": n} for (g, s, w), n in self.inexact().items()],
            "untaped": self.untaped(),
            "dropped": self.dropped,
        }


_RUNS_NAMED: Final = 8
_WORDS: Final = {grade: ("is " + words if grade in ("structure", "incomplete") else words) for grade, words in GRADE_WORDS.items()}


def _lost_code(code: Json) -> str | None:
    """What the record lacks of the code that the command was started from."""
    if not isinstance(code, dict):
        return None
    if code.get("why"):
        return f"the uncommitted changes are not kept: {code['why']}"
    left_out = code.get("left_out")
    return f"not kept of the uncommitted changes, as too large: {', '.join(map(str, left_out))}" if left_out else None


def summary(store: "Store", command_id: str) -> Kept:
    """Collect what ``store`` has of a recorded command."""
    with store.reading():
        traces = store.traces_of_command(command_id)
        records = records_of(store, traces) if traces else []
        runs = [r for r in runs_of(store, records) if r.command_id == command_id] if records else []
        of_them = {t for run in runs for t in run.trace_ids}
        processes = processes_of([r for r in records if r.trace_id in of_them])
        losses = store.losses(processes) if processes else {}
    return Kept(runs=runs, processes=len(processes), dropped=max(sum(losses.values()), max((r.dropped for r in runs), default=0)))
