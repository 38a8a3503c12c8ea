"""Content that nothing refers to any more, out of the database.

What counts as a reference is anything in a row that reads like a digest: kept for no reason is better than missed. Content that a process
which still writes has put into its journal is kept, too: it puts each only once, and may refer to it again.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spanreplay.store.compaction import pending
from spanreplay.store.journal_reader import read_journal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

_DIGEST: Final = "sha256:[0-9a-f]{64}"
_MENTIONED: Final = re.compile(_DIGEST)
_BLOBS: Final = "blobs"
_UNMENTIONED: Final = "WHERE digest NOT IN (SELECT digest FROM mentioned WHERE digest IS NOT NULL)"
_TEXTS: Final = """
    SELECT table_name, column_name FROM duckdb_columns()
    WHERE database_name = current_database() AND NOT internal AND data_type = 'VARCHAR' AND table_name <> 'blobs'
        AND table_name IN (SELECT table_name FROM duckdb_tables() WHERE NOT internal)
    ORDER BY ALL
"""
_ADD_INNER: Final = """
    INSERT INTO mentioned SELECT DISTINCT inner_digest FROM (
        SELECT unnest(regexp_extract_all(coalesce(parts, text), $1)) AS inner_digest
        FROM blobs WHERE digest IN (SELECT digest FROM mentioned) AND (parts IS NOT NULL OR media LIKE '%resource+json'))
    WHERE inner_digest IN (SELECT digest FROM blobs) AND inner_digest NOT IN (SELECT digest FROM mentioned)
    RETURNING digest
"""


def sweep(connection: "Connection", folder: Path) -> tuple[int, int]:
    """Deletes it, inside the caller's transaction.

    Args:
        connection: in a transaction, under the store's lock.
        folder: the store; its journals are read.

    Returns:
        How many contents, and how many bytes they had before they were compressed.
    """
    _mention(connection, folder)
    gone = connection.execute(f"DELETE FROM blobs {_UNMENTIONED} RETURNING bytes").fetchall()  # noqa: S608 - our own text
    connection.execute("DROP TABLE mentioned")
    return len(gone), sum(size or 0 for (size,) in gone)


def unreferred(connection: "Connection", folder: Path) -> tuple[int, int]:
    """How many contents :func:`sweep` would delete, and their bytes, as it counts them; the connection need not be one that writes."""
    _mention(connection, folder)
    ((count, size),) = connection.execute(f"SELECT count(*), coalesce(sum(bytes), 0) FROM blobs {_UNMENTIONED}").fetchall()  # noqa: S608 - our own text
    connection.execute("DROP TABLE mentioned")
    return count, int(size)


def _mention(connection: "Connection", folder: Path) -> None:
    """Gathers the digests of what is referred to in a table of this connection."""
    connection.execute("CREATE OR REPLACE TEMP TABLE mentioned (digest VARCHAR)")
    for table, column in connection.execute(_TEXTS).fetchall():
        found = f'SELECT DISTINCT unnest(regexp_extract_all("{column}", $1)) FROM "{table}" WHERE contains("{column}", $2)'  # noqa: S608 — our names
        connection.execute(f"INSERT INTO mentioned {found}", [_DIGEST, "sha256:"]).fetchall()
    _insert(connection, _written_by_the_living(folder))
    _add_inner(connection)


def _written_by_the_living(folder: Path) -> Iterable[str]:
    for path in pending(folder):
        try:
            with read_journal(path) as reader:
                for _, record in reader:
                    digest = record.get("d")
                    if isinstance(digest, str):
                        yield digest
                    yield from _MENTIONED.findall(str(record.get("parts", "")))
        except OSError:
            continue  # gone meanwhile: its writer has ended


def _insert(connection: "Connection", digests: Iterable[str]) -> None:
    connection.execute("INSERT INTO mentioned SELECT unnest($1::VARCHAR[])", [[*{*digests}]]).fetchall()


def _add_inner(connection: "Connection") -> None:
    """What kept content refers to in turn: a resource to long attributes, a text in pieces to its pieces."""
    while connection.execute(_ADD_INNER, [_DIGEST]).fetchall():
        pass
