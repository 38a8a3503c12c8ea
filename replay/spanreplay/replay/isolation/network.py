"""A network of its own for a replayed command (``--isolate=net``): a network namespace, in which there is a loopback interface and no more.

It needs no privilege where the machine lets users have namespaces (``unshare(2)``, ``user_namespaces(7)``): many containers do not.
Sockets in the file system, such as that of Docker, are no part of the network: level 2 refuses them.
"""

import ctypes
import os
import socket
import struct
from pathlib import Path
from typing import Final

from spanreplay.replay.isolation.kernel import NotOfferedError

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_GET_FLAGS, _SET_FLAGS = 0x8913, 0x8914
_REQUEST: Final = "16sH14x"
"""``struct ifreq`` with flags."""
_UP: Final = 1


def leave_network() -> None:
    """Take this process, and every child it will have, out of the machine's network. For a process of one thread.

    User and group stay what they are.

    Raises:
        NotOfferedError: the machine does not allow it; nothing has been changed.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "unshare"):
        raise NotOfferedError("this system has no network namespaces")
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_NEW_NETWORK):  # who is no administrator needs to become one, of a namespace of users
        if libc.unshare(_NEW_USER | _NEW_NETWORK):
            raise NotOfferedError(f"the machine allows no network namespace here: {os.strerror(ctypes.get_errno())}")
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            Path("/proc/self", name).write_text(text, encoding="ascii")
    _raise_loopback()


def _raise_loopback() -> None:
    import fcntl

    with socket.socket(type=socket.SOCK_DGRAM) as any_socket:
        flags = struct.unpack(_REQUEST, fcntl.ioctl(any_socket, _GET_FLAGS, struct.pack(_REQUEST, b"lo", 0)))[1]
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack(_REQUEST, b"lo", flags | _UP))
