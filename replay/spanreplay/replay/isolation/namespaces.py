"""Namespaces of a replayed command: a network of its own, and a view of the file system of its own.

They need no privilege where the machine lets users have them (``unshare(2)``, ``user_namespaces(7)``); many containers do not.
"""

import ctypes
import os
from pathlib import Path
from typing import Final

from spanreplay.replay.isolation.kernel import NotOfferedError

NEW_MOUNTS: Final = 0x00020000
NEW_NETWORK: Final = 0x40000000
_NEW_USER: Final = 0x10000000


def enter(namespace: int) -> None:
    """Put this process, and every child it will have, into a new namespace. For a process of one thread.

    User and group stay what they are.

    Raises:
        NotOfferedError: the machine does not allow it; nothing has been changed.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "unshare"):
        raise NotOfferedError("this system has no namespaces")
    if libc.unshare(namespace) == 0:
        return
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_NEW_USER | namespace):  # who is no administrator becomes one, of a namespace of users
        raise NotOfferedError(f"the machine allows no namespace here: {os.strerror(ctypes.get_errno())}")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(text, encoding="ascii")
