"""DuckDBs of this process that stores are opened in: kept, since making one takes ten times as long as opening a store in it.

Between two uses one has nothing open, neither a file nor a lock, and no more threads than it was made with. None lives through a fork:
threads do not, and a child would wait for them for ever.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

Config: TypeAlias = dict[str, str | bool | int | float | list[str]]
_SPILLED: Final = "temp_directory"
_MOST: Final = 4
"""That are kept: those used last, which are one for each kind of use."""
Use: TypeAlias = Literal["reading", "writing", "writing much"]
_Kind: TypeAlias = tuple[tuple[str, str], ...]
_idle: Final[list[tuple[_Kind, "Connection"]]] = []
"""Taken and given back whole, so that no thread sees it half done."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A database that is open. Whoever opened it closes it, or drops it where anything went wrong."""

    connection: "Connection"
    _engine: "Connection"
    _kind: _Kind

    @classmethod
    def open(cls, path: Path, config: Config, use: Use, options: str) -> "Opened":
        """Opens a database.

        Args:
            path: of the file.
            config: of DuckDB; ``temp_directory`` is set anew for each store, the rest is that of a DuckDB for as long as it lives.
            use: what for. Who writes changes settings of a DuckDB, and the next one who does finds them so.
            options: of ``ATTACH``.

        Raises:
            duckdb.Error: it cannot be opened.
        """
        kind: _Kind = (*sorted((key, str(value)) for key, value in config.items() if key != _SPILLED), ("use", use))
        engine = _engine(kind, config)
        try:
            engine.execute(f"ATTACH {_quoted(path)} AS store (TYPE duckdb, {options})")
            connection = engine.cursor()
            connection.execute("USE store; SET enable_progress_bar = false")  # a bar of its own after two seconds, terminal or not
        except BaseException:
            engine.close()
            raise
        return cls(connection, engine, kind)

    def close(self) -> None:
        """Closes the file, and keeps its DuckDB for the next one."""
        try:
            self.connection.close()
            self._engine.execute("DETACH DATABASE IF EXISTS store")  # whoever wrote it anew has done so
        except BaseException:
            self._engine.close()
            raise
        _idle.append((self._kind, self._engine))
        for one in _idle[:-_MOST]:
            if _taken(one):
                one[1].close()

    def drop(self) -> None:
        """Closes the file, and its DuckDB with it: what has gone wrong may have left anything behind."""
        self.connection.close()
        self._engine.close()


def _engine(kind: _Kind, config: Config) -> "Connection":
    """One that is idle, or a new one."""
    import duckdb

    for one in [*_idle]:
        if one[0] == kind and _taken(one):
            try:
                one[1].execute(f"SET {_SPILLED} = {_quoted(config[_SPILLED])}")
            except duckdb.Error:  # it has spilled to another place
                one[1].close()
            else:
                return one[1]
    return duckdb.connect(config=config)


def _taken(one: "tuple[_Kind, Connection]") -> bool:
    try:
        _idle.remove(one)
    except ValueError:  # another thread was first
        return False
    return True


def close_idle() -> None:
    """Closes those that nobody uses now."""
    for one in [*_idle]:
        if _taken(one):
            one[1].close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=close_idle)


def _quoted(text: object) -> str:
    return "'" + str(text).replace("'", "''") + "'"
