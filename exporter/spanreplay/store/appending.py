"""Rows into a table, the fastest way that DuckDB has."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection


_Row = tuple[Any, ...]


def clean(row: _Row) -> _Row:
    """A row without lone surrogates, which no column takes."""
    return tuple(value.encode("utf-8", "replace").decode() if isinstance(value, str) and not value.isascii() else value for value in row)


def append(
    connection: "Connection", table: str, rows: Sequence[_Row], columns: Sequence[str], cleaned: Callable[[_Row], _Row] = clean
) -> None:
    """Adds rows to a table, inside the caller's transaction.

    Args:
        connection: in a transaction.
        table: its name.
        rows: values in the order of ``columns``.
        columns: their names.
        cleaned: makes rows that can be added where these cannot: our own writers keep lone surrogates out, others may not.
    """
    if not rows:
        return
    import duckdb

    appender = connection.appender(table, columns=list(columns))
    try:
        appender.append_rows(rows)
    except duckdb.InvalidInputException:
        appender.clear()
        appender.append_rows([cleaned(row) for row in rows])
    appender.flush()
