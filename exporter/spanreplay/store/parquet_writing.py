"""Rows to a Parquet file, written by DuckDB with nothing but two files within its reach."""

import importlib
import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from spanreplay.store.parquet import ParquetError

TYPES: Final = frozenset({"VARCHAR", "BIGINT", "BOOLEAN"})
"""Types that a column may have."""
LONGEST: Final = 1 << 30
"""Bytes that one row may have as JSON."""


def write_parquet(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str], *, row_group: int | None = None) -> bytes:
    """The bytes of a Parquet file, compressed with zstd, the rows in the order given.

    Args:
        rows: values by column; a column that a row lacks is empty there.
        columns: name, a plain word, and type, one of :data:`TYPES`, in order.
        row_group: rows that are skipped together, where a question tells that none of them is meant; at least 2048.

    Raises:
        ValueError: A column has another name or type.
        ParquetError: A row cannot be written.
    """
    for name, kind in columns.items():
        if not name.isidentifier() or kind not in TYPES:
            raise ValueError(f"a column that is a plain word, of type {', '.join(sorted(TYPES))}, was wanted, found {name!r} {kind!r}")
    duckdb = importlib.import_module("duckdb")
    with tempfile.TemporaryDirectory(prefix="spanreplay-") as folder:
        source, made = Path(folder, "rows.jsonl"), Path(folder, "rows.parquet")
        with source.open("w", encoding="ascii") as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=True) + "\n")
        try:
            connection = duckdb.connect(":memory:", config={"threads": "1", "temp_directory": "", "autoload_known_extensions": "false"})
            try:
                quoted = ", ".join("'" + str(path).replace("'", "''") + "'" for path in (source, made))
                connection.execute(f"SET allowed_paths = [{quoted}]")  # a setting takes no parameter, and only now
                connection.execute("SET enable_external_access = false")
                connection.execute("SET preserve_insertion_order = true")
                query = "SELECT * FROM read_json($1, format = 'newline_delimited', columns = $2, maximum_object_size = $3)"
                connection.sql(query, params=[str(source), dict(columns), LONGEST]).write_parquet(
                    str(made), compression="zstd", row_group_size=row_group
                )
            finally:
                connection.close()
            return made.read_bytes()
        except duckdb.Error as error:
            raise ParquetError(str(error).splitlines()[0][:300]) from None
