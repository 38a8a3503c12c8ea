"""Level 2 of the guard: the Linux kernel refuses what no audit event tells, to C code too, in this process and all its children.

Landlock (Linux 5.13; what it can do grows with its ABI) refuses writing, creating, deleting, renaming and linking outside scratch, TCP
connections (ABI 4), abstract Unix sockets and signals to other processes (ABI 6). seccomp refuses every ``connect``, datagrams with an
address, ``ptrace``, device nodes, writing into other processes and io_uring. Neither needs a privilege, and neither can be taken back:
this is for the processes of a replayed command only, before the program's first line and while there is one thread. What seccomp stops is
named by :mod:`spanreplay.replay.isolation.naming`.

Not covered: what was open before (a fresh command inherits its standard streams and no more), changing mode, owner, times and attributes of
files by C code, and reading.

Numbers and layouts are those of ``linux/landlock.h``, ``linux/seccomp.h``, ``linux/filter.h`` and the system call tables.
"""

import ctypes
import os
import platform
import stat
import struct
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

CONFINED: Final = "SPANREPLAY_CONFINED"
"""Set in the environment of a process that is confined, for its children: they are too."""

_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/pts", "/dev/shm")  # noqa: S108 — semaphores of one process family
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION: Final = 1
_PATH_BENEATH, _NET_PORT = 1, 2
_WRITE_FILE: Final = 1 << 1
_CHANGE_FOLDER: Final = sum(1 << bit for bit in range(4, 13))
"""Removing folders and files, and making every sort of entry."""
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_CONNECT_TCP: Final = 1 << 1
_ABSTRACT_UNIX, _SIGNAL = 1 << 0, 1 << 1
_NO_NEW_PRIVILEGES: Final = 38
_SET_FILTER: Final = 1
_NEW_LISTENER: Final = 1 << 3
_ALLOW, _REFUSE, _NOTIFY = 0x7FFF0000, 0x00050000 | 13, 0x7FC00000
"""``SECCOMP_RET_*``; the one in the middle with ``EACCES``."""


class _Machine(NamedTuple):
    """What differs between processors: ``AUDIT_ARCH_*`` and numbers of system calls."""

    arch: int
    seccomp: int
    connect: int
    sendto: int
    sendmsg: int
    sendmmsg: int
    refused: tuple[int, ...]
    """ptrace, mknod, mknodat, process_vm_writev, io_uring_setup, of those there are."""


_MACHINES: Final[Mapping[str, _Machine]] = {
    "x86_64": _Machine(0xC000003E, 317, 42, 44, 46, 307, (101, 133, 259, 311, 425)),
    "aarch64": _Machine(0xC00000B7, 277, 203, 206, 211, 269, (117, 33, 271, 425)),
}
_X32: Final = 0x40000000
"""Calls of the x32 interface of x86_64 have this bit."""


class NotOfferedError(Exception):
    """The machine does not offer this level; says why."""


