"""What an error of DuckDB means to who uses a store."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from spanreplay.store.errors import (
    DamagedStoreError,
    FullStoreError,
    LockedStoreError,
    MissingStoreError,
    NewerStoreError,
    ReadOnlyStoreError,
    StoreError,
)


def _locked_error(path: Path, message: str) -> StoreError:
    return LockedStoreError(
        f"wanted to open {path}, but another process holds it: {message}. Close what has it open, such as a duckdb shell."
    )


def _damaged_error(path: Path, message: str) -> StoreError:
    return DamagedStoreError(
        f"{path} is not a database that can be read: {message}. Move it away to go on with an empty one; journals not yet loaded are kept."
    )


_MEANINGS: Final[tuple[tuple[str, Callable[[Path, str], StoreError]], ...]] = (
    ("Could not set lock", _locked_error),
    ("different configuration than existing connections", _locked_error),
    ("Unique file handle conflict", _locked_error),
    ("database does not exist", lambda path, _: MissingStoreError(f"there is no database at {path}. Record or import something first.")),
    (
        "database file with version number",
        lambda path, message: NewerStoreError(f"{path} was written by another DuckDB: {message}. Install a newer duckdb."),
    ),
    (
        "Permission denied",
        lambda path, message: ReadOnlyStoreError(f"cannot write {path}: {message}. Make it writable, or use another --store."),
    ),
    ("Read-only file system", lambda path, message: ReadOnlyStoreError(f"cannot write {path}: {message}. Use another --store.")),
    ("read-only mode", lambda path, message: ReadOnlyStoreError(f"{path} is open for reading only: {message}.")),
    ("No space left", lambda path, message: FullStoreError(f"cannot write {path}: {message}. Free some space; what was stored is kept.")),
    ("File too large", lambda path, message: FullStoreError(f"cannot write {path}: {message}. Free some space; what was stored is kept.")),
    ("not a valid DuckDB database", _damaged_error),
    ("Could not read enough bytes", _damaged_error),
    ("orrupt", _damaged_error),
    ("checksum", _damaged_error),
    ("Serialization Error", _damaged_error),
)


def named(error: Exception, path: Path) -> StoreError:
    """The store error that a DuckDB error amounts to."""
    message = " ".join(str(error).split())
    for sign, make in _MEANINGS:
        if sign in message:
            return make(path, message)
    return StoreError(f"the database {path} refused: {message}")
