"""Tasks and threads of a replay that a difference has stopped, where the others go on to find further ones."""

from spanreplay.boundary.step import Step as LiveStep
from spanreplay.replay.reexecution.errors import ReplayDivergence
from spanreplay.replay.reexecution.forks import levels_of


class StoppedTasks:
    """A task is named by its run, and by its path in it: of the innermost task or thread, empty for the run itself. Not locked."""

    def __init__(self) -> None:
        self._stopped: dict[tuple[str, str], ReplayDivergence] = {}

    @property
    def whole(self) -> bool:
        """A whole run was stopped."""
        return any(not task for _, task in self._stopped)

    def stop(self, step: LiveStep, error: ReplayDivergence) -> None:
        """The task of a call is stopped by it."""
        levels = list(levels_of(step.scope.path))
        self._stopped.setdefault((_run(step), levels[-1][1] if levels else ""), error)

    def stopped(self, step: LiveStep) -> ReplayDivergence | None:
        """What has stopped the task that a call is made in, or one around it."""
        if not self._stopped:
            return None
        run = _run(step)
        around = [path for _, path in levels_of(step.scope.path)]
        return next((found for path in ("", *around) if (found := self._stopped.get((run, path))) is not None), None)

    def reached(self, step: LiveStep) -> bool:
        """Whether a task of the run of a step was stopped, so that how it ended says nothing."""
        return bool(self._stopped) and any(run == _run(step) for run, _ in self._stopped)


def _run(step: LiveStep) -> str:
    return "" if step.run is None or step.run.fallback else step.run.run_id
