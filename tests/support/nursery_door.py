"""``nursery_door.py SOCKET ARGV…``: runs ``python ARGV`` in a fork of a nursery, on this process's own standard streams.

Started for every command of a page: the standard library alone, and little of it.
"""

import json
import os
import socket
import sys


def asked(address: str, job: object, streams: list[int]) -> int:
    """Have a program run to its end; gives its exit code, negative for a signal."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        data = json.dumps(job).encode() + b"\n"
        sent = socket.send_fds(connection, [data], streams)
        connection.sendall(data[sent:])
        return int(connection.recv(16))


if __name__ == "__main__":
    code = asked(sys.argv[1], {"argv": sys.argv[2:], "environment": dict(os.environ), "folder": os.getcwd()}, [0, 1, 2])
    sys.exit(code if code >= 0 else 128 - code)
