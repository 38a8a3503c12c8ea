"""Which files of the working folder a command has changed: ``{path: {"change", "sha256", "size", "text"}}``.

Found by size and time of change, so that nothing is read before a command and little after it. ``text`` is there where a file is small and
is one; a deleted file has its ``change`` only. Bounded: a folder with more than :data:`MOST` files is not looked at, and neither are
folders of tools, such as ``.git``.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

MOST: Final = 2000
_WHOLE: Final = 2**20
"""Bytes of a file that is read."""
_SHOWN: Final = 64 * 2**10
"""Bytes of a file whose text is kept."""
_CHANGED: Final = 100
"""Files told of one command."""
_SKIPPED: Final = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".spanreplay",
        ".venv",
        "venv",
        "node_modules",
        "__pycache__",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        ".tox",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The files of a folder, as they were."""

    folder: str
    files: dict[str, tuple[int, int]]
    """Relative path to time of change in nanoseconds, and size."""


def snapshot() -> Snapshot | None:
    """The files of the working folder; ``None`` where they are too many, or cannot be read."""
    try:
        folder = str(Path.cwd())
        files: dict[str, tuple[int, int]] = {}
        for path, stat in _walk(folder):
            if len(files) >= MOST:
                return None
            files[path[len(folder) + 1 :]] = (stat.st_mtime_ns, stat.st_size)
        return Snapshot(folder=folder, files=files)
    except OSError:
        return None


def changes(before: Snapshot) -> dict[str, dict[str, Any]]:
    """What is different now, by path, at most a hundred of them."""
    found: dict[str, dict[str, Any]] = {}
    left = dict(before.files)
    try:
        for path, stat in _walk(before.folder):
            name = path[len(before.folder) + 1 :]
            was = left.pop(name, None)
            if was != (stat.st_mtime_ns, stat.st_size):
                found[name] = {"change": "created" if was is None else "modified", "size": stat.st_size, **_content(path, stat.st_size)}
            if len(found) >= _CHANGED:
                return found
    except OSError:
        return found
    for name in list(left)[: _CHANGED - len(found)]:
        found[name] = {"change": "deleted"}
    return dict(sorted(found.items()))


def _walk(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    waiting = [folder]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _SKIPPED:
                        waiting.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield entry.path, entry.stat(follow_symlinks=False)


def _content(path: str, size: int) -> dict[str, Any]:
    if size > _WHOLE:
        return {}
    try:
        data = Path(path).read_bytes()
    except OSError:
        return {}
    made: dict[str, Any] = {"sha256": sha256(data).hexdigest()}
    if len(data) <= _SHOWN and b"\0" not in data:
        try:
            made["text"] = data.decode()
        except UnicodeDecodeError:
            return made
    return made
