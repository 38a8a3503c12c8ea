"""Recording: ``start()``, ``stop()``, ``status()``.

Each is imported when it is asked for: who wants to know what a command is needs nothing of what records one.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spanreplay.recording.children import child_env, child_environment, finish_command
    from spanreplay.recording.control import Status, start, status, stop

__all__ = ["Status", "child_env", "child_environment", "finish_command", "start", "status", "stop"]

_HOMES = {
    "Status": "control",
    "child_env": "children",
    "child_environment": "children",
    "finish_command": "children",
    "start": "control",
    "status": "control",
    "stop": "control",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
