"""Judging and naming what the kernel stops: the replaying program hears of each system call that seccomp holds, and answers it.

A process that is to be confined connects to a Unix socket of the replaying program first, sends the descriptor through which its kernel
tells (``SCM_RIGHTS``), and waits until that has been taken. See seccomp_unotify(2).
"""

import array
import errno
import fcntl
import os
import platform
import select
import socket
import struct
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from spanreplay.replay.isolation.judging import DNS, LOOKED_UP, Judge
from spanreplay.replay.isolation.paths import Territory
from spanreplay.replay.isolation.reachable import Address, Reachable
from spanreplay.replay.isolation.refusal import Refusal
from spanreplay.replay.isolation.shared_memory import SharedMemory
from spanreplay.replay.isolation.stopped_call import Call, Stopped
from spanreplay.replay.isolation.system_calls import MACHINES
from spanreplay.replay.reexecution.ending import leave_mark
from spanreplay.replay.reexecution.ledger import Ledger
from spanreplay.replay.reexecution.plan import ENDS

_PATIENCE_S: Final = 2.0
_TAKEN: Final = b"t"
_LOOK_MS: Final = 10
_RECEIVE, _ANSWER = 0xC0502100, 0xC0182101
"""``SECCOMP_IOCTL_NOTIF_RECV`` and ``_SEND``."""
_NOTICE: Final = "=QIIiIQ6Q"
"""``struct seccomp_notif``: id, pid, flags, then ``struct seccomp_data``."""
_CONTINUE: Final = 1
_NOT_PERMITTED: Final = frozenset({"signal", "control", "machine"})
"""What fails with ``EPERM`` as these calls do; the rest fails with ``EACCES``."""
_OTLP: Final = 4317
_ENDPOINTS: Final = tuple(f"OTEL_EXPORTER_OTLP_{signal}ENDPOINT" for signal in ("", "TRACES_", "METRICS_", "LOGS_"))


def _meeting_place(scratch: Path) -> str:
    """Name of an abstract socket: the path of one in a folder may be too long."""
    return "\0spanreplay-" + sha256(os.fsencode(scratch.resolve())).hexdigest()[:32]


class HandOver:
    """The way to the replaying program; :attr:`is_taken` where it waits at the other end. For the process that will be confined."""

    def __init__(self, scratch: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_PATIENCE_S)
        try:
            self._socket.connect(_meeting_place(scratch))
            self.is_taken = True
        except OSError:
            self._socket.close()
            self.is_taken = False

    def __call__(self, listener: int, flags: int) -> bool:
        """See :class:`spanreplay.replay.isolation.kernel.HandOver`."""
        try:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))]
            self._socket.sendmsg([struct.pack("=i", os.getpid())], rights, flags)
            return self._socket.recv(1) == _TAKEN
        except OSError:
            return False
        finally:
            self._socket.close()


