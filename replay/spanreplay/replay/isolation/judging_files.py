"""What a stopped system call would do to a file, and whether that is outside of what a replay may change."""

# Paths of other processes, links in them unfollowed: pathlib would be most of what an answer costs.
# ruff: noqa: PTH118, PTH119, PTH120

import os
import re
import struct
from collections.abc import Mapping
from typing import Final

from spanreplay.replay.isolation.paths import Territory
from spanreplay.replay.isolation.refusal import Action
from spanreplay.replay.isolation.shared_memory import SharedMemory
from spanreplay.replay.isolation.stopped_call import HERE, Call, Stopped, link

_NO_FOLLOW, _FOLLOW, _EMPTY_PATH = 0x100, 0x400, 0x1000
_OF_ITSELF: Final = re.compile(r"/proc/self(?=/|$)")
_OF_THREAD: Final = re.compile(r"/proc/thread-self(?=/|$)")
_DESCRIPTORS: Final = re.compile(r"/dev/fd(?=/|$)")
_COMPILED: Final = re.compile(r"/__pycache__(/[^/]+\.pyc[^/]*)?$")
"""What a Python leaves where it imports a module: one that a replay starts does so before it is told not to."""
_STREAMS: Final = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
_HARMLESS: Final = frozenset({"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx"})
_UNREADABLE: Final = "a path that cannot be read"


class FileJudge:
    """Tells what of that is to be refused. For one thread.

    Args:
        territory: where writing is allowed.
        shared: the family's shared memory.
    """

    def __init__(self, territory: Territory, shared: SharedMemory) -> None:
        self._territory = territory
        self._shared = shared

    def read(self, call: Call) -> Stopped | None:
        """What one of :data:`CALLS` would do that is to be refused; ``None`` where it may go on."""
        if call.name in _PATHS:
            return self._changes(call, *_PATHS[call.name])
        if call.name in _PAIRS:
            return self._moves(call, *_PAIRS[call.name])
        return self._opens(call)

    def _opens(self, call: Call) -> Stopped | None:
        folder, path, flags = (call.integer(0), 1, call.arguments[2]) if call.name[:6] == "openat" else (HERE, 0, call.arguments[1])
        if call.name == "creat":
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        if call.name == "openat2":
            flags = struct.unpack("=Q", call.memory(call.arguments[2], 8).ljust(8, b"\0"))[0]
            if not flags & (os.O_ACCMODE | os.O_CREAT | os.O_TRUNC):
                return None
        located = self._located(call, folder, call.arguments[path])
        if located is None:
            return Stopped("write", _UNREADABLE)
        exists = os.path.lexists(located)
        made = bool(flags & os.O_CREAT)
        if (not exists and not made) or (exists and made and flags & os.O_EXCL):
            return None  # it fails
        return self.outside(call, "write", located, follow=not flags & os.O_NOFOLLOW and not (made and flags & os.O_EXCL))

    def _changes(
        self, call: Call, action: Action, folder: int | None, path: int, flags: int | None, follow: bool, needs: bool
    ) -> Stopped | None:
        told = 0 if flags is None else call.arguments[flags]
        if action == "metadata" and call.name.startswith("f") and call.name in _BY_DESCRIPTOR:
            return self._descriptor(call, call.integer(0))
        if call.arguments[path] == 0 or (told & _EMPTY_PATH and not call.memory(call.arguments[path], 1).strip(b"\0")):
            return self._descriptor(call, call.integer(0))  # utimensat and those like it, of a descriptor
        located = self._located(call, HERE if folder is None else call.integer(folder), call.arguments[path])
        if located is None:
            return Stopped(action, _UNREADABLE)
        if os.path.lexists(located) is not needs:
            return None
        return self.outside(call, action, located, follow=follow and not told & _NO_FOLLOW)

    def _moves(self, call: Call, action: Action, first: tuple[int | None, int], second: tuple[int | None, int]) -> Stopped | None:
        found = [
            self._located(call, HERE if folder is None else call.integer(folder), call.arguments[path]) for folder, path in (first, second)
        ]
        if None in found:
            return Stopped(action, _UNREADABLE)
        source, target = (str(one) for one in found)
        if not os.path.lexists(source) or (action == "link" and os.path.lexists(target)):
            return None
        by_descriptor = action == "link" and call.name == "linkat" and call.integer(4) & _FOLLOW
        outside = [self.outside(call, action, source, follow=bool(by_descriptor)), self.outside(call, action, target, follow=False)]
        if by_descriptor and source.startswith("/proc/"):
            outside[0] = None  # a file without a name is given one
        stopped = next((one for one in outside if one is not None), None)
        if stopped is not None:
            return stopped._replace(target=f"{source} to {target}" if action == "rename" else f"{target} for {source}")
        self._shared.moved(source, target, kept=action == "link")
        return None

    def _descriptor(self, call: Call, descriptor: int) -> Stopped | None:
        if descriptor in (1, 2):
            return None
        path = link(f"/proc/{call.process}/fd/{descriptor}")
        if path is None or not path.startswith("/") or path.startswith("/memfd:") or path.endswith(" (deleted)"):
            return None  # nothing that stays
        return self.outside(call, "metadata", path, follow=False)

    def _located(self, call: Call, folder: int, address: int) -> str | None:
        """The absolute path that an argument means, with what means the process itself replaced by its number."""
        text = call.text(address)
        if text is None:
            return None
        if not text.startswith("/"):
            base = link(f"/proc/{call.pid}/cwd" if folder == HERE else f"/proc/{call.process}/fd/{folder}")
            if base is None:
                return None
            text = f"{base}/{text}" if text else base
        if text in _STREAMS:
            return f"/proc/{call.process}/fd/{_STREAMS[text]}"
        text = _OF_THREAD.sub(f"/proc/{call.process}/task/{call.pid}", text, count=1)
        text = _OF_ITSELF.sub(f"/proc/{call.process}", text, count=1)
        return _DESCRIPTORS.sub(f"/proc/{call.process}/fd", text, count=1) if text.startswith("/dev/fd") else text

    def outside(self, call: Call, action: Action, path: str, *, follow: bool) -> Stopped | None:
        """What is to be refused of an act on a path.

        Args:
            call: that would do it.
            action: what it would do.
            path: absolute.
            follow: a link at the end of it is followed.
        """
        located = os.path.realpath(path) if follow else os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if located in _HARMLESS or self._territory.holds(located) or "/fd/pipe:[" in located or "/fd/socket:[" in located:
            return None
        if located.startswith(("/memfd:", "/dev/pts/")) or "/fd/anon_inode:" in located or "/fd//memfd:" in located:
            return None
        if located.startswith(SharedMemory.FOLDER):
            return None if self._shared.takes(located, deleted=action == "delete") else Stopped("memory", located)
        if _COMPILED.search(located):
            return Stopped(action, located, quiet=True)
        own = located.startswith((f"/proc/{call.process}/", "/dev/")) and not located.startswith("/dev/mqueue")
        return Stopped(action, located, own)  # a device, or the process itself: libraries do that to learn of the machine


