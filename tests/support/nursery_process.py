"""Starts programs in forks of a process that has imported what takes long, as a server that forks its workers does.

``nursery_process.py SOCKET MODULE…``, where ``package.*`` is all modules of a package. On a connection to the socket comes one job: a line
of JSON, ``{"argv", "environment", "folder"}``, where ``argv`` is what would follow ``python``, and the descriptors of the three standard
streams; the answer is the exit code, negative for a signal. It ends with its own standard input. Uses the standard library alone, so that
a program finds nothing of ours that it was not told to import.
"""

import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys

_JOB_BYTES = 1_000_000


def _import(name: str) -> None:
    package = importlib.import_module(name.removesuffix(".*"))
    if name.endswith(".*"):
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")


def _take(connection: socket.socket) -> None:
    """Read a job; return in the fork that is to be the program."""
    data, streams, _, _ = socket.recv_fds(connection, _JOB_BYTES, 3)
    while not data.endswith(b"\n"):
        data += connection.recv(_JOB_BYTES)
    child = os.fork()
    if child == 0:
        connection.close()
        _become(json.loads(data), streams)
        return
    for descriptor in streams:
        os.close(descriptor)
    _, status = os.waitpid(child, 0)
    connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _become(job: dict[str, object], streams: list[int]) -> None:
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(str(job["folder"]))
    os.environ.clear()
    os.environ.update(job["environment"])  # type: ignore[call-overload]
    sys.argv = list(job["argv"])  # type: ignore[call-overload]


for wanted in sys.argv[2:]:
    _import(wanted)
gc.freeze()  # the forks need not look at it
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(16)
print("ready", flush=True)
while listener in select.select([listener, sys.stdin], [], [])[0]:
    accepted, _ = listener.accept()
    if os.fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listener.close()
        _take(accepted)
        break
    accepted.close()
else:
    raise SystemExit
if sys.argv[0] == "-m":
    sys.path[0] = os.getcwd()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    sys.path[0] = os.path.dirname(sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")
