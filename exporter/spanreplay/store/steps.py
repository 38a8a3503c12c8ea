"""Loads what was recorded in steps: whoever waits for the database waits for one of them, however much there is to load."""

import time
from pathlib import Path
from typing import Final

from spanreplay.store import compaction
from spanreplay.store.compaction import CompactionReport
from spanreplay.store.database import Database
from spanreplay.store.turns import let_in

STEP_SECONDS: Final = 2.0
"""After which no batch is begun in the same step."""


def load(
    database: Database,
    folder: Path,
    *,
    much: bool = False,
    until: float | None = None,
    held_s: float | None = None,
    locked_s: float | None = None,
) -> CompactionReport:
    """Loads what the journals have that the database has not, each record exactly once.

    Args:
        database: of the store.
        folder: the store.
        much: see :meth:`~spanreplay.store.database.Database.writing`.
        until: begin no batch after this time of the monotonic clock.
        held_s: see :meth:`~spanreplay.store.database.Database.writing`.
        locked_s: see there.

    Raises:
        StoreError: which kind says why. What was loaded until then stays.
    """
    report = CompactionReport(left=compaction.pending(folder))
    while report.left:
        with database.writing(much=much, held_s=held_s, locked_s=locked_s) as connection:
            now = time.monotonic()
            if until is not None and now > until:
                break
            step_ends = now + STEP_SECONDS
            compaction.compact(connection, folder, until=step_ends if until is None else min(step_ends, until), report=report)
        if until is not None and time.monotonic() > until:
            break
        if report.left:
            let_in(folder, "write")
    return report
