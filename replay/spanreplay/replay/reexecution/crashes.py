"""An exception of the agent's own that has ended a process: why it did not come to what was recorded after it."""

import traceback
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from spanreplay.replay.isolation.callers import user_line

_LONGEST: Final = 200


def crash(error: BaseException) -> dict[str, str | None]:
    """As in a ledger: ``what`` it was, and ``where`` it was raised, as ``file:line`` of the user's own code where that is known."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 — an exception that cannot be written
        text = ""
    kind = type(error).__name__
    what = f"{kind}: {text}" if text else kind
    return {"what": what if len(what) <= _LONGEST else f"{what[:_LONGEST]}…", "where": _where(error.__traceback__)}


def _where(trace: TracebackType | None) -> str | None:
    """The innermost line of the user's own, or the innermost of all."""
    found = None
    for frame, line in traceback.walk_tb(trace):
        if (own := user_line(frame)) is not None and own.startswith(f"{frame.f_code.co_filename}:"):
            found = f"{frame.f_code.co_filename}:{line}"
    return found


def told(crashed: Mapping[str, Any]) -> str:
    """For people: ``the agent ended with RuntimeError: boom at agent.py:11``."""
    where = crashed.get("where")
    place = f" at {Path(where.rpartition(':')[0]).name}:{where.rpartition(':')[2]}" if isinstance(where, str) else ""
    return f"the agent ended with {crashed.get('what')}{place}"
