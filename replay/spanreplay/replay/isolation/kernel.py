"""Level 2 of the guard: the Linux kernel refuses what no audit event tells, to C code too, in this process and all its children.

Landlock (Linux 5.13; what it can do grows with its ABI) refuses writing, creating, deleting, renaming and linking outside scratch, TCP
connections (ABI 4), abstract Unix sockets and signals to other processes (ABI 6). seccomp stops the calls of
:mod:`spanreplay.replay.isolation.system_calls`; what it stops is judged and named by :mod:`spanreplay.replay.isolation.naming`. The
capabilities to change the machine are given up. None of this needs a privilege, and none can be taken back: this is for the processes of a
replayed command only, before the program's first line and while there is one thread.

Not covered: what was open before (a fresh command inherits its standard streams and no more), and reading.

Numbers and layouts are those of ``linux/landlock.h``, ``linux/seccomp.h``, ``linux/filter.h`` and ``linux/capability.h``.
"""

import ctypes
import os
import platform
import stat
import struct
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, Self

from spanreplay.replay.isolation.system_calls import MACHINES, Machine, program

CONFINED: Final = "SPANREPLAY_CONFINED"
"""Set in the environment of a process that is confined, for its children: they are too."""

_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/pts", "/dev/shm")  # noqa: S108 — semaphores of one process family
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
_KEPT_CAPABILITIES: Final = 0b1111_1111 | 1 << 10 | 1 << 14 | 1 << 31
"""To read, write and own files whoever they belong to, signals, changing to another user, ports below 1024, locking memory, file marks."""
_CAPABILITIES: Final = 0x20080522
"""``_LINUX_CAPABILITY_VERSION_3``."""


class NotOfferedError(Exception):
    """The machine does not offer this level; says why."""


class HandOver(Protocol):
    """Gives the descriptor through which the kernel tells of what seccomp stops to somebody who judges it."""

    @property
    def is_taken(self) -> bool:
        """Whether somebody waits for it."""
        ...

    def __call__(self, listener: int, flags: int) -> bool:
        """Send it, by ``sendmsg`` with these flags and no other call that could be stopped; tells whether it has been taken."""
        ...


def confine(writable: Sequence[Path], hand_over: HandOver | None, *, ports: Collection[int] = ()) -> bool:
    """Confine this process and every child it will have.

    Args:
        writable: files and folders that may be written; for a file, or what is not there yet, its folder.
        hand_over: whoever judges what is stopped. Where nobody does, less is stopped: not the modes, owners, times and marks of files, nor
            shared memory; and all connections and sockets for datagrams are refused, unnamed.
        ports: of TCP connections that who judges may let through; 0 stands for every port.

    Returns whether what is stopped is judged and named.

    Raises:
        NotOfferedError: it cannot be done here; nothing has been changed, or less is allowed than before.
    """
    machine = MACHINES.get(platform.machine()) if sys.platform == "linux" and struct.calcsize("P") == 8 else None
    if machine is None:
        raise NotOfferedError(f"no kernel isolation on {sys.platform} {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = machine.numbers
    abi = libc.syscall(numbers["landlock_create_ruleset"], None, ctypes.c_size_t(0), _VERSION)
    if abi < 1:
        raise NotOfferedError("the kernel has no Landlock")
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise _failed("PR_SET_NO_NEW_PRIVS")
    _landlock(libc, numbers, abi, writable, ports)
    _give_up_capabilities(libc, numbers)
    named = _seccomp(libc, machine, hand_over)
    os.environ[CONFINED] = "named" if named else "unnamed"
    return named


def _landlock(libc: ctypes.CDLL, numbers: Mapping[str, int], abi: int, writable: Sequence[Path], ports: Collection[int]) -> None:
    connecting = _CONNECT_TCP if abi >= 4 and 0 not in ports else 0
    changing = _WRITE_FILE | _CHANGE_FOLDER | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0)
    attributes = struct.pack("=QQQ", changing, connecting, _ABSTRACT_UNIX | _SIGNAL if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    rules = libc.syscall(numbers["landlock_create_ruleset"], attributes[:size], ctypes.c_size_t(size), 0)
    if rules < 0:
        raise _failed("landlock_create_ruleset")
    try:
        for path in (*map(Path, _DEVICES), *(path if path.is_dir() else path.parent for path in writable)):
            _allow(libc, numbers, rules, path, changing)
        for port in ports if connecting else ():
            if libc.syscall(numbers["landlock_add_rule"], rules, _NET_PORT, struct.pack("=QQ", connecting, port), 0):
                raise _failed(f"landlock_add_rule port {port}")
        if libc.syscall(numbers["landlock_restrict_self"], rules, 0):
            raise _failed("landlock_restrict_self")
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, numbers: Mapping[str, int], rules: int, path: Path, changing: int) -> None:
    try:
        entry = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        allowed = changing if stat.S_ISDIR(os.fstat(entry).st_mode) else changing & (_WRITE_FILE | _TRUNCATE)
        if libc.syscall(numbers["landlock_add_rule"], rules, _PATH_BENEATH, struct.pack("=Qi", allowed, entry), 0):
            raise _failed(f"landlock_add_rule {path}")
    finally:
        os.close(entry)


def _give_up_capabilities(libc: ctypes.CDLL, numbers: Mapping[str, int]) -> None:
    """Those to change the machine. Files are for Landlock to deny; a process without capabilities has nothing to give up."""
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITIES, 0))
    sets = ctypes.create_string_buffer(24)
    if libc.capget(header, sets):
        return
    low = [mask & _KEPT_CAPABILITIES for mask in struct.unpack_from("=III", sets.raw)]
    libc.syscall(numbers["capset"], header, struct.pack("=IIIIII", *low, 0, 0, 0))


def _seccomp(libc: ctypes.CDLL, machine: Machine, hand_over: HandOver | None) -> bool:
    if hand_over is not None and hand_over.is_taken:
        flags = 1 << 30 | int.from_bytes(os.urandom(2), "big") << 8  # no flags that any program knows of
        named = _Program.of(program(machine, heard=True, pass_flags=flags))
        listener = libc.syscall(machine.numbers["seccomp"], _SET_FILTER, _NEW_LISTENER, ctypes.byref(named))
        if listener >= 0:
            try:
                if hand_over(listener, flags):
                    return True
            finally:
                os.close(listener)  # where nobody holds it, the kernel refuses by itself
            raise NotOfferedError("nobody has taken what seccomp tells, and everything that it stops is refused")
    silent = _Program.of(program(machine, heard=False))
    if libc.syscall(machine.numbers["seccomp"], _SET_FILTER, 0, ctypes.byref(silent)):
        raise _failed("seccomp")
    return False


class _Program(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))

    @classmethod
    def of(cls, code: bytes) -> Self:
        return cls(len(code) // 8, code)


def _failed(what: str) -> NotOfferedError:
    return NotOfferedError(f"{what}: {os.strerror(ctypes.get_errno())}")
