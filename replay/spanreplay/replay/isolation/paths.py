"""Which paths a replay may write to.

Everything is decided on the path with symbolic links followed, so a link in scratch that points outside is outside. Nothing here
opens, creates or touches a file: only ``lstat`` and ``readlink`` are used, which raise no audit event.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_DEVICES: Final = frozenset({"/dev/null", "/dev/tty"})
_STANDARD_STREAMS: Final = frozenset({1, 2})
_JOURNALS: Final = ("-journal", "-wal", "-shm")
"""What SQLite writes beside a database (https://sqlite.org/tempfiles.html)."""
_DESCRIPTOR: Final = re.compile(r"/proc/(?:\d+|self|thread-self)(?:/task/\d+)?/fd/(\d+)|/dev/fd/(\d+)")


class Territory:
    """Scratch, the paths of ``--allow-write`` with the journals of databases, the few devices that are no file at all, and restored state.

    Around a file of the state, whatever has its name in its own may be written: journals of databases, locks, the new version of a file
    that then replaces it.
    """

    def __init__(self, scratch: Path | None, allow_write: Sequence[Path], state: Sequence[Path] = ()) -> None:
        self._state: Final = tuple(os.path.split(path) for path in state)
        allowed = [os.path.realpath(path) for path in allow_write]
        self._scratch: Final = None if scratch is None else os.path.realpath(scratch)
        self._roots: Final = (*allowed,) if self._scratch is None else (self._scratch, *allowed)
        self._journals: Final = frozenset(path + end for path in allowed if not os.path.isdir(path) for end in _JOURNALS)  # noqa: PTH112

    def outside(self, path: object, *, dir_fd: object = -1, follow: bool = True) -> str | None:
        """Tell whether a write to ``path`` would reach outside.

        Args:
            path: ``str``, ``bytes``, ``os.PathLike`` or a descriptor, as an audit event carries it.
            dir_fd: the directory a relative path starts from; -1 or None for the working directory.
            follow: False when the act is on the link itself and not on what it points to (delete, rename, create).

        Returns:
            The absolute path when it is outside, None when writing there is allowed.
        """
        if isinstance(path, int):
            return self._descriptor(path)
        name = os.fsdecode(path)  # type: ignore[arg-type]  # anything else raises TypeError, which counts as unreadable
        if "\0" in name:
            return None  # the act itself raises ValueError
        located = _locate(name, dir_fd, follow=follow)
        if located in _DEVICES or self.holds(located):
            return None
        if found := _DESCRIPTOR.fullmatch(located):
            return self._descriptor(int(found[1] or found[2]))
        if follow:
            entry = _locate(name, dir_fd, follow=False)
            if entry in ("/dev/stdout", "/dev/stderr"):
                return None
            if found := _DESCRIPTOR.fullmatch(entry):
                return self._descriptor(int(found[1] or found[2]))
        return located

    def in_scratch(self, path: str | bytes) -> bool:
        """Tell whether a path, links followed, is in scratch itself."""
        name = os.fsdecode(path)
        root = self._scratch
        return root is not None and bool(name) and "\0" not in name and os.path.realpath(name).startswith(root.rstrip("/") + "/")

    def _descriptor(self, fd: int) -> str | None:
        if fd in _STANDARD_STREAMS:
            return None
        target = _path_of(fd)
        if target is None or not target.startswith("/") or target.startswith("/memfd:"):
            return None  # a pipe, a socket, memory: nothing that stays
        return None if target in _DEVICES or self.holds(target) else target

    def holds(self, located: str) -> bool:
        """Tell whether a path without symbolic links is one that may be written."""
        if located in self._journals or any(located == root or located.startswith(root.rstrip("/") + "/") for root in self._roots):
            return True
        return bool(self._state) and self._is_state(located)

    def _is_state(self, located: str) -> bool:
        folder, name = os.path.split(located)
        for place, own in self._state:
            path = os.path.join(place, own)  # noqa: PTH118
            if located.startswith(path + "/") or (folder == place and own in name):
                return True
        return False


def exists(path: object, dir_fd: object = -1) -> bool:
    """Tell whether something, a dangling link included, is at ``path``; True when that cannot be found out."""
    try:
        return os.path.lexists(_locate(os.fsdecode(path), dir_fd, follow=False))  # type: ignore[arg-type]
    except (OSError, TypeError, ValueError):
        return True


def _locate(name: str, dir_fd: object, *, follow: bool) -> str:
    if not name.startswith("/"):
        base = _path_of(dir_fd) if isinstance(dir_fd, int) and dir_fd >= 0 else os.getcwd()  # noqa: PTH109
        name = os.path.join(base or f"/unknown directory {dir_fd}", name)  # noqa: PTH118
    if follow:
        return os.path.realpath(name)
    parent, last = os.path.split(name.rstrip("/") or "/")
    if last in ("", ".", ".."):
        return os.path.realpath(name)
    return os.path.join(os.path.realpath(parent), last)  # noqa: PTH118


def _path_of(fd: int) -> str | None:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115
    except OSError:
        pass
    try:  # macOS
        from fcntl import F_GETPATH, fcntl  # type: ignore[attr-defined,unused-ignore]

        return fcntl(fd, F_GETPATH, bytes(1024)).rstrip(b"\0").decode()  # type: ignore[no-any-return,unused-ignore]
    except (ImportError, OSError):
        return None
