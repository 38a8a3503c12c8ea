"""Rows into a table, the fastest way that DuckDB has."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection


def append(connection: "Connection", table: str, rows: Sequence[tuple[Any, ...]], columns: Sequence[str]) -> None:
    """Adds rows to a table, inside the caller's transaction."""
    if not rows:
        return
    import duckdb

    appender = connection.appender(table, columns=list(columns))
    try:
        appender.append_rows(rows)
    except duckdb.InvalidInputException:
        # Our own writer keeps lone surrogates out of columns; whoever wrote these gets them replaced.
        appender.clear()
        appender.append_rows([tuple(_clean(value) for value in row) for row in rows])
    appender.flush()


def _clean(value: Any) -> Any:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
