"""Rows of a Parquet file that somebody else wrote, read by DuckDB with nothing but that file within its reach."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from spanreplay.store.confined import confined
from spanreplay.store.errors import StoreError

BATCH: Final = 100


class ParquetError(StoreError):
    """A file is no Parquet, or damaged. The text is DuckDB's own."""


def rows(path: Path, *, batch: int = BATCH) -> Iterator[dict[str, Any]]:
    """The rows, in the order of the file.

    Lists and structs are lists and dictionaries, a time is its nanoseconds since the epoch (without a zone it is UTC), an empty field is
    left out.

    Args:
        path: the file.
        batch: rows held at a time.

    Raises:
        ParquetError: The file cannot be read, from the first row or from one further on.
    """
    duckdb = importlib.import_module("duckdb")
    file = str(path.resolve())
    try:
        with confined([file]) as connection:
            relation = connection.read_parquet(file)
            names = list(relation.columns)
            picked = [_picked(duckdb, name, str(kind)) for name, kind in zip(names, relation.types, strict=True)]
            # A relation holds all its rows at once; a statement does not.
            cursor = connection.execute(relation.select(*picked).sql_query())
            while found := cursor.fetchmany(batch):
                for row in found:
                    yield {name: value for name, value in zip(names, row, strict=True) if value is not None}
    except duckdb.Error as error:
        raise ParquetError(str(error).replace(file, path.name).splitlines()[0][:300]) from None
    except (RuntimeError, ValueError) as error:  # DuckDB's binding to Python fails so at a column whose name is no UTF-8
        raise ParquetError(f"its columns cannot be told ({type(error).__name__})") from None


def _picked(duckdb: Any, name: str, kind: str) -> Any:
    # Python has no times to the nanosecond.
    column = duckdb.ColumnExpression(name)
    return duckdb.FunctionExpression("epoch_ns", column) if kind.startswith("TIMESTAMP") else column
