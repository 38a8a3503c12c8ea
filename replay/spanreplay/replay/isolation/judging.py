"""What a system call that the kernel has stopped would do that is to be refused: to files, other processes, and over connections."""

import os
import socket
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from spanreplay.replay.isolation import addresses, judging_files, listening, numbered
from spanreplay.replay.isolation.judging_files import FileJudge
from spanreplay.replay.isolation.paths import Territory
from spanreplay.replay.isolation.refusal import Action
from spanreplay.replay.isolation.shared_memory import SharedMemory
from spanreplay.replay.isolation.stopped_call import Call, Stopped, link, parent_of, pid_of, process_of

LOOKED_UP: Final = ("/var/run/nscd/socket", "/run/nscd/socket", "/run/systemd/userdb", "/run/systemd/resolve")
"""Where the C library asks for names and users before it looks into files: no act of the program's own."""
DNS: Final = 53
_LONGEST_ADDRESS: Final = 128


class Judge:
    """Tells what is to be refused. For one thread.

    Args:
        territory: where writing is allowed.
        shared: the family's shared memory.
        root: whether a process is the first of those that are confined together.
    """

    def __init__(self, territory: Territory, shared: SharedMemory, root: Callable[[int], bool]) -> None:
        self._territory = territory
        self._files = FileJudge(territory, shared)
        self._root = root

    def read(self, call: Call) -> Stopped | None:
        """What the call would do that is to be refused; ``None`` where it may go on."""
        name = call.name
        if name in judging_files.CALLS:
            return self._files.read(call)
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

    # ---- other processes

    def _others(self, call: Call) -> Stopped | None:
        name = call.name
        if name in _SIGNALS:
            number, target = call.integer(_SIGNALS[name]), call.integer(0)
            if name == "pidfd_send_signal":
                target = pid_of(call.process, target)
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
            pid = process_of(pid)
            if pid == own or self._root(pid):
                return True
            pid = parent_of(pid)
            if pid <= 1:
                return False
        return False

    # ---- connections

    def _is_ours(self, call: Call, address: bytes) -> bool:
        """Whether a Unix socket is in scratch: a process of the replay listens there."""
        path = os.fsdecode(address[2:].split(b"\0", 1)[0]) if _family(address) == socket.AF_UNIX else ""
        if not path:
            return False
        return self._territory.in_scratch(path if path.startswith("/") else f"{link(f'/proc/{call.pid}/cwd') or ''}/{path}")

    def _binds(self, call: Call) -> Stopped | None:
        address = call.memory(call.arguments[1], min(call.arguments[2], _LONGEST_ADDRESS))
        family = _family(address)
        if family == socket.AF_UNIX:
            path = os.fsdecode(address[2:].split(b"\0", 1)[0])
            if not path:
                return None
            located = path if path.startswith("/") else f"{link(f'/proc/{call.pid}/cwd') or ''}/{path}"
            return None if os.path.lexists(located) else self._files.outside(call, "bind", located, follow=False)
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


_MMSGHDR, _MOST_MESSAGES, _GENERATIONS = 64, 1024, 200

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
