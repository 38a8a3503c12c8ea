"""Space back from a database out of which something was deleted: DuckDB reuses it, but a file never shrinks, so it is written anew.

The new file is written beside the old one and takes its place in one step, under the store's lock; a kill leaves one or the other.
"""

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spanreplay.store.errors import StoreError
from spanreplay.store.folder import DATABASE
from spanreplay.store.groups import BLOCK, SMALL, fitting

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

_FRESH: Final = f"{DATABASE}.fresh"


def reclaim(connection: "Connection", folder: Path) -> None:
    """Writes the database anew; it is not attached to ``connection`` any more then.

    Args:
        connection: has the database attached as ``store``, and no transaction open; nobody else writes to it.
        folder: the store.

    Raises:
        StoreError: something still waits in the log of the old one, so that it was left as it is.
        duckdb.Error: the new one cannot be written, for want of space as a rule; the old one is as it was.
    """
    path, fresh = folder / DATABASE, folder / _FRESH
    clear(folder)
    quoted = str(fresh).replace("'", "''")
    rows = fitting(connection, path) or SMALL
    try:
        connection.execute("CHECKPOINT store")
        connection.execute(f"ATTACH '{quoted}' AS fresh (ROW_GROUP_SIZE {rows}, BLOCK_SIZE {BLOCK})")
        connection.execute("COPY FROM DATABASE store TO fresh")
        connection.execute("CHECKPOINT fresh")
        connection.execute("USE memory")
        connection.execute("DETACH fresh")
        connection.execute("DETACH store")
        _check_log(path.with_name(f"{DATABASE}.wal"))
        fresh.replace(path)
    except BaseException:
        clear(folder)
        raise
    _sync(folder)


def _check_log(log: Path) -> None:
    """A log of the old file that is not empty would be applied to the new one."""
    if log.exists() and log.stat().st_size:
        raise StoreError(f"space was not reclaimed: {log} is not empty. Run the command again.")


def clear(folder: Path) -> None:
    """Removes what somebody who was killed has left half written."""
    for file in (folder / _FRESH, folder / f"{_FRESH}.wal"):
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
