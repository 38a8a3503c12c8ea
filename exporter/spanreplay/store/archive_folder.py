"""A folder of Parquet files, here or in an object store: written file by file, asked with DuckDB, which reads only what a question needs.

``s3://bucket/runs``, ``gcs://…``, ``memory://…`` and the like go through fsspec, and need it and its package for that store.
"""

import contextlib
import importlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from spanreplay.store.confined import confined
from spanreplay.store.errors import StoreError

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_NOT_OURS: Final = frozenset({"http", "https", "grpc", "grpcs"})
"""Of back ends that are asked, not of folders."""
_BATCH: Final = 100


class ArchiveError(StoreError):
    """An archive cannot be read or written. The text says which, and why."""


def is_url(location: str) -> bool:
    """Whether this names a folder that fsspec is asked for."""
    found = _URL.match(location)
    return found is not None and found[1].lower() not in _NOT_OURS and "+" not in found[1]


class ArchiveFolder:
    """One folder.

    Args:
        location: a path, or a URL that fsspec knows.

    Raises:
        ArchiveError: it is a URL, and what reads it is not installed.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        self._remote: Any = None
        if not is_url(location):
            self._root = os.path.abspath(location)  # noqa: PTH100 — resolve() would look for links
            return
        try:
            core = importlib.import_module("fsspec.core")
            self._remote, root = core.url_to_fs(location)
        except ImportError as error:
            raise ArchiveError(
                f"{location}: {error}. To read and write there: pip install 'spanreplay[archive]', and its package"
            ) from error
        except (ValueError, OSError) as error:
            raise ArchiveError(f"{location} is no folder that can be reached: {error}") from error
        self._root = str(root).rstrip("/")

    def read(self, name: str) -> bytes | None:
        """A small file whole; ``None`` where there is none."""
        try:
            if self._remote is None:
                return Path(self._root, name).read_bytes()
            data: bytes = self._remote.cat_file(f"{self._root}/{name}")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except Exception as error:
            raise self._failed("read", name, error) from error
        return data

    def write(self, name: str, data: bytes) -> None:
        """Writes a file; it is there whole, or not at all.

        Raises:
            ArchiveError: it cannot be written.
        """
        try:
            if self._remote is None:
                self._write_here(Path(self._root, name), data)
            else:
                target = f"{self._root}/{name}"
                self._remote.makedirs(target.rpartition("/")[0], exist_ok=True)
                self._remote.pipe_file(target, data)
        except Exception as error:
            raise self._failed("written", name, error) from error

    def _write_here(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with part.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise

    def names(self, below: str) -> list[str]:
        """The Parquet files below a folder of it, sorted, each relative to the whole."""
        try:
            if self._remote is None:
                found = [str(path.relative_to(self._root)) for path in Path(self._root, below).rglob("*.parquet") if path.name[0] != "."]
            else:
                found = [
                    str(path)[len(self._root) :].lstrip("/")
                    for path in self._remote.find(f"{self._root}/{below}")
                    if str(path).endswith(".parquet")
                ]
        except FileNotFoundError:
            return []
        except Exception as error:
            raise self._failed("listed", below, error) from error
        return sorted(found)

    def ask(self, sql: str, names: Sequence[str], parameters: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Rows of some of its files, read as they are taken.

        Args:
            sql: one statement of ours; ``$1`` is the list of files, ``$2`` and so on the parameters.
            names: files, as :meth:`names` gives them.
            parameters: values.

        Raises:
            ArchiveError: a file cannot be read, or lacks a column.
        """
        duckdb = importlib.import_module("duckdb")
        files = [self._place(name) for name in names]
        try:
            with confined(files, filesystem=self._remote) as connection:
                cursor = connection.execute(sql, [files, *parameters])
                while rows := cursor.fetchmany(_BATCH):
                    yield from rows
        except duckdb.Error as error:
            gone = [name for name in names if not self._is_there(name)]
            if gone:
                raise ArchiveError(f"{self.location} cannot be read: its file {gone[0]} is not there") from None
            raise ArchiveError(f"{self.location} cannot be read: {str(error).splitlines()[0][:300]}") from None
        except (OSError, RuntimeError, ValueError) as error:  # of fsspec, and of DuckDB's binding to Python
            raise ArchiveError(f"{self.location} cannot be read: {error}") from error

    def _is_there(self, name: str) -> bool:
        try:
            return Path(self._root, name).exists() if self._remote is None else bool(self._remote.exists(f"{self._root}/{name}"))
        except Exception:  # noqa: BLE001 — what DuckDB said is worth more
            return True

    def _place(self, name: str) -> str:
        if self._remote is None:
            return os.path.join(self._root, name)  # noqa: PTH118
        protocol = self._remote.protocol
        scheme = protocol if isinstance(protocol, str) else protocol[0]
        return f"{scheme}://{self._root}/{name}"

    def _failed(self, done: str, name: str, error: Exception) -> ArchiveError:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return ArchiveError(f"{self.location}: {name} cannot be {done}: {reason}")
