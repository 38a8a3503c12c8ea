"""What a system call that the kernel has stopped would do, read from the memory of the process that waits for the answer.

The answer is for what was in memory when it was looked at, which another thread of that process could change meanwhile: this keeps honest
code from acting by accident. Files outside scratch, TCP connections and signals are denied by Landlock in any case.
"""

# Paths of other processes, links in them unfollowed: pathlib would be most of what an answer costs.
# ruff: noqa: PTH115, PTH118, PTH119, PTH120

import os
import re
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from spanreplay.replay.isolation import addresses, listening, numbered
from spanreplay.replay.isolation.paths import Territory
from spanreplay.replay.isolation.refusal import Action
from spanreplay.replay.isolation.shared_memory import SharedMemory


class Stopped(NamedTuple):
    """An act that is to be refused, unless it was allowed by its host and port."""

    action: Action
    target: str
    mild: bool = False
    port: int = 0
    host: str = ""
    """Numeric address, or path of a Unix socket."""
    quiet: bool = False
    """Every program does that, and nobody need hear of it."""
    nobody: bool = False
    """It reaches nobody: the process that it is meant for is gone, and that is what the caller is told."""


class Call(NamedTuple):
    """A system call that waits."""

    pid: int
    """Of the thread, as the kernel tells it."""
    name: str
    arguments: Sequence[int]

    @property
    def process(self) -> int:
        """Id of its process."""
        return _process_of(self.pid)

    def integer(self, index: int) -> int:
        """An argument of 32 bits, with its sign."""
        return int(struct.unpack("=i", struct.pack("=Q", self.arguments[index])[:4])[0])

    def memory(self, address: int, size: int) -> bytes:
        """What the process has there; less, or nothing, where it cannot be read."""
        with suppress(OSError, ValueError, OverflowError), Path(f"/proc/{self.pid}/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            return memory.read(size) or b""
        return b""

    def text(self, address: int) -> str | None:
        """A path; ``None`` where it cannot be read."""
        found = b""
        while b"\0" not in found and len(found) < _LONGEST_PATH:
            more = self.memory(address + len(found), _PAGE - (address + len(found)) % _PAGE)
            if not more:
                return None
            found += more
        return os.fsdecode(found.split(b"\0", 1)[0])


LOOKED_UP: Final = ("/var/run/nscd/socket", "/run/nscd/socket", "/run/systemd/userdb", "/run/systemd/resolve")
"""Where the C library asks for names and users before it looks into files: no act of the program's own."""
DNS: Final = 53
_PAGE, _LONGEST_PATH, _LONGEST_ADDRESS = 4096, 4096, 128
_HERE: Final = -100
"""``AT_FDCWD``."""
_NO_FOLLOW, _FOLLOW, _EMPTY_PATH = 0x100, 0x400, 0x1000
_OF_ITSELF: Final = re.compile(r"/proc/self(?=/|$)")
_OF_THREAD: Final = re.compile(r"/proc/thread-self(?=/|$)")
_DESCRIPTORS: Final = re.compile(r"/dev/fd(?=/|$)")
_COMPILED: Final = re.compile(r"/__pycache__(/[^/]+\.pyc[^/]*)?$")
"""What a Python leaves where it imports a module: one that a replay starts does so before it is told not to."""
_STREAMS: Final = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
_HARMLESS: Final = frozenset({"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx"})
_UNREADABLE: Final = "a path that cannot be read"


class Judge:
    """Tells what is to be refused. For one thread.

    Args:
        territory: where writing is allowed.
        shared: the family's shared memory.
        root: whether a process is the first of those that are confined together.
    """

    def __init__(self, territory: Territory, shared: SharedMemory, root: Callable[[int], bool]) -> None:
        self._territory = territory
        self._shared = shared
        self._root = root

    def read(self, call: Call) -> Stopped | None:
        """What the call would do that is to be refused; ``None`` where it may go on."""
        name = call.name
        if name in _PATHS:
            return self._changes(call, *_PATHS[name])
        if name in ("open", "openat", "openat2", "creat"):
            return self._opens(call)
        if name in _PAIRS:
            return self._moves(call, *_PAIRS[name])
        if name in _SIGNALS or name in _CONTROLS:
            return self._others(call)
        if name == "bind":
            return self._binds(call)
        if name == "listen":
            unbound = listening.is_unbound(call.process, call.integer(0))
            return Stopped("bind", "a free port at every address") if unbound else None
        if name in numbered.CALLS:
            looks = numbered.only_looks(name, call.integer(1), call.integer(2))
            return _SHARED if not looks and numbered.has_key(name, call.integer(0)) else None
        if name in ("connect", "sendto"):
            action, at, size = ("connect", 1, 2) if name == "connect" else ("send", 4, 5)
            address = call.memory(call.arguments[at], min(call.arguments[size], _LONGEST_ADDRESS))
            if _harmless(address) or self._is_ours(call, address):
                return None
            return _reached(action, address)  # type: ignore[arg-type]
        if name in ("sendmsg", "sendmmsg"):
            return _sends(call)
        return _PLAIN.get(name, Stopped("unknown", f"the system call {name}"))

    # ---- files

    def _opens(self, call: Call) -> Stopped | None:
        folder, path, flags = (call.integer(0), 1, call.arguments[2]) if call.name[:6] == "openat" else (_HERE, 0, call.arguments[1])
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
        return self._outside(call, "write", located, follow=not flags & os.O_NOFOLLOW and not (made and flags & os.O_EXCL))

    def _changes(
        self, call: Call, action: Action, folder: int | None, path: int, flags: int | None, follow: bool, needs: bool
    ) -> Stopped | None:
        told = 0 if flags is None else call.arguments[flags]
        if action == "metadata" and call.name.startswith("f") and call.name in _BY_DESCRIPTOR:
            return self._descriptor(call, call.integer(0))
        if call.arguments[path] == 0 or (told & _EMPTY_PATH and not call.memory(call.arguments[path], 1).strip(b"\0")):
            return self._descriptor(call, call.integer(0))  # utimensat and those like it, of a descriptor
        located = self._located(call, _HERE if folder is None else call.integer(folder), call.arguments[path])
        if located is None:
            return Stopped(action, _UNREADABLE)
        if os.path.lexists(located) is not needs:
            return None
        return self._outside(call, action, located, follow=follow and not told & _NO_FOLLOW)

    def _moves(self, call: Call, action: Action, first: tuple[int | None, int], second: tuple[int | None, int]) -> Stopped | None:
        found = [
            self._located(call, _HERE if folder is None else call.integer(folder), call.arguments[path]) for folder, path in (first, second)
        ]
        if None in found:
            return Stopped(action, _UNREADABLE)
        source, target = (str(one) for one in found)
        if not os.path.lexists(source) or (action == "link" and os.path.lexists(target)):
            return None
        by_descriptor = action == "link" and call.name == "linkat" and call.integer(4) & _FOLLOW
        outside = [self._outside(call, action, source, follow=bool(by_descriptor)), self._outside(call, action, target, follow=False)]
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
        path = _link(f"/proc/{call.process}/fd/{descriptor}")
        if path is None or not path.startswith("/") or path.startswith("/memfd:") or path.endswith(" (deleted)"):
            return None  # nothing that stays
        return self._outside(call, "metadata", path, follow=False)

    def _located(self, call: Call, folder: int, address: int) -> str | None:
        """The absolute path that an argument means, with what means the process itself replaced by its number."""
        text = call.text(address)
        if text is None:
            return None
        if not text.startswith("/"):
            base = _link(f"/proc/{call.pid}/cwd" if folder == _HERE else f"/proc/{call.process}/fd/{folder}")
            if base is None:
                return None
            text = f"{base}/{text}" if text else base
        if text in _STREAMS:
            return f"/proc/{call.process}/fd/{_STREAMS[text]}"
        text = _OF_THREAD.sub(f"/proc/{call.process}/task/{call.pid}", text, count=1)
        text = _OF_ITSELF.sub(f"/proc/{call.process}", text, count=1)
        return _DESCRIPTORS.sub(f"/proc/{call.process}/fd", text, count=1) if text.startswith("/dev/fd") else text

    def _outside(self, call: Call, action: Action, path: str, *, follow: bool) -> Stopped | None:
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

    # ---- other processes

    def _others(self, call: Call) -> Stopped | None:
        name = call.name
        if name in _SIGNALS:
            number, target = call.integer(_SIGNALS[name]), call.integer(0)
            if name == "pidfd_send_signal":
                target = _pid_of(call.process, target)
            shown = Stopped("signal", f"process {target} (signal {number})" if target > 0 else f"process group {-target} (signal {number})")
            if number == 0 or target == 0:
                return None
            if target != -1 and self._is_family(call, abs(target)):
                return None
            gone = target > 0 and not Path(f"/proc/{target}").exists()  # a worker of a pool ends as it is told to
            return shown._replace(quiet=True, nobody=True) if gone else shown
        of_group = name in ("setpriority", "ioprio_set") and call.arguments[0] != _CONTROLS[name]
        target = call.integer(1 if name in ("setpriority", "ioprio_set") else 0)
        if not of_group and self._is_family(call, target):
            return None
        return Stopped("control", f"process {'group ' if of_group else ''}{target}")

    def _is_family(self, call: Call, pid: int) -> bool:
        """Whether a process is confined together with the one that calls; a child that has lost its parents does not count."""
        own = call.process
        for _ in range(_GENERATIONS):
            pid = _process_of(pid)
            if pid == own or self._root(pid):
                return True
            pid = _parent(pid)
            if pid <= 1:
                return False
        return False

    # ---- connections

    def _is_ours(self, call: Call, address: bytes) -> bool:
        """Whether a Unix socket is in scratch: a process of the replay listens there."""
        path = os.fsdecode(address[2:].split(b"\0", 1)[0]) if _family(address) == socket.AF_UNIX else ""
        if not path:
            return False
        return self._territory.in_scratch(path if path.startswith("/") else f"{_link(f'/proc/{call.pid}/cwd') or ''}/{path}")

    def _binds(self, call: Call) -> Stopped | None:
        address = call.memory(call.arguments[1], min(call.arguments[2], _LONGEST_ADDRESS))
        family = _family(address)
        if family == socket.AF_UNIX:
            path = os.fsdecode(address[2:].split(b"\0", 1)[0])
            if not path:
                return None
            located = path if path.startswith("/") else f"{_link(f'/proc/{call.pid}/cwd') or ''}/{path}"
            return None if os.path.lexists(located) else self._outside(call, "bind", located, follow=False)
        found = _reached("bind", address)
        return None if addresses.binds_inside(family, (found.host, found.port)) else found._replace(mild=False)


def _reached(action: Action, address: bytes) -> Stopped:
    family = _family(address)
    if family == socket.AF_INET and len(address) >= 8:
        port, host = struct.unpack(">H", address[2:4])[0], socket.inet_ntop(socket.AF_INET, address[4:8])
        return Stopped(action, f"{host}:{port}", port == DNS, port, host)
    if family == socket.AF_INET6 and len(address) >= 24:
        port, host = struct.unpack(">H", address[2:4])[0], socket.inet_ntop(socket.AF_INET6, address[8:24])
        return Stopped(action, f"[{host}]:{port}", port == DNS, port, host)
    if family == socket.AF_UNIX:
        path = address[2:].split(b"\0", 1)[0].decode("utf-8", "replace")
        return Stopped(action, path or "an abstract Unix socket", path.startswith(LOOKED_UP), 0, path)
    return Stopped(action, f"an address of family {family}")


def _harmless(address: bytes) -> bool:
    """The end of a connection, and asking the kernel for interfaces: to change them takes a capability that was given up."""
    return _family(address) == socket.AF_UNSPEC or (_family(address) == socket.AF_NETLINK and not any(address[4:12]))


def _sends(call: Call) -> Stopped | None:
    """``struct msghdr`` begins with pointer and length of the address; ``struct mmsghdr`` is one and a length."""
    count = min(call.arguments[2], _MOST_MESSAGES) if call.name == "sendmmsg" else 1
    mild: Stopped | None = None
    for index in range(count):
        header = call.memory(call.arguments[1] + index * _MMSGHDR, 12)
        if len(header) < 12:
            return Stopped("send", "an address that cannot be read")
        address, size = struct.unpack("=QI", header)
        to = call.memory(address, min(size, _LONGEST_ADDRESS)) if address else b""
        stopped = _reached("send", to) if address and not _harmless(to) else None
        if stopped is not None and not stopped.mild:
            return stopped
        mild = mild or stopped
    return mild


def _family(address: bytes) -> int:
    return int(struct.unpack("=H", address[:2])[0]) if len(address) >= 2 else -1


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _field(path: str, name: str) -> int:
    with suppress(OSError, ValueError), Path(path).open(encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1])
    return 0


