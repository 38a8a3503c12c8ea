"""Rebuild ordered runs from spans, and re-execute them with every call answered from the record.

Public: :class:`Replayer` and :class:`ReplayResult`, :class:`Run` and :class:`Step`, :func:`open_source` and :func:`build_runs`.
Each is imported when it is asked for: a replay needs much that listing runs does not.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spanreplay.replay.engine import Replayer, ReplayResult
    from spanreplay.replay.model import Run, Step
    from spanreplay.replay.runs import build_runs
    from spanreplay.replay.source import open_source

__all__ = ["ReplayResult", "Replayer", "Run", "Step", "build_runs", "open_source"]

_HOMES = {
    "ReplayResult": "engine",
    "Replayer": "engine",
    "Run": "model",
    "Step": "model",
    "build_runs": "runs",
    "open_source": "source",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
