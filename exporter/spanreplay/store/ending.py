"""What a process does for its store when it ends: a large journal is loaded, but not for longer than it may take."""

import logging
import time
from pathlib import Path
from typing import Final

from spanreplay.store import compaction, steps
from spanreplay.store.database import Database
from spanreplay.store.errors import StoreError

LARGE_BYTES: Final = 16_000_000
"""Below it the next command loads a journal in no time, and the process need not import a database for it."""
_log: Final = logging.getLogger("spanreplay.journal")


def compact_at_end(store: Path, seconds: float) -> None:
    """Loads the journals of a store if there is much to load; what is not loaded in time is left to the next command. Raises nothing.

    Args:
        store: the folder.
        seconds: how long this may take; 0 for not at all.
    """
    until = time.monotonic() + seconds
    try:
        if seconds > 0 and compaction.size_of(compaction.pending(store)) >= LARGE_BYTES:
            steps.load(Database(store, wait_s=seconds), store, much=True, until=until)
    except (StoreError, OSError, ImportError) as error:
        _log.info("the journal of this process was not loaded at its end, the next command will do that: %s", error)
