"""How large the groups of rows are that DuckDB compresses, skips and puts together.

What a look-up reads of a table before anything else grows with the number of its groups, so they are large, and small ones are put
together by and by. A group that is written has to fit into memory, several times over: where there is much content in few rows, it has
fewer of them. DuckDB takes one size for all tables of a file, each time that it is opened.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

LARGE: Final = 16_384
"""Rows of a group. With twice as many an import of 500 MB whose runs lie between each other takes 617 MB of memory, not 479, and at
DuckDB's own 122,880 what is written after a large import would take seconds to be put together with it."""
SMALL: Final = 8_192
"""The same where large ones would not fit, and in a file that is too small for it to matter."""
BLOCK: Final = 65_536
"""Bytes that the file of a new store grows by: at DuckDB's own 262,144 a few runs take megabytes. That of a file cannot be changed."""
_BYTES: Final = 128_000_000
"""That a group may hold."""
_LONG: Final = _BYTES // LARGE // 2
"""Bytes of content up to which no number of rows in a group comes near that."""
_SMALL_FILE: Final = 16_000_000
"""A database of so many bytes holds no such group."""


def at_first(path: Path, *, much: bool) -> int:
    """The rows of a group to open a file with, before anything is known of what is in it.

    Args:
        path: of the file, which may be one that is to be made.
        much: a lot is to be written.
    """
    return LARGE if much or (path.exists() and path.stat().st_size >= _SMALL_FILE) else SMALL


def fitting(connection: "Connection", path: Path) -> int:
    """The rows of a group that fits into memory; 0 where not even small groups would, so that none are to be put together.

    Args:
        connection: to a database in the newest schema.
        path: of its file.
    """
    if path.stat().st_size < _SMALL_FILE:
        return SMALL
    small, large = connection.execute(_MOST, [SMALL, _LONG, LARGE // SMALL]).fetchall()[0]
    return LARGE if (large or 0) < _BYTES else SMALL if small < _BYTES else 0


_MOST: Final = """
    SELECT max(most), max(held) FROM (
        SELECT max(held) AS most, sum(held) AS held FROM (
            SELECT 1 AS number, rowid // $1 AS place, sum(bytes) AS held FROM blobs WHERE bytes > $2 AND parts IS NULL GROUP BY place
            UNION ALL SELECT 2, rowid // $1 AS place, sum(bytes) FROM steps WHERE bytes > $2 GROUP BY place)
        GROUP BY number, place // $3)
"""
"""About how many bytes of content there are in the group of rows that holds most of it, small or large, if all groups were full.

What is short is left out: DuckDB finds what is long in a tenth of the time that it reads all of a column.
"""
