"""vcrpy: HTTP only, with every part of a request compared."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import vcr  # type: ignore[import-not-found]

from conformance.driver import TOOL_OUTCOMES, Difference, Driver, Program, Replayed

RECORDER = vcr.VCR(match_on=["method", "scheme", "host", "port", "path", "query", "body"])


class VCRpy(Driver):
    """``match_on`` the body too; ``all_played`` is asked at the end."""

    name = "vcrpy"
    package = "vcrpy"
    mode = '`match_on` with `body`, `record_mode="none"`, `all_played` asked at the end'
    cannot = {
        TOOL_OUTCOMES: "records HTTP only: a tool runs again",
    }

    def tool(self, function: Callable[..., Any], *, acts: bool) -> Callable[..., Any]:
        return function

    def record(self, program: Program, folder: Path, needs: frozenset[str]) -> str:
        with RECORDER.use_cassette(str(folder / "run.yaml"), record_mode="once"):
            return program()

    def replay(self, program: Program, folder: Path, needs: frozenset[str]) -> Replayed:
        done = Replayed()
        with RECORDER.use_cassette(str(folder / "run.yaml"), record_mode="none") as cassette:
            try:
                done.value = program()
            except Exception as error:
                done.error = f"{type(error).__name__}: {error}"
        if not cassette.all_played and done.error is None:
            done.differences.append(Difference(text=f"{cassette.play_count} of {len(cassette)} exchanges were played"))
        return done


DRIVER = VCRpy()
