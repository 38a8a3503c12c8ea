"""The state from which a command starts, ``record --state PATH``: files, folders and SQLite databases, kept by content with its run.

As JSON it is ``spanreplay.run.state``::

    {"schema": 1, "paths": [{"path": absolute, "asked": as given, "kind": "file" | "folder" | "absent", "folders": [name],
      "files": [{"name": below the path, "" for itself, "mode": int, "size": bytes, "digest": "sha256:…", "content": text, "encoding"}],
      "left_out": [{"name", "why"}], "redacted": int}]}

``encoding`` is ``utf-8``, or ``base64`` for what is no UTF-8. A database is kept as SQLite's own backup makes it, with what its log
holds. Secrets are taken out of texts; a binary file with what looks like one is left out.
"""

import base64
import os
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from spanreplay.content.redaction import Redactor

TOTAL_LIMIT: Final = 64 * 2**20
"""Bytes that are kept of all paths together."""
FILES_LIMIT: Final = 5000
_NAMED: Final = 100
_SQLITE: Final = b"SQLite format 3\0"
_BESIDE: Final = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database; the backup has it."""
_LOCKED: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_PATIENCE_S: Final = 5.0
"""How long a database may be locked by somebody who writes; the backup itself would wait for ever."""


@dataclass(slots=True)
class _Room:
    size: int = field(default_factory=lambda: TOTAL_LIMIT)
    files: int = field(default_factory=lambda: FILES_LIMIT)


@dataclass(slots=True)
class _Kept:
    """One path."""

    path: Path
    asked: str
    kind: str = "absent"
    folders: list[str] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)
    redacted: int = 0

    def leave_out(self, name: str, why: str) -> None:
        if len(self.left_out) < _NAMED:
            self.left_out.append({"name": name, "why": why})

    def to_json(self) -> dict[str, Any]:
        return {
            "path": str(self.path),
            "asked": self.asked,
            "kind": self.kind,
            "folders": self.folders,
            "files": self.files,
            "left_out": self.left_out,
            "redacted": self.redacted,
        }


def state_of(paths: Sequence[str], folder: Path, redactor: Redactor) -> dict[str, Any]:
    """Take the state that lies at some paths. Raises nothing: what cannot be read is left out, and named.

    Args:
        paths: as given, relative to ``folder``.
        folder: where the command is started.
        redactor: takes secrets out.
    """
    room = _Room()
    return {"schema": 1, "paths": [_taken(_Kept(path=_absolute(folder, asked), asked=asked), room, redactor).to_json() for asked in paths]}


def left_out(state: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What a state lacks: path and reason."""
    for kept in state["paths"]:
        for lacking in kept["left_out"]:
            yield str(Path(kept["asked"], lacking["name"])), lacking["why"]


def _absolute(folder: Path, asked: str) -> Path:
    return Path(os.path.realpath(folder / asked))


def _taken(kept: _Kept, room: _Room, redactor: Redactor) -> _Kept:
    path = kept.path
    if path.is_dir():
        kept.kind = "folder"
        for place, folders, files in os.walk(path):
            below = Path(place).relative_to(path)
            folders.sort()
            kept.folders += [str(below / name) for name in folders if not (Path(place) / name).is_symlink()]
            databases = {name for name in files if _is_database(Path(place) / name)}
            for name in sorted({*files, *(name for name in folders if (Path(place) / name).is_symlink())}):
                if not any(name == database + ending for database in databases for ending in _BESIDE):
                    _take(kept, str(below / name), Path(place) / name, room, redactor)
    elif os.path.lexists(path):
        kept.kind = "file"
        _take(kept, "", path, room, redactor)
    return kept


def _take(kept: _Kept, name: str, path: Path, room: _Room, redactor: Redactor) -> None:
    try:
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode):
            kept.leave_out(name, "a symbolic link" if stat.S_ISLNK(about.st_mode) else "no file")
            return
        if room.files <= 0:
            kept.leave_out(name, f"there are more than {FILES_LIMIT} files")
            return
        if about.st_size > room.size:
            kept.leave_out(name, f"its {about.st_size} bytes do not fit into the {TOTAL_LIMIT} that are kept")
            return
        data = _backup(path) if _is_database(path) else path.read_bytes()
    except (OSError, sqlite3.Error) as error:
        kept.leave_out(name, f"it cannot be read: {error}")
        return
    try:
        text, encoding = data.decode(), "utf-8"
    except UnicodeDecodeError:
        text, encoding = data.decode("latin-1"), "base64"
    clean, secrets = redactor.text(text)
    if secrets and encoding == "base64":
        kept.leave_out(name, "it holds what looks like a secret, and is no text that one could be taken out of")
        return
    kept.redacted += secrets
    room.size -= len(data)
    room.files -= 1
    kept.files.append(
        {
            "name": name,
            "mode": stat.S_IMODE(about.st_mode),
            "size": len(data),
            "digest": f"sha256:{sha256(data).hexdigest()}",
            "encoding": encoding,
            "content": clean if encoding == "utf-8" else base64.b64encode(data).decode(),
        }
    )


def _is_database(path: Path) -> bool:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def _backup(path: Path) -> bytes:
    """The whole content of a database, in one file. Nothing of the database itself is changed.

    Raises:
        sqlite3.Error: it is damaged, or locked for too long.
        OSError: there is no room for the copy.
    """
    until = time.monotonic() + _PATIENCE_S

    def look(status: int, _left: int, _total: int) -> None:
        if status in _LOCKED and time.monotonic() >= until:
            raise sqlite3.OperationalError(f"another program has had it locked for {_PATIENCE_S:g} s; record when that has closed it")

    with tempfile.TemporaryDirectory(prefix="spanreplay-state-") as scratch:
        copy = Path(scratch) / "copy"
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=0)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target, progress=look)
        return copy.read_bytes()
