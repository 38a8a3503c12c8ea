"""From an audit event to the act it announces, or to nothing when the act stays inside.

The events and their arguments are those of the table "Audit events" in the Python documentation, as raised by CPython 3.11 to 3.14.
A rule may raise: arguments that it cannot read count as an act outside.
"""

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from spanreplay.replay.isolation import addresses
from spanreplay.replay.isolation.paths import Territory, exists
from spanreplay.replay.isolation.refusal import Act, Action

Args: TypeAlias = tuple[Any, ...]
Rule: TypeAlias = Callable[[Args, Territory], Act | None]

_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_LONGEST: Final = 200


def _at(args: Args, index: int) -> object:
    return args[index] if len(args) > index else -1


def _open(args: Args, territory: Territory) -> Act | None:
    path, mode, flags = args
    writes = isinstance(mode, str) and any(letter in mode for letter in "wax+")
    if not writes and not (isinstance(flags, int) and flags & _WRITING):
        return None
    if isinstance(path, int):
        return None  # opened before, and judged then
    target = territory.outside(path)
    return None if target is None else Act(action="write", target=target)


def _changes(action: Action, *, dir_fd: int, follow: bool, needs: bool | None) -> Rule:
    """Build the rule of an event whose first argument is the path.

    Args:
        action: what the act is called.
        dir_fd: position of the ``dir_fd`` argument.
        follow: whether the act goes through a symbolic link.
        needs: True when the act fails without effect unless the path exists, False when it fails if it exists, None for neither.
    """

    def rule(args: Args, territory: Territory) -> Act | None:
        path, start = args[0], _at(args, dir_fd)
        target = territory.outside(path, dir_fd=start, follow=follow)
        if target is None or (needs is not None and not isinstance(path, int) and exists(path, start) is not needs):
            return None
        return Act(action=action, target=target)

    return rule


def _rename(args: Args, territory: Territory) -> Act | None:
    source, destination = args[0], args[1]
    if not exists(source, _at(args, 2)):
        return None
    moved = territory.outside(source, dir_fd=_at(args, 2), follow=False)
    made = territory.outside(destination, dir_fd=_at(args, 3), follow=False)
    if moved is None and made is None:
        return None
    return Act(action="rename", target=f"{moved or os.fsdecode(source)} to {made or os.fsdecode(destination)}")


def _link(args: Args, territory: Territory) -> Act | None:
    source, destination = args[0], args[1]
    # A second name in scratch for a file outside would make every later write to it look harmless.
    shared = territory.outside(source, dir_fd=_at(args, 2))
    made = territory.outside(destination, dir_fd=_at(args, 3), follow=False)
    if shared is None and made is None:
        return None
    return Act(action="link", target=f"{os.fsdecode(destination)} for {os.fsdecode(source)}")


def _symlink(args: Args, territory: Territory) -> Act | None:
    made = territory.outside(args[1], dir_fd=_at(args, 2), follow=False)
    return None if made is None or exists(args[1], _at(args, 2)) else Act(action="link", target=made)


def _sqlite(args: Args, territory: Territory) -> Act | None:
    path = addresses.sqlite_file(os.fsdecode(args[0]))
    if path is None:
        return None
    target = territory.outside(path)
    return None if target is None else Act(action="database", target=target)


def _connect(args: Args, territory: Territory) -> Act | None:
    return _reached("connect", args[1], territory)


def _send(args: Args, territory: Territory) -> Act | None:
    return None if args[1] is None else _reached("send", args[1], territory)


def _reached(action: Action, address: object, territory: Territory) -> Act | None:
    if isinstance(address, str | bytes) and territory.in_scratch(address):
        return None  # a socket that a process of the replay listens at
    host, port = addresses.host_and_port(address)
    return Act(action=action, target=addresses.shown(address), host=host, port=port)


def _lookup(args: Args, _territory: Territory) -> Act | None:
    name = args[0]
    if addresses.is_local_answer(name):
        return None
    shown = addresses.text(name)
    port = addresses.text(_at(args, 1))
    own = shown.lower() == os.uname().nodename.lower()
    return Act(action="lookup", target=shown, host=shown, port=int(port) if port.isdecimal() else 0, mild=own)


def _reverse(args: Args, _territory: Territory) -> Act | None:
    address = args[0][0] if isinstance(args[0], tuple) else args[0]
    if addresses.is_loopback(address):
        return None
    shown = addresses.text(address)
    return Act(action="lookup", target=shown, host=shown, mild=shown.lower() == os.uname().nodename.lower())


def _bind(args: Args, territory: Territory) -> Act | None:
    sock, address = args[0], args[1]
    if isinstance(address, str | bytes):  # AF_UNIX: a node in the file system, or an abstract name that leaves nothing
        if not address or addresses.text(address).startswith("\0"):
            return None
        target = territory.outside(address, follow=False)
        return None if target is None else Act(action="bind", target=target)
    if addresses.binds_inside(int(sock.family), address):
        return None
    return Act(action="bind", target=addresses.shown(address))


