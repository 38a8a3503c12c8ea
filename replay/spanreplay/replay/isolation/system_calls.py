"""Which system calls reach outside, with their numbers, and the program of the kernel's filter that stops them.

A call is *stopped* where whoever listens judges it by what its arguments point to, which the filter itself cannot read, and *refused*
where there is nothing to judge. Numbers are those of the tables of the Linux kernel (``syscall_64.tbl``, ``asm-generic/unistd.h``), the
program that of ``linux/filter.h`` over ``struct seccomp_data``: number at 0, architecture at 4, arguments of 8 bytes from 16.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

_X86_64: Final[Mapping[str, int]] = {
    "open": 2, "ioctl": 16, "shmget": 29, "shmat": 30, "shmctl": 31, "socket": 41, "connect": 42, "sendto": 44, "sendmsg": 46, "bind": 49,
    "listen": 50, "kill": 62, "semget": 64, "semop": 65, "semctl": 66, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71,
    "truncate": 76, "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86, "unlink": 87, "symlink": 88,
    "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "ptrace": 101, "capset": 126, "rt_sigqueueinfo": 129, "utime": 132,
    "mknod": 133, "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144, "pivot_root": 155, "chroot": 161, "acct": 163,
    "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170,
    "setdomainname": 171, "init_module": 175, "delete_module": 176, "quotactl": 179, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
    "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "tkill": 200, "sched_setaffinity": 203, "semtimedop": 220,
    "clock_settime": 227, "tgkill": 234, "utimes": 235, "mq_open": 240, "mq_unlink": 241,
    "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250,
    "ioprio_set": 251, "openat": 257, "mkdirat": 258, "mknodat": 259, "fchownat": 260, "futimesat": 261, "unlinkat": 263, "renameat": 264,
    "linkat": 265, "symlinkat": 266, "fchmodat": 268, "utimensat": 280, "rt_tgsigqueueinfo": 297, "prlimit64": 302,
    "open_by_handle_at": 304, "sendmmsg": 307, "setns": 308, "process_vm_writev": 311, "finit_module": 313, "sched_setattr": 314,
    "renameat2": 316, "seccomp": 317, "bpf": 321,
}  # fmt: skip
_AARCH64: Final[Mapping[str, int]] = {
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16, "ioctl": 29,
    "ioprio_set": 30, "mknodat": 33, "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38, "umount2": 39,
    "mount": 40, "pivot_root": 41, "truncate": 45, "chroot": 51, "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "openat": 56,
    "quotactl": 60, "utimensat": 88, "acct": 89, "capset": 91, "kexec_load": 104, "init_module": 105, "delete_module": 106,
    "clock_settime": 112, "ptrace": 117, "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122, "kill": 129,
    "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138, "setpriority": 140, "reboot": 142, "sethostname": 161, "setdomainname": 162,
    "settimeofday": 170, "mq_open": 180, "mq_unlink": 181, "msgget": 186, "msgctl": 187, "msgrcv": 188, "msgsnd": 189, "semget": 190,
    "semctl": 191, "semtimedop": 192, "semop": 193, "shmget": 194, "shmctl": 195, "shmat": 196, "socket": 198, "bind": 200, "listen": 201,
    "connect": 203, "sendto": 206, "sendmsg": 211, "add_key": 217, "request_key": 218, "keyctl": 219, "swapon": 224, "swapoff": 225,
    "rt_tgsigqueueinfo": 240, "prlimit64": 261, "open_by_handle_at": 265, "setns": 268, "sendmmsg": 269, "process_vm_writev": 271,
    "finit_module": 273, "sched_setattr": 274, "renameat2": 276, "seccomp": 277, "bpf": 280,
}  # fmt: skip
_NEWER: Final[Mapping[str, int]] = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "openat2": 437, "pidfd_getfd": 438, "process_madvise": 440,
    "landlock_create_ruleset": 444, "landlock_add_rule": 445, "landlock_restrict_self": 446, "fchmodat2": 452, "setxattrat": 463,
    "removexattrat": 466, "file_setattr": 469,
}  # fmt: skip
"""The same on every processor."""


class Machine(NamedTuple):
    """A processor: its ``AUDIT_ARCH_*`` and its numbers of system calls."""

    arch: int
    numbers: Mapping[str, int]


MACHINES: Final[Mapping[str, Machine]] = {
    "x86_64": Machine(0xC000003E, {**_X86_64, **_NEWER}),
    "aarch64": Machine(0xC00000B7, {**_AARCH64, **_NEWER}),
}

# What an argument must be for a rule to hold: one of these bits is set; it is, or is not, a value of 32 bits; it is not 0, in all 64 bits.
_Condition: TypeAlias = tuple[int, Literal["bits", "is", "not", "given"], int]


class Rule(NamedTuple):
    """What becomes of a call whose arguments meet all conditions."""

    call: str
    conditions: tuple[_Condition, ...] = ()
    stops: bool = True
    """Whoever listens judges it; otherwise it is refused."""
    silent: Literal["refuse", "allow"] = "refuse"
    """What becomes of a call that is to be judged where nobody listens."""


_WRITING: Final = 0x3 | 0x40 | 0x200
"""``O_WRONLY | O_RDWR | O_CREAT | O_TRUNC``; a file without a name, ``O_TMPFILE``, needs one of the first two."""
_INTERNET: Final = (2, 10)
_FAMILIES: Final = (1, *_INTERNET, 16, 38)
"""Unix, Internet, the kernel itself (netlink, cryptography)."""
_MARKS: Final = (0x40086602, 0x40046602, 0x401C5820, 0x40087602, 0x40047602, 0x40806685, 0x800C6613, 0x40047211)
"""``FS_IOC_SETFLAGS`` and ``FS_IOC_SETVERSION`` (and their forms of 32 bits), ``FS_IOC_FSSETXATTR``, ``FS_IOC_ENABLE_VERITY``,
``FS_IOC_SET_ENCRYPTION_POLICY``, ``FAT_IOCTL_SET_ATTRIBUTES``: for these a file needs only be open for reading."""
_VOLUMES: Final = (0x50009401, 0x5000940E, 0x5000940F, 0x50009417, 0x50009418, 0x5000943F, 0x4008941A)
"""Btrfs: volumes and snapshots made, deleted, changed; for these their folder. ``linux/btrfs.h``."""
_TYPE_INTO_TERMINAL: Final = 0x5412

_PATHS: Final = (
    "creat", "openat2", "truncate", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir", "link", "linkat", "unlink", "unlinkat",
    "symlink", "symlinkat", "mknod", "mknodat", "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat",
    "utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr",
    "fremovexattr", "removexattrat", "file_setattr",
)  # fmt: skip
_NUMBERED: Final = ("shmat", "shmctl", "semop", "semtimedop", "semctl", "msgsnd", "msgrcv", "msgctl")
_SIGNALS: Final = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")
_NEVER: Final = (
    "ptrace", "process_vm_writev", "process_madvise", "pidfd_getfd", "open_by_handle_at", "io_uring_setup", "mq_open", "mq_unlink",
    "add_key", "request_key", "keyctl", "mount", "umount2", "pivot_root", "chroot", "setns", "sethostname", "setdomainname", "settimeofday",
    "clock_settime", "reboot", "swapon", "swapoff", "acct", "quotactl", "init_module", "finit_module", "delete_module", "kexec_load", "bpf",
)  # fmt: skip

RULES: Final = (
    Rule("openat", ((2, "bits", _WRITING),), silent="allow"),
    Rule("open", ((1, "bits", _WRITING),), silent="allow"),
    Rule("connect"),
    Rule("sendto", ((4, "given", 0),)),
    Rule("sendmsg", silent="allow"),
    Rule("sendmmsg", silent="allow"),
    Rule("bind", silent="allow"),
    Rule("listen", silent="allow"),
    Rule("socket", tuple((0, "not", family) for family in _FAMILIES)),
    *(Rule("socket", ((0, "is", family), (1, "bits", 1), (1, "bits", 2))) for family in _INTERNET),  # SOCK_RAW
    *(Rule("ioctl", ((1, "is", command),), stops=False) for command in (*_MARKS, *_VOLUMES, _TYPE_INTO_TERMINAL)),
    *(Rule(name, silent="allow") for name in (*_PATHS, *_SIGNALS, *_NUMBERED)),
    *(Rule(name, ((0, "not", 0),)) for name in ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")),
    *(Rule(name, ((1, "not", 0),)) for name in ("setpriority", "ioprio_set")),
    Rule("prlimit64", ((0, "not", 0), (2, "given", 0))),
    *(Rule(name, ((0, "not", 0),)) for name in ("shmget", "semget", "msgget")),  # not private
    *(Rule(name) for name in _NEVER),
)
_UNHEARD: Final = tuple(Rule("socket", ((0, "is", family), (1, "bits", 2))) for family in _INTERNET)
"""Only who reads a message sees whether it has an address: where nobody does, there are no sockets for datagrams."""

_ALLOW, _REFUSE, _NOTIFY = 0x7FFF0000, 0x00050000 | 13, 0x7FC00000
"""``SECCOMP_RET_*``; the one in the middle with ``EACCES``."""
_X32: Final = 0x40000000
"""Calls of the x32 interface of x86_64 have this bit."""
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_BITS, _GIVE, _GO = 0x20, 0x15, 0x35, 0x45, 0x06, 0x05
_FLAGS: Final = 2
"""Argument of ``sendmsg``."""


def program(machine: Machine, *, heard: bool, pass_flags: int = 0) -> bytes:
    """The filter, as an array of ``struct sock_filter``.

    Args:
        machine: the processor.
        heard: somebody listens and judges what is stopped.
        pass_flags: a ``sendmsg`` with these flags is let through, as it hands over the descriptor to listen on.
    """
    code = _is(_LOAD, 4) + _is(_IF_EQUAL, machine.arch, 1, 0) + _is(_GIVE, _REFUSE)
    code += _is(_LOAD, 0) + _is(_IF_AT_LEAST, _X32, 0, 1) + _is(_GIVE, _REFUSE)
    if pass_flags:
        code += _when(
            machine.numbers["sendmsg"], _alternative(((_FLAGS, "is", pass_flags),), _ALLOW) + _judged(RULES, "sendmsg", heard=heard)
        )
    rules = RULES if heard else (*_UNHEARD, *RULES)
    for name in dict.fromkeys(rule.call for rule in rules):
        if name in machine.numbers:
            code += _when(machine.numbers[name], _judged(rules, name, heard=heard))
    return code + _is(_GIVE, _ALLOW)


def _judged(rules: Sequence[Rule], name: str, *, heard: bool) -> bytes:
    verdict = {rule: (_NOTIFY if heard else _REFUSE if rule.silent == "refuse" else _ALLOW) if rule.stops else _REFUSE for rule in rules}
    return b"".join(_alternative(rule.conditions, verdict[rule]) for rule in rules if rule.call == name) + _is(_GIVE, _ALLOW)


def _when(number: int, body: bytes) -> bytes:
    """The body ends with an answer of its own. A jump of 8 bits may be too short for it."""
    return _is(_IF_EQUAL, number, 1, 0) + _is(_GO, len(body) // 8) + body


def _alternative(conditions: Sequence[_Condition], answer: int) -> bytes:
    code = _is(_GIVE, answer)
    for argument, kind, value in reversed(conditions):
        low, rest = 16 + 8 * argument, len(code) // 8
        if kind == "given":
            code = _is(_LOAD, low) + _is(_IF_EQUAL, 0, 0, 2) + _is(_LOAD, low + 4) + _is(_IF_EQUAL, 0, rest, 0) + code
        else:
            jumps = {"bits": (_IF_BITS, 0, rest), "is": (_IF_EQUAL, 0, rest), "not": (_IF_EQUAL, rest, 0)}
            operation, true, false = jumps[kind]
            code = _is(_LOAD, low) + _is(operation, value, true, false) + code
    return code


def _is(operation: int, value: int, true: int = 0, false: int = 0) -> bytes:
    return struct.pack("=HBBI", operation, true, false, value)