def confine(writable: Sequence[Path], handed_over: Callable[[int], bool], *, ports: Collection[int] = ()) -> str:
    """Confine this process and every child it will have.

    Args:
        writable: files and folders that may be written; for a file, or what is not there yet, its folder.
        handed_over: gives the descriptor through which the kernel tells of what seccomp stops to somebody who names it; false where nobody
            takes it, and everything is then refused unnamed.
        ports: of TCP connections that who takes the descriptor may let through; 0 stands for every port.

    Returns what holds, for people.

    Raises:
        NotOfferedError: it cannot be done here; nothing has been changed, or less is allowed than before.
    """
    machine = _MACHINES.get(platform.machine()) if sys.platform == "linux" and struct.calcsize("P") == 8 else None
    if machine is None:
        raise NotOfferedError(f"no kernel isolation on {sys.platform} {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    abi = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    if abi < 1:
        raise NotOfferedError("the kernel has no Landlock")
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise _failed("PR_SET_NO_NEW_PRIVS")
    _landlock(libc, abi, writable, ports)
    named = _seccomp(libc, machine, handed_over)
    os.environ[CONFINED] = "1"
    return f"Landlock (ABI {abi}) and seccomp{'' if named else ', whose refusals are not named'}"


def _landlock(libc: ctypes.CDLL, abi: int, writable: Sequence[Path], ports: Collection[int]) -> None:
    connecting = _CONNECT_TCP if abi >= 4 and 0 not in ports else 0
    changing = _WRITE_FILE | _CHANGE_FOLDER | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0)
    attributes = struct.pack("=QQQ", changing, connecting, _ABSTRACT_UNIX | _SIGNAL if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    rules = libc.syscall(_CREATE_RULESET, attributes[:size], ctypes.c_size_t(size), 0)
    if rules < 0:
        raise _failed("landlock_create_ruleset")
    try:
        for path in (*map(Path, _DEVICES), *(path if path.is_dir() else path.parent for path in writable)):
            _allow(libc, rules, path, changing)
        for port in ports if connecting else ():
            if libc.syscall(_ADD_RULE, rules, _NET_PORT, struct.pack("=QQ", connecting, port), 0):
                raise _failed(f"landlock_add_rule port {port}")
        if libc.syscall(_RESTRICT_SELF, rules, 0):
            raise _failed("landlock_restrict_self")
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: Path, changing: int) -> None:
    try:
        entry = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        allowed = changing if stat.S_ISDIR(os.fstat(entry).st_mode) else changing & (_WRITE_FILE | _TRUNCATE)
        if libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", allowed, entry), 0):
            raise _failed(f"landlock_add_rule {path}")
    finally:
        os.close(entry)


def _seccomp(libc: ctypes.CDLL, machine: _Machine, handed_over: Callable[[int], bool]) -> bool:
    named = _filter(machine, _NOTIFY)
    listener = libc.syscall(machine.seccomp, _SET_FILTER, _NEW_LISTENER, ctypes.byref(named))
    if listener >= 0:
        try:
            return handed_over(listener)
        finally:
            os.close(listener)  # nobody holds it then: the kernel refuses by itself
    silent = _filter(machine, _REFUSE)
    if libc.syscall(machine.seccomp, _SET_FILTER, 0, ctypes.byref(silent)):
        raise _failed("seccomp")
    return False


class _Program(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _filter(machine: _Machine, stop: int) -> _Program:
    """A classic BPF program over ``struct seccomp_data``: nr at 0, arch at 4, arguments of 8 bytes from 16."""

    def load(offset: int) -> bytes:
        return struct.pack("=HBBI", 0x20, 0, 0, offset)

    def give(action: int) -> bytes:
        return struct.pack("=HBBI", 0x06, 0, 0, action)

    def unless_equal(value: int, skip: int) -> bytes:
        return struct.pack("=HBBI", 0x15, 0, skip, value)

    def when(number: int, body: bytes) -> bytes:
        return unless_equal(number, len(body) // 8) + body

    address_given = load(16 + 8 * 4) + struct.pack("=HBBI", 0x15, 0, 2, 0) + load(16 + 8 * 4 + 4) + struct.pack("=HBBI", 0x15, 1, 0, 0)
    code = load(4) + unless_equal(machine.arch, 1) + struct.pack("=HBBI", 0x05, 0, 0, 1) + give(_REFUSE) + load(0)
    code += struct.pack("=HBBI", 0x35, 0, 1, _X32) + give(_REFUSE)
    code += when(machine.connect, give(stop))
    code += when(machine.sendto, address_given + give(stop) + give(_ALLOW))
    for number in (
        (machine.sendmsg, machine.sendmmsg) if stop == _NOTIFY else ()
    ):  # only who reads the message sees whether it has an address
        code += when(number, give(stop))
    for number in machine.refused:
        code += when(number, give(_REFUSE))
    code += give(_ALLOW)
    return _Program(len(code) // 8, code)


def _failed(what: str) -> NotOfferedError:
    return NotOfferedError(f"{what}: {os.strerror(ctypes.get_errno())}")
