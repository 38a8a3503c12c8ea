"""A socket that listens and was never bound: the kernel gives it a port at every address of the machine, see listen(2)."""

import ctypes
import os
import platform
import socket
from contextlib import suppress
from typing import Final

from spanreplay.replay.isolation.system_calls import MACHINES

_INTERNET: Final = (socket.AF_INET, socket.AF_INET6)


def is_unbound(process: int, descriptor: int) -> bool:
    """Whether a descriptor of a process is such a socket; False where it cannot be seen."""
    with suppress(OSError, KeyError, AttributeError):
        held = os.pidfd_open(process)
        try:
            copy = ctypes.CDLL(None, use_errno=True).syscall(MACHINES[platform.machine()].numbers["pidfd_getfd"], held, descriptor, 0)
        finally:
            os.close(held)
        if copy >= 0:
            with socket.socket(fileno=copy) as seen:
                return seen.family in _INTERNET and seen.getsockname()[1] == 0
    return False
