"""Questions in SQL, asked of the store but unable to change it or to reach anything else."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spanreplay.store.errors import QueryError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The answer to a query."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]
    """Values as Python has them: ``None``, bool, int, float, str, bytes, Decimal, datetime, list, dict."""


def query(connection: "Connection", sql: str) -> QueryResult:
    """Runs one statement that reads.

    Args:
        connection: read-only, with no access to files or network, its configuration locked.
        sql: a SELECT, FROM, WITH, VALUES, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN.

    Raises:
        QueryError: anything else, more than one statement, or what DuckDB found wrong with it.
    """
    import duckdb

    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise QueryError(f"the SQL cannot be read: {error}") from error
    if len(statements) != 1:
        raise QueryError(f"expected one SQL statement, found {len(statements)}.")
    kind = statements[0].type
    if kind not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        raise QueryError(f"expected a statement that only reads, such as SELECT, found {kind.name}. The store is changed by commands only.")
    try:
        result = connection.execute(statements[0])
        columns = tuple(column[0] for column in result.description or ())
        return QueryResult(columns, iter(result.fetchall()))
    except duckdb.Error as error:
        raise QueryError(str(error)) from error
