"""agent-rewind: ``auto_patch()``, ``@rewind.tool``, one trace file."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rewind  # type: ignore[import-not-found]

from conformance.driver import CONCURRENT, THREADS, Difference, Driver, Program, Replayed

TOLD = (rewind.ReplayDriftWarning, rewind.FuzzyMatchWarning, rewind.UnconsumedEventsWarning)


class AgentRewind(Driver):
    """Matching is strict, and ``parallel`` for concurrent calls; thread pools are patched. Its README says so."""

    name = "agent-rewind"
    package = "agent-rewind"
    mode = '`auto_patch()`; `match="strict"`, `"parallel"` where calls are concurrent; `patch_thread_pool()` where there are threads'

    def tool(self, function: Callable[..., Any], *, acts: bool) -> Callable[..., Any]:
        return rewind.tool(function)  # type: ignore[no-any-return]

    def record(self, program: Program, folder: Path, needs: frozenset[str]) -> str:
        self._patch(needs)
        with rewind.record(folder / "run.rewind"):
            return program()

    def replay(self, program: Program, folder: Path, needs: frozenset[str]) -> Replayed:
        self._patch(needs)
        done = Replayed()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                with rewind.replay(folder / "run.rewind", match="parallel" if CONCURRENT in needs else "strict"):
                    done.value = program()
            except rewind.DivergenceError as error:
                done.error = f"DivergenceError: {error}"
                done.differences.append(Difference(text=str(error), step=error.step + 1))
        done.differences += [Difference(text=str(w.message)) for w in told if issubclass(w.category, TOLD)]
        return done

    def _patch(self, needs: frozenset[str]) -> None:
        rewind.auto_patch()
        if THREADS in needs:
            rewind.patch_thread_pool()


DRIVER = AgentRewind()
