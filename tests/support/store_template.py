"""A new store's database as a copy of one that was made before, and no waiting for the disk: both take as long as many a test.

What is not on the disk is with the operating system: it is there for every other process, whichever is killed.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from spanreplay.store import database
from spanreplay.store.engines import Opened
from spanreplay.store.store import Store

made: Final[Callable[..., Opened]] = database._open_for_writing
"""What the product does: opens a database, an empty one where there is none."""
_UNSYNCED: Final = {"fsync_mode": "NONE"}


def copying(folder: Path) -> Callable[..., Opened]:
    """The same unsynced, but where there is none it is a copy of one that was made in ``folder`` when it was first needed."""
    template = folder / "runs.duckdb"

    def opened(path: Path, config: Any, **options: Any) -> Opened:
        if path != template and not path.exists():
            if not template.exists():
                with Store.open(folder, create=True) as store, store.reading():
                    pass
            try:
                shutil.copyfile(template, path)
            except OSError:  # a full disk, a closed folder: as if it had not been tried
                path.unlink(missing_ok=True)
        return made(path, config | _UNSYNCED, **options)

    return opened
