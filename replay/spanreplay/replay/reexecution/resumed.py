"""Earlier resumptions of a crashed run: what they did is done, and a second one would do it again."""

from collections.abc import Sequence

from spanreplay.replay.model import Run, Step
from spanreplay.replay.reexecution.contradictions import same_place
from spanreplay.replay.reexecution.cut import is_harmless
from spanreplay.replay.reexecution.policy import RESULT
from spanreplay.replay.reexecution.stopped import was_stopped


def continued(crashed: Sequence[Run], later: Sequence[Run]) -> list[Run]:
    """The runs that go on from crashed ones, or were made by the same command as such a run, in the order of their start.

    Args:
        crashed: runs.
        later: others that may go on from them.
    """
    ids = {run.run_id for run in crashed}
    commands = {run.command_id for run in later if run.forked_from in ids} - {None}
    found = [run for run in later if run.run_id not in ids and (run.forked_from in ids or run.command_id in commands)]
    return sorted((run for run in found if run.steps), key=lambda run: run.started_ns)


def acted_in(run: Run, crashed: Sequence[Run]) -> list[Step]:
    """The steps of a later run that acted where the crashed ones did, or may have.

    A fork acts elsewhere: ``--target`` is on its steps, and is no place of the record.
    """
    recorded = {step.target for before in crashed for step in before.steps if step.target}
    live = [s for s in run.steps if _was_live(s) and not (s.outcome == "rejected" and was_stopped(s))]
    return [s for s in live if not is_harmless(s) and (s.target is None or same_place(s.target, recorded))]


def came_to_nothing(later: Run, crashed: Sequence[Run]) -> bool:
    """Did a later run that was to finish crashed ones end otherwise than well, before it acted? They are still to be finished then."""
    return later.outcome not in ("ok", "unknown") and any(run.outcome == "unknown" for run in crashed) and not acted_in(later, crashed)


def _was_live(step: Step) -> bool:
    changed = step.changed if isinstance(step.changed, dict) else {}
    return step.answered_from is None and not step.injected and not {RESULT, "decision"} & changed.keys()
