"""A network of its own for a replayed command (``--isolate=net``): there is a loopback interface in it, and no more.

Sockets in the file system, such as that of Docker, are no part of the network: level 2 refuses them.
"""

import socket
import struct
from typing import Final

from spanreplay.replay.isolation.namespaces import NEW_NETWORK, enter

_GET_FLAGS, _SET_FLAGS = 0x8913, 0x8914
_REQUEST: Final = "16sH14x"
"""``struct ifreq`` with flags."""
_UP: Final = 1


def leave_network() -> None:
    """Take this process, and every child it will have, out of the machine's network. For a process of one thread.

    Raises:
        NotOfferedError: the machine does not allow it; nothing has been changed.
    """
    import fcntl

    enter(NEW_NETWORK)
    with socket.socket(type=socket.SOCK_DGRAM) as any_socket:
        flags = struct.unpack(_REQUEST, fcntl.ioctl(any_socket, _GET_FLAGS, struct.pack(_REQUEST, b"lo", 0)))[1]
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack(_REQUEST, b"lo", flags | _UP))
