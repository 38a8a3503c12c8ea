"""Brings a database to the newest schema, one migration and one transaction at a time; a new one in a single transaction."""

import time
from typing import TYPE_CHECKING

from spanreplay.store.errors import DamagedStoreError, NewerStoreError
from spanreplay.store.migrations import MIGRATIONS, SCHEMA_VERSION

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection


def too_new(what: str, found: int) -> NewerStoreError:
    """The error for a schema from the future."""
    return NewerStoreError(
        f"{what} has schema {found}, but this spanreplay knows schemas up to {SCHEMA_VERSION}. Install a newer spanreplay to read it."
    )


def schema_version(connection: "Connection") -> int:
    """Number of the last migration applied; 0 for an empty database.

    Raises:
        DamagedStoreError: this is a database of something else.
    """
    import duckdb

    try:
        ((found,),) = connection.execute("SELECT max(version) FROM migrations").fetchall()
    except (duckdb.CatalogException, duckdb.BinderException):
        rows = connection.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal AND NOT temporary").fetchall()
        if rows:
            tables = ", ".join(sorted(name for (name,) in rows))
            raise DamagedStoreError(f"expected a spanreplay database, found the tables {tables}. Use another --store.") from None
        return 0
    return int(found or 0)


def migrate(connection: "Connection", upto: int = SCHEMA_VERSION) -> int:
    """Applies what is missing.

    Args:
        connection: may write, and holds the store's lock.
        upto: the schema to stop at.

    Returns:
        How many migrations were applied.

    Raises:
        NewerStoreError: the database is ahead of this program.
        DamagedStoreError: it is a database of something else.
    """
    found = schema_version(connection)
    if found > SCHEMA_VERSION:
        raise too_new("the store", found)
    wanted = [migration for migration in MIGRATIONS if found < migration[0] <= upto]
    for together in [wanted] if found == 0 else [[migration] for migration in wanted]:
        connection.begin()
        try:
            connection.execute("CREATE TABLE IF NOT EXISTS migrations (version BIGINT, name VARCHAR, applied_ns BIGINT)")
            for version, name, statements in together:
                for statement in statements:
                    connection.execute(statement)
                connection.execute("INSERT INTO migrations VALUES ($1, $2, $3)", [version, name, time.time_ns()])
                if version == 1:
                    connection.execute("INSERT INTO meta VALUES ('created_ns', $1)", [str(time.time_ns())])
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
    return len(wanted)