def _process_of(thread: int) -> int:
    return _field(f"/proc/{thread}/status", "Tgid:") or thread


def _parent(pid: int) -> int:
    return _field(f"/proc/{pid}/status", "PPid:")


def _pid_of(process: int, pidfd: int) -> int:
    return _field(f"/proc/{process}/fdinfo/{pidfd}", "Pid:") or -1


_MMSGHDR, _MOST_MESSAGES, _GENERATIONS = 64, 1024, 200

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
_SIGNALS: Final[Mapping[str, int]] = {
    "kill": 1, "tkill": 1, "tgkill": 2, "rt_sigqueueinfo": 1, "rt_tgsigqueueinfo": 2, "pidfd_send_signal": 1,
}  # fmt: skip
"""Position of the number of the signal."""
_CONTROLS: Final[Mapping[str, int]] = {
    "setpriority": 0, "ioprio_set": 1, "sched_setaffinity": 0, "sched_setscheduler": 0, "sched_setparam": 0, "sched_setattr": 0,
    "prlimit64": 0,
}  # fmt: skip
"""For the first two, the value of the first argument that means one process."""
_SHARED: Final = Stopped("memory", "memory or a queue that is shared by its number or name")
_MACHINE: Final = Stopped("machine", "mounts, root, clock, name or modules")
_PLAIN: Final[Mapping[str, Stopped]] = {
    "socket": Stopped("connect", "a socket past the protocols of the Internet"),
    **dict.fromkeys(("shmget", "semget", "msgget", "mq_open", "mq_unlink"), _SHARED),
    **dict.fromkeys(("ptrace", "process_vm_writev", "process_madvise", "pidfd_getfd", "setns"), Stopped("control", "another process")),
    **dict.fromkeys(("add_key", "request_key", "keyctl", "io_uring_setup"), Stopped("machine", "key rings or queues of calls", mild=True)),
    "open_by_handle_at": Stopped("write", "a file by its handle"),
    **dict.fromkeys(
        ("mount", "umount2", "pivot_root", "chroot", "sethostname", "setdomainname", "settimeofday", "clock_settime", "reboot",
         "swapon", "swapoff", "acct", "quotactl", "init_module", "finit_module", "delete_module", "kexec_load", "bpf"),
        _MACHINE,
    ),
}  # fmt: skip
