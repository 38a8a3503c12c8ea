"""agenttape: ``use_cassette``, ``@agenttape.tool``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import agenttape  # type: ignore[import-not-found]

from conformance.driver import ANTHROPIC, STREAMS, Difference, Driver, Program, Replayed


class AgentTape(Driver):
    """Modes ``record`` and ``none``, clock, uuids and random numbers frozen; without its extra ``yaml``, as more comes back so."""

    name = "agenttape"
    package = "agenttape"
    mode = '`use_cassette(…, mode="record")`, `mode="none"`; clock, uuid and random frozen'
    cannot = {
        ANTHROPIC: "records the OpenAI SDK, httpx and requests; the Anthropic SDK uses httpx2",
        STREAMS: "streamed responses are not captured (its documentation)",
    }

    def tool(self, function: Callable[..., Any], *, acts: bool) -> Callable[..., Any]:
        return agenttape.tool(function)  # type: ignore[no-any-return]

    def record(self, program: Program, folder: Path, needs: frozenset[str]) -> str:
        with agenttape.use_cassette("run", cassette_dir=folder, mode="record", freeze=["clock", "uuid", "random"]):
            return program()

    def replay(self, program: Program, folder: Path, needs: frozenset[str]) -> Replayed:
        done = Replayed()
        try:
            with agenttape.use_cassette("run", cassette_dir=folder, mode="none", freeze=["clock", "uuid", "random"]):
                done.value = program()
        except agenttape.UnmatchedInteractionError as error:
            done.error = f"UnmatchedInteractionError: {error}"
            paths = [found.path for found in error.field_diffs]
            done.differences.append(Difference(text=str(error), field=paths[0] if len(paths) == 1 else None))
        return done


DRIVER = AgentTape()
