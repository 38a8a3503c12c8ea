"""CrewAI: the outputs of the last crew, which every crew keeps in a database in the user's folder for ``crewai replay``.

``KickoffTaskOutputsSQLiteStorage`` (crewai 1.15) is made with no path for it. A replay keeps its own where it may write; what a recorded
crew keeps is no act of its agents that the record has to name, as a replay is not refused it.
"""

import functools
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakSet

from spanreplay.boundary.boundary import here
from spanreplay.instrumentation.hooks import expect
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.untaped import unnamed


def patch(module: ModuleType, patches: Patches) -> None:
    """Watch the class of the database."""
    storage = module.KickoffTaskOutputsSQLiteStorage
    expect(storage, "__init__", ["self", "db_path"])
    own: WeakSet[Any] = WeakSet()
    patches.replace(storage, "__init__", functools.partial(_observed_storage, own))
    for name in ("add", "update", "load", "delete_all"):
        patches.replace(storage, name, functools.partial(_unnamed, own))


def _observed_storage(own: WeakSet[Any], original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def __init__(self: Any, db_path: str | None = None) -> None:  # noqa: N807 — it is one
        scope = here()
        if db_path is not None or scope is None:
            original(self, db_path)
            return
        if scope.session.mode == "replay":
            db_path = str(Path(tempfile.mkdtemp()) / "latest_kickoff_task_outputs.db")
        own.add(self)
        with unnamed():
            original(self, db_path)

    return __init__


def _unnamed(own: WeakSet[Any], original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def kept(self: Any, *args: Any, **kwargs: Any) -> Any:
        with unnamed() if self in own else nullcontext():
            return original(self, *args, **kwargs)

    return kept
