"""Holds: runs and sessions that nobody may prune until the hold is released. Who placed and released each stays on record."""

import getpass
import secrets
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One hold, on a run or on a session. Times are nanoseconds since the epoch."""

    hold_id: str
    run_id: str | None
    session_id: str | None
    reason: str
    placed_ns: int
    placed_by: str
    released_ns: int | None = None
    """``None`` while it is in force."""
    released_by: str | None = None
    release_reason: str | None = None


def whoami() -> str:
    """User and machine, as they call themselves."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


def place(connection: "Connection", *, run_id: str | None, session_id: str | None, reason: str) -> Hold:
    """Puts a hold on a run or a session, inside the caller's transaction."""
    hold = Hold(
        hold_id=secrets.token_hex(6), run_id=run_id, session_id=session_id, reason=reason, placed_ns=time.time_ns(), placed_by=whoami()
    )
    connection.execute(
        "INSERT INTO holds (hold_id, run_id, session_id, reason, placed_ns, placed_by) VALUES ($1, $2, $3, $4, $5, $6)",
        [hold.hold_id, hold.run_id, hold.session_id, hold.reason, hold.placed_ns, hold.placed_by],
    ).fetchall()
    return hold


def release(connection: "Connection", hold_id: str, reason: str) -> int:
    """Takes a hold off, inside the caller's transaction; how many were in force and had this id."""
    found = connection.execute(
        "UPDATE holds SET released_ns = $2, released_by = $3, release_reason = $4"
        " WHERE hold_id = $1 AND released_ns IS NULL RETURNING hold_id",
        [hold_id, time.time_ns(), whoami(), reason],
    ).fetchall()
    return len(found)


def find(connection: "Connection", *, released: bool = False) -> list[Hold]:
    """The holds in force, or with ``released`` all that ever were, oldest first."""
    rows = connection.execute(
        "SELECT hold_id, run_id, session_id, reason, placed_ns, placed_by, released_ns, released_by, release_reason FROM holds"
        " WHERE $1 OR released_ns IS NULL ORDER BY placed_ns, hold_id",
        [released],
    ).fetchall()
    names = tuple(Hold.__dataclass_fields__)
    return [Hold(**dict(zip(names, row, strict=True))) for row in rows]
