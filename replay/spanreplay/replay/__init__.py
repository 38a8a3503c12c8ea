"""Rebuild ordered runs from spans, and re-execute them with every call answered from the record.

Public: :class:`Replayer` and :class:`ReplayResult`, :class:`Run` and :class:`Step`, :func:`open_source` and :func:`build_runs`.
Each is imported when it is asked for: a replay needs much that listing runs does not.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spanreplay.replay.inputs.source import open_source
    from spanreplay.replay.model import Run, Step
    from spanreplay.replay.rebuilding.runs import build_runs
    from spanreplay.replay.reexecution.engine import Replayer, ReplayResult

__all__ = ["ReplayResult", "Replayer", "Run", "Step", "build_runs", "open_source"]

_HOMES = {
    "ReplayResult": "reexecution.engine",
    "Replayer": "reexecution.engine",
    "Run": "model",
    "Step": "model",
    "build_runs": "rebuilding.runs",
    "open_source": "inputs.source",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
