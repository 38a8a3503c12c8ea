"""A DuckDB that reaches nothing but the files it is to read, which somebody else may have written."""

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

_CONFIG: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "memory_limit": "512MB",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "threads": "1",
}


@contextmanager
def confined(files: Sequence[str], *, filesystem: Any = None) -> Iterator[Any]:
    """A connection to an empty database in memory, closed at the end.

    Args:
        files: all that it can read, as it is to name them.
        filesystem: of fsspec, where they lie in an object store.

    Raises:
        duckdb.Error: it cannot be set up so.
    """
    connection = importlib.import_module("duckdb").connect(":memory:", config=_CONFIG)
    try:
        if filesystem is not None:
            connection.register_filesystem(filesystem)
        quoted = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
        connection.execute(f"SET allowed_paths = [{quoted}]")  # a setting takes no parameter
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection
    finally:
        connection.close()
