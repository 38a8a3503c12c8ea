"""State that a replay does not have: what its runs found on disk when they were recorded, and left behind changed."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from spanreplay.replay.isolation.paths import Territory
from spanreplay.replay.isolation.state import paths_of
from spanreplay.replay.model import Json, Run

IN_PLACE: Final = "the recorded state is in place"
"""Part of what a replay says of its isolation."""
_MAY_BE_STATE: Final = frozenset({"database opened", "file written"})
_NAMED: Final = 6


def missing_state(runs: Sequence[Run], isolation: str) -> tuple[str, ...]:
    """What to say where a replay differs: the difference may come from there. Nothing where nothing is missing.

    Args:
        runs: the runs, that of the recorded command among them.
        isolation: what the replay says of it.
    """
    lines = []
    kept = list(dict.fromkeys(str(path) for run in runs for path in paths_of(run.state)))
    if kept and IN_PLACE not in isolation:
        lines.append(f"the recorded state of {_some(kept)} was not put back, so the program saw what is there now")
    lacking = list(dict.fromkeys(name for run in runs for name in _opened(run, runs)))
    if lacking:
        options = " ".join(f"--state {name}" for name in lacking[:_NAMED])
        lines.append(f"what {_some(lacking)} held before the run is not in the record; record it with {options}")
    return tuple(lines)


def is_kept(runs: Sequence[Run], item: Json) -> bool:
    """Whether something that happened outside every seam happened to state that is kept.

    Args:
        runs: the runs of a command, and that of the command itself: the state is kept with that one.
        item: what happened in any of them.
    """
    return any(_is_kept_with(run, item) for run in runs)


def _is_kept_with(run: Run, item: Json) -> bool:
    target = item.get("target") if isinstance(item, dict) else None
    cwd = run.definition.get("cwd") if isinstance(run.definition, dict) else None
    if not isinstance(target, str) or not isinstance(cwd, str) or "\0" in target:
        return False
    return Territory(Path("/nowhere"), (), paths_of(run.state)).holds(os.path.normpath(Path(cwd, target)))


def _opened(run: Run, runs: Sequence[Run]) -> Iterator[str]:
    for item in run.untaped:
        if not isinstance(item, dict) or item.get("what") not in _MAY_BE_STATE or not isinstance(item.get("target"), str):
            continue
        if not is_kept(runs, item):
            yield item["target"]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
