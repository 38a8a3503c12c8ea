"""Questions in SQL, asked of the store but unable to change it or to reach anything else."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spanreplay.store.errors import QueryError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection
    from duckdb import Statement

_EXPLAIN: Final = re.compile(r"\s*EXPLAIN\b(?:\s+ANALYZE\b)?(?:\s*\([^()]*\))?", re.IGNORECASE)


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
        sql: a SELECT, FROM, WITH, VALUES, DESCRIBE, SHOW, SUMMARIZE, or an EXPLAIN of one.

    Raises:
        QueryError: anything else, more than one statement, or what DuckDB found wrong with it.
    """
    import duckdb

    statement = _that_reads(connection, sql)
    try:
        result = connection.execute(statement)
        columns = tuple(column[0] for column in result.description or ())
        return QueryResult(columns, iter(result.fetchall()))
    except (duckdb.Error, RuntimeError, ValueError) as error:  # the latter two for values that Python has none for
        raise QueryError(str(error)) from error


def write_answer(connection: "Connection", sql: str, file: Path) -> None:
    """The answer to such a statement as a Parquet file, compressed with zstd, with the types that DuckDB gave its columns.

    Args:
        connection: as for :func:`query`, and with ``file`` within its reach.
        sql: as for :func:`query`.
        file: is written; removed where that fails.

    Raises:
        QueryError: as :func:`query`, or the answer is none that Parquet holds.
    """
    import duckdb

    _that_reads(connection, sql)
    try:
        answer = connection.sql(sql)
        assert answer is not None  # noqa: S101 — of a statement that reads
        answer.write_parquet(str(file), compression="zstd")
    except (duckdb.Error, RuntimeError, ValueError) as error:
        file.unlink(missing_ok=True)
        raise QueryError(str(error)) from error


def _that_reads(connection: "Connection", sql: str) -> "Statement":
    statement, kind = _statement(connection, sql)
    if kind == "EXPLAIN":
        # EXPLAIN ANALYZE runs what it explains: a COPY would write to the one path that is open to DuckDB, the database's own.
        explained = _EXPLAIN.match(sql)
        kind = _statement(connection, sql[explained.end() :])[1] if explained else "EXPLAIN of something else"
    if kind == "MULTI":
        raise QueryError("a PIVOT names its columns here: ON outcome IN ('ok', 'error'). Without them DuckDB creates a type first.")
    if kind != "SELECT":
        raise QueryError(f"expected a statement that only reads, such as SELECT, found {kind}. The store is changed by commands only.")
    return statement


def _statement(connection: "Connection", sql: str) -> "tuple[Statement, str]":
    """The one statement of a text, and its kind as DuckDB calls it."""
    import duckdb

    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise QueryError(f"the SQL cannot be read: {error}") from error
    if len(statements) != 1:
        raise QueryError(f"expected one SQL statement, found {len(statements)}.")
    try:
        return statements[0], statements[0].type.name
    except ValueError:  # DuckDB has more kinds than its binding to Python has names
        return statements[0], "a statement of another kind"
