"""What was recorded, and what no process of a replay asked for."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from spanreplay.replay.model import Run, Step
from spanreplay.replay.rebuilding.origin import is_foreign
from spanreplay.replay.reexecution.crashes import told
from spanreplay.replay.reexecution.ledger import Difference, Ledger, unreached
from spanreplay.replay.reexecution.out_of_order import asked_for, enter_made_later, enter_not_made

_NAMED: Final = 3
_GIVEN_UP: Final = "recorded, but the agent gave up before it had the answer: a deadline ran out here that had not when it was recorded"


def enter_unreached(runs: Sequence[Run], ledger: Ledger, *, all_differences: bool = False) -> None:
    """Enter every recorded step that no process of the replay asked for.

    Nothing is entered after a replay was stopped by a difference or a refusal: everything behind it is unreached then.

    Args:
        runs: what the replay is judged against.
        ledger: of all its processes.
        all_differences: calls that differed were answered all the same, and stopped nothing.
    """
    if all_differences:
        enter_made_later(ledger.totals)
    totals, before = ledger.totals, len(ledger.totals.differences)
    passed = ("output", "outcome", *(("input", "order", "unreached") if all_differences else ()))
    if totals.refusals or any(d.kind not in passed for d in totals.differences):
        return
    _enter_all(runs, ledger)
    if totals.crashes:  # which is why, and where
        crashed = totals.crashes[0]
        for number, difference in enumerate(totals.differences[before:], before):
            if difference.kind == "unreached":
                detail = f"{told(crashed)}; {difference.detail}"
                totals.differences[number] = replace(difference, detail=detail, where=difference.where or crashed.get("where"))
                break


def _enter_all(runs: Sequence[Run], ledger: Ledger) -> None:
    totals = ledger.totals
    for run in runs:
        if is_foreign(run):
            _enter_uncalled(run, ledger, alone=len(runs) == 1)
            continue
        left_out = not run.is_command and run.path is not None and run.run_id not in totals.runs_matched
        detail = "recorded, but the agent did not make this call"
        if left_out and len(runs) > 1:
            detail = f"recorded in run {run.run_id[:12]}, to which the command did not come"
        for step in unreached(run, totals):
            if not enter_not_made(totals, run.run_id, step.seq):
                given_up = step.seq in totals.given_up.get(run.run_id, ())
                ledger.differ(_of(run, step, _GIVEN_UP if given_up else detail))
        if left_out and not run.steps:
            detail = f"recorded as run {run.run_id[:12]}, which the agent did not begin"
            ledger.differ(Difference(kind="unreached", run_id=run.run_id, step=None, name=f"agent {run.agent_name}", detail=detail))


def _enter_uncalled(run: Run, ledger: Ledger, *, alone: bool) -> None:
    """The same of a run that others recorded: where nothing of it came, that is one difference."""
    totals = ledger.totals
    missing = unreached(run, totals)
    if missing and not alone and run.run_id not in totals.runs_matched:
        came_to = " or ".join(run_id[:12] for run_id in sorted(totals.runs_matched)[:_NAMED]) or "RUN"
        detail = (
            f"recorded, and the command made no call of it; to judge one run alone name it in place of the whole: "
            f"FILE#{came_to}, or {came_to} where it is in the store"
        )
        ledger.differ(Difference(kind="unreached", run_id=run.run_id, step=None, name=f"agent {run.agent_name or 'run'}", detail=detail))
        return
    used = totals.used.get(run.run_id, set())
    called = {step.name for step in run.steps if step.seq in used}
    for step in missing:
        detail = "recorded, but the agent did not make this call"
        if step.kind == "tool_call" and step.name not in called:
            detail = f"recorded, but no call of {step.name} came here: is its function decorated with @spanreplay.instrumentation.tool?"
        ledger.differ(_of(run, step, detail))


def _of(run: Run, step: Step, detail: str) -> Difference:
    name, recorded = f"{step.kind} {step.name}", asked_for(step)
    return Difference(kind="unreached", run_id=run.run_id, step=step.seq, name=name, recorded=recorded, detail=detail)