class Watch:
    """Judges and names what is stopped in the processes of a replayed command, while it runs. For the replaying program.

    Args:
        scratch: of the replay.
        ledger: each is entered there, before the process hears of it.
        environment: of the command; connections to the port of an OTLP exporter in it are telemetry, which counts as none.
        allow_write: files and folders that may be written, beside scratch.
        allow_connect: hosts and ports that are let through, see :mod:`spanreplay.replay.isolation.reachable`.
        state: files and folders that are copies in the view of the processes.
    """

    def __init__(
        self,
        scratch: Path,
        ledger: Ledger,
        environment: Mapping[str, str],
        *,
        allow_write: Sequence[Path] = (),
        allow_connect: Sequence[Address] = (),
        state: Sequence[Path] = (),
    ) -> None:
        self._place = _meeting_place(scratch)
        self._marks = scratch / ENDS
        self._ledger = ledger
        self._reachable = Reachable(allow_connect, scratch)
        self._telemetry = {_OTLP, *(port for name in _ENDPOINTS if (port := _port(environment.get(name, ""))))}
        self._shared = SharedMemory()
        self._first: set[int] = set()
        self._judge = Judge(Territory(scratch, allow_write, state), self._shared, self._first.__contains__)
        machine = MACHINES.get(platform.machine())
        self._names = {} if machine is None else {number: name for name, number in machine.numbers.items()}
        self._ended = threading.Event()
        self._door: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._names and hasattr(socket, "SCM_RIGHTS"):
            self._door = socket.socket(socket.AF_UNIX)
            self._door.bind(self._place)
            self._door.listen()
            self._thread = threading.Thread(target=self._watch, args=(self._door,), name="spanreplay-kernel", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._door is not None:
            self._door.close()
        self._shared.clear()

    def _watch(self, door: socket.socket) -> None:
        poll = select.poll()
        poll.register(door, select.POLLIN)
        coming: dict[int, socket.socket] = {}
        listeners: set[int] = set()
        while not self._ended.is_set():
            for descriptor, event in poll.poll(_LOOK_MS):
                if descriptor == door.fileno():
                    visitor, _ = door.accept()
                    coming[visitor.fileno()] = visitor
                    poll.register(visitor, select.POLLIN)
                elif descriptor in coming:
                    poll.unregister(descriptor)
                    with coming.pop(descriptor) as visitor:
                        if (listener := self._take(visitor)) is not None:
                            listeners.add(listener)
                            poll.register(listener, select.POLLIN)
                elif event & select.POLLIN:
                    self._answer(descriptor)
                elif event & (select.POLLHUP | select.POLLERR | select.POLLNVAL):  # no process is left that it tells of
                    poll.unregister(descriptor)
                    listeners.discard(descriptor)
                    os.close(descriptor)
        for descriptor in listeners:
            os.close(descriptor)
        for visitor in coming.values():
            visitor.close()

    def _take(self, visitor: socket.socket) -> int | None:
        try:
            said, descriptors, _, _ = socket.recv_fds(visitor, 4, 1)
        except OSError:
            return None
        if not descriptors:
            return None
        self._first.add(struct.unpack("=i", said.ljust(4, b"\0"))[0])
        with suppress(OSError):
            visitor.send(_TAKEN)
        return descriptors[0]

    def _answer(self, listener: int) -> None:
        buffer = bytearray(struct.calcsize(_NOTICE))
        try:
            fcntl.ioctl(listener, _RECEIVE, buffer, True)
        except OSError:  # the process is gone
            return
        number, pid, _, call, _, _, *arguments = struct.unpack(_NOTICE, bytes(buffer))
        try:
            stopped = self._judge.read(Call(pid, self._names.get(call, str(call)), arguments))
        except Exception:  # noqa: BLE001 — what cannot be read is refused, never let through
            stopped = Stopped("unknown", f"the system call {self._names.get(call, call)}")
        if stopped is not None and self._is_let_through(stopped):
            stopped = None
        if stopped is not None and not stopped.quiet:
            self._enter(stopped, pid)
        refused = 0 if stopped is None else -_error_of(stopped)
        answer = struct.pack("=QqiI", number, 0, refused, 0 if refused else _CONTINUE)
        with suppress(OSError):
            fcntl.ioctl(listener, _ANSWER, bytearray(answer), True)

    def _enter(self, stopped: Stopped, pid: int) -> None:
        if stopped.port in self._telemetry and stopped.action in ("connect", "send"):
            self._ledger.enter("telemetry", count=1)
            return
        self._ledger.refuse(
            Refusal(
                event="seccomp",
                action=stopped.action,
                target=stopped.target,
                fatal=not stopped.mild,
                where="C code",
                thread=f"of process {pid}",
            )
        )
        if not stopped.mild:
            leave_mark(self._marks, "alone", pid)

    def _is_let_through(self, stopped: Stopped) -> bool:
        if not self._reachable or not stopped.host or stopped.action not in ("connect", "send"):
            return False
        asks_for_a_name = stopped.port == DNS or stopped.host.startswith(LOOKED_UP)
        return (asks_for_a_name and self._reachable.looks_up) or self._reachable.holds(stopped.host, stopped.port)


def _error_of(stopped: Stopped) -> int:
    if stopped.nobody:
        return errno.ESRCH
    return errno.EPERM if stopped.action in _NOT_PERMITTED else errno.EACCES


def _port(endpoint: str) -> int | None:
    try:
        return urlsplit(endpoint if "//" in endpoint else f"//{endpoint}").port
    except ValueError:
        return None