_OPENS: Final = frozenset({"open", "openat", "openat2", "creat"})
_PATHS: Final[Mapping[str, tuple[Action, int | None, int, int | None, bool, bool]]] = {
    # action; positions of the folder's descriptor, the path and the flags; whether a link at the end is followed; whether it must exist
    "truncate": ("write", None, 0, None, True, True),
    "mkdir": ("create", None, 0, None, False, False),
    "mkdirat": ("create", 0, 1, None, False, False),
    "mknod": ("create", None, 0, None, False, False),
    "mknodat": ("create", 0, 1, None, False, False),
    "rmdir": ("delete", None, 0, None, False, True),
    "unlink": ("delete", None, 0, None, False, True),
    "unlinkat": ("delete", 0, 1, None, False, True),
    "symlink": ("link", None, 1, None, False, False),
    "symlinkat": ("link", 1, 2, None, False, False),
    "chmod": ("metadata", None, 0, None, True, True),
    "fchmod": ("metadata", None, 0, None, True, True),
    "fchmodat": ("metadata", 0, 1, None, True, True),
    "fchmodat2": ("metadata", 0, 1, 3, True, True),
    "chown": ("metadata", None, 0, None, True, True),
    "fchown": ("metadata", None, 0, None, True, True),
    "lchown": ("metadata", None, 0, None, False, True),
    "fchownat": ("metadata", 0, 1, 4, True, True),
    "utime": ("metadata", None, 0, None, True, True),
    "utimes": ("metadata", None, 0, None, True, True),
    "futimesat": ("metadata", 0, 1, None, True, True),
    "utimensat": ("metadata", 0, 1, 3, True, True),
    "setxattr": ("metadata", None, 0, None, True, True),
    "lsetxattr": ("metadata", None, 0, None, False, True),
    "fsetxattr": ("metadata", None, 0, None, True, True),
    "setxattrat": ("metadata", 0, 1, 2, True, True),
    "removexattr": ("metadata", None, 0, None, True, True),
    "lremovexattr": ("metadata", None, 0, None, False, True),
    "fremovexattr": ("metadata", None, 0, None, True, True),
    "removexattrat": ("metadata", 0, 1, 2, True, True),
    "file_setattr": ("metadata", 0, 1, 4, True, True),
}
_BY_DESCRIPTOR: Final = frozenset({"fchmod", "fchown", "fsetxattr", "fremovexattr"})
_PAIRS: Final[Mapping[str, tuple[Action, tuple[int | None, int], tuple[int | None, int]]]] = {
    "rename": ("rename", (None, 0), (None, 1)),
    "renameat": ("rename", (0, 1), (2, 3)),
    "renameat2": ("rename", (0, 1), (2, 3)),
    "link": ("link", (None, 0), (None, 1)),
    "linkat": ("link", (0, 1), (2, 3)),
}
CALLS: Final = frozenset({*_OPENS, *_PATHS, *_PAIRS})
"""The system calls that :meth:`FileJudge.read` reads."""