def _process(position: int) -> Rule:
    def rule(args: Args, _territory: Territory) -> Act:
        command = args[position] or args[0]
        return Act(action="process", target=_command(command))

    return rule


def _fork(_args: Args, _territory: Territory) -> Act:
    return Act(action="process", target="(a copy of this process)")


def _kill(args: Args, _territory: Territory) -> Act | None:
    pid, number = args[0], args[1]
    if number == 0 or pid == os.getpid():
        return None
    return Act(action="signal", target=f"process {pid} (signal {number})")


def _killpg(args: Args, _territory: Territory) -> Act | None:
    return None if args[1] == 0 else Act(action="signal", target=f"process group {args[0]} (signal {args[1]})")


def _pidfd(args: Args, _territory: Territory) -> Act | None:
    return None if args[1] == 0 else Act(action="signal", target=f"the process of descriptor {args[0]} (signal {args[1]})")


def _controls(position: int) -> Rule:
    def rule(args: Args, _territory: Territory) -> Act | None:
        process = args[position]
        if process in (0, os.getpid()) and (position == 0 or args[0] == os.PRIO_PROCESS):
            return None
        return Act(action="control", target=f"process {process}")

    return rule


def _limits(args: Args, territory: Territory) -> Act | None:
    return None if args[2] is None else _controls(0)(args, territory)


def _plain(action: Action, position: int) -> Rule:
    def rule(args: Args, _territory: Territory) -> Act:
        return Act(action=action, target=str(args[position])[:_LONGEST])

    return rule


def _command(command: object) -> str:
    if isinstance(command, str | bytes | os.PathLike):
        words = os.fsdecode(command)
    elif isinstance(command, Sequence):
        words = shlex.join(os.fsdecode(word) for word in command)
    else:
        words = str(command)
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


_MADE: Final = _changes("create", dir_fd=2, follow=False, needs=False)
_NODE: Final = _changes("create", dir_fd=sys.maxsize, follow=False, needs=False)

RULES: Final[Mapping[str, Rule]] = {
    "open": _open,
    "os.mkdir": _MADE,
    "os.remove": _changes("delete", dir_fd=1, follow=False, needs=True),
    "os.rmdir": _changes("delete", dir_fd=1, follow=False, needs=True),
    "os.rename": _rename,
    "os.link": _link,
    "os.symlink": _symlink,
    "os.truncate": _changes("write", dir_fd=sys.maxsize, follow=True, needs=True),
    "os.chmod": _changes("metadata", dir_fd=2, follow=True, needs=True),
    "os.chown": _changes("metadata", dir_fd=3, follow=True, needs=True),
    "os.chflags": _changes("metadata", dir_fd=sys.maxsize, follow=True, needs=True),
    "os.utime": _changes("metadata", dir_fd=3, follow=True, needs=True),
    "os.setxattr": _changes("metadata", dir_fd=sys.maxsize, follow=True, needs=True),
    "os.removexattr": _changes("metadata", dir_fd=sys.maxsize, follow=True, needs=True),
    "sqlite3.connect": _sqlite,
    "socket.connect": _connect,
    "socket.sendto": _send,
    "socket.sendmsg": _send,
    "socket.getaddrinfo": _lookup,
    "socket.gethostbyname": _lookup,
    "socket.gethostbyaddr": _reverse,
    "socket.getnameinfo": _reverse,
    "socket.bind": _bind,
    "socket.sethostname": _plain("metadata", 0),
    "subprocess.Popen": _process(1),
    "os.system": _process(0),
    "os.exec": _process(1),
    "os.posix_spawn": _process(1),
    "os.spawn": _process(2),
    "os.startfile": _process(0),
    "_winapi.CreateProcess": _process(1),
    "os.fork": _fork,
    "os.forkpty": _fork,
    "pty.spawn": _process(0),
    "os.kill": _kill,
    "os.killpg": _killpg,
    "resource.prlimit": _limits,
    "sys.remote_exec": _controls(0),  # Python 3.14
    "syslog.syslog": _plain("syslog", 1),
    # Not audit events: functions that raise none and are wrapped instead, see hook.py.
    "_posixsubprocess.fork_exec": _process(0),
    "os.mkfifo": _NODE,
    "os.mknod": _NODE,
    "os.sched_setaffinity": _controls(0),
    "os.sched_setparam": _controls(0),
    "os.sched_setscheduler": _controls(0),
    "os.setpriority": _controls(1),
    "signal.pidfd_send_signal": _pidfd,
}
"""Event name to rule. An event that is not here is left alone."""
