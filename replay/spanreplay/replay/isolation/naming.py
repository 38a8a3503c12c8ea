"""Naming what the kernel stops: the replaying program hears of each system call that seccomp holds, reads its address, and refuses it.

A process that is confined leaves ``SCRATCH/held/PID-FD``, the descriptor through which its kernel tells. The replaying program, its
ancestor, takes that over (``pidfd_getfd``) and answers with ``PID-FD.taken``. See seccomp_unotify(2).
"""

import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Self
from urllib.parse import urlsplit

from spanreplay.replay.isolation.reachable import Address, Reachable
from spanreplay.replay.isolation.refusal import Action, Refusal
from spanreplay.replay.reexecution.ledger import Ledger

HELD: Final = "held"
_TAKEN: Final = ".taken"
_PATIENCE_S: Final = 2.0
_LOOK_S: Final = 0.01
_RECEIVE, _ANSWER = 0xC0502100, 0xC0182101
"""``SECCOMP_IOCTL_NOTIF_RECV`` and ``_SEND``."""
_NOTICE: Final = "=QIIiIQ6Q"
"""``struct seccomp_notif``: id, pid, flags, then ``struct seccomp_data``."""
_CONTINUE: Final = 1
_GETFD: Final = 438
_CONNECT: Final = frozenset({42, 203})
_SENDTO: Final = frozenset({44, 206})
_SENDMSG: Final = frozenset({46, 211})
_LONGEST: Final = 128
"""Bytes of an address: ``sizeof(struct sockaddr_storage)``."""
_LOOKED_UP: Final = ("/var/run/nscd/socket", "/run/nscd/socket", "/run/systemd/userdb", "/run/systemd/resolve")
"""Where the C library asks for names and users before it looks into files: no act of the program's own."""
_DNS: Final = 53
_OTLP: Final = 4317
_ENDPOINTS: Final = tuple(f"OTEL_EXPORTER_OTLP_{signal}ENDPOINT" for signal in ("", "TRACES_", "METRICS_", "LOGS_"))


class Stopped(NamedTuple):
    """A system call that was stopped."""

    action: Action
    target: str
    port: int
    mild: bool
    host: str = ""
    """Numeric address, or path of a Unix socket."""


def hand_over(scratch: Path, listener: int) -> bool:
    """Offer a listener to the replaying program; tells whether it has taken it. For the process that is confined."""
    offer = scratch / HELD / f"{os.getpid()}-{listener}"
    taken = offer.with_name(offer.name + _TAKEN)
    try:
        offer.touch()
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            if taken.exists():
                return True
            time.sleep(_LOOK_S / 4)
    except OSError:
        pass
    return False


class Watch:
    """Names what is stopped in the processes of a replayed command, while it runs. For the replaying program.

    Args:
        scratch: of the replay.
        ledger: each is entered there.
        environment: of the command; connections to the port of an OTLP exporter in it are telemetry, which counts as none.
        allow_connect: hosts and ports that are let through, see :mod:`spanreplay.replay.isolation.reachable`. What is let through is what
            the process had in memory when it was looked at: it keeps honest code from acting by accident.
    """

    def __init__(self, scratch: Path, ledger: Ledger, environment: Mapping[str, str], *, allow_connect: Sequence[Address] = ()) -> None:
        self._folder = scratch / HELD
        self._folder.mkdir()
        self._ledger = ledger
        self._reachable = Reachable(allow_connect, scratch)
        self._telemetry = {_OTLP, *(port for name in _ENDPOINTS if (port := _port(environment.get(name, ""))))}
        self._ended = threading.Event()
        self._listeners: list[int] = []
        self._thread = threading.Thread(target=self._watch, name="spanreplay-kernel", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        for listener in self._listeners:
            os.close(listener)

    def _watch(self) -> None:
        poll = select.poll()
        seen: set[str] = set()
        while not self._ended.is_set():
            for offer in self._offers(seen):
                listener = _take(offer)
                if listener is not None:
                    self._listeners.append(listener)
                    poll.register(listener, select.POLLIN)
                    offer.with_name(offer.name + _TAKEN).touch()
            for listener, event in poll.poll(_LOOK_S * 1000):
                if event & select.POLLIN:
                    self._answer(listener)
                elif event & (select.POLLHUP | select.POLLERR | select.POLLNVAL):  # no process is left that it tells of
                    poll.unregister(listener)

    def _is_let_through(self, stopped: Stopped) -> bool:
        if not self._reachable or not stopped.host:
            return False
        asks_for_a_name = stopped.port == _DNS or stopped.host.startswith(_LOOKED_UP)
        return (asks_for_a_name and self._reachable.looks_up) or self._reachable.holds(stopped.host, stopped.port)

    def _offers(self, seen: set[str]) -> list[Path]:
        names = {name for name in os.listdir(self._folder) if not name.endswith(_TAKEN)} - seen  # noqa: PTH208 — a look every few ms
        seen |= names
        return [self._folder / name for name in sorted(names)]

    def _answer(self, listener: int) -> None:
        buffer = bytearray(struct.calcsize(_NOTICE))
        try:
            fcntl.ioctl(listener, _RECEIVE, buffer, True)
        except OSError:  # the process is gone
            return
        number, pid, _, call, _, _, *arguments = struct.unpack(_NOTICE, bytes(buffer))
        stopped = _read(pid, call, arguments)
        if stopped is not None and self._is_let_through(stopped):
            stopped = None
        answer = struct.pack("=QqiI", number, 0, 0 if stopped is None else -errno.EACCES, _CONTINUE if stopped is None else 0)
        with suppress(OSError):
            fcntl.ioctl(listener, _ANSWER, bytearray(answer), True)
        if stopped is None:
            return
        if stopped.port in self._telemetry:
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


def _port(endpoint: str) -> int | None:
    try:
        return urlsplit(endpoint if "//" in endpoint else f"//{endpoint}").port
    except ValueError:
        return None


def _take(offer: Path) -> int | None:
    pid, _, descriptor = offer.name.partition("-")
    try:
        process = os.pidfd_open(int(pid))
    except (OSError, ValueError):
        return None
    try:
        taken: int = ctypes.CDLL(None, use_errno=True).syscall(_GETFD, process, int(descriptor), 0)
        return taken if taken >= 0 else None
    finally:
        os.close(process)


def _read(pid: int, call: int, arguments: list[int]) -> Stopped | None:
    """What was stopped; ``None`` for what may go on: a message that has no address."""
    if call in _CONNECT:
        return _told("connect", _memory(pid, arguments[1], min(arguments[2], _LONGEST)))
    if call in _SENDTO:
        return _told("send", _memory(pid, arguments[4], min(arguments[5], _LONGEST)))
    header = _memory(pid, arguments[1], 12)
    if len(header) < 12:
        return Stopped("send", "an address that cannot be read", 0, False)
    address, size = struct.unpack("=QI", header)
    if not address:
        return None
    return _told("send", _memory(pid, address, min(size, _LONGEST)))


def _told(action: Action, address: bytes) -> Stopped:
    family = struct.unpack("=H", address[:2])[0] if len(address) >= 2 else -1
    if family == socket.AF_INET and len(address) >= 8:
        port = struct.unpack(">H", address[2:4])[0]
        host = socket.inet_ntop(socket.AF_INET, address[4:8])
        return Stopped(action, f"{host}:{port}", port, port == _DNS, host)
    if family == socket.AF_INET6 and len(address) >= 24:
        port = struct.unpack(">H", address[2:4])[0]
        host = socket.inet_ntop(socket.AF_INET6, address[8:24])
        return Stopped(action, f"[{host}]:{port}", port, port == _DNS, host)
    if family == socket.AF_UNIX:
        path = address[2:].split(b"\0", 1)[0].decode("utf-8", "replace")
        return Stopped(action, path or "an abstract Unix socket", 0, path.startswith(_LOOKED_UP), path)
    mild = family == socket.AF_UNSPEC or family not in (socket.AF_INET, socket.AF_INET6)  # the end of a connection, netlink
    return Stopped(action, f"an address of family {family}", 0, mild)


def _memory(pid: int, address: int, size: int) -> bytes:
    try:
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            return memory.read(size) or b""
    except (OSError, ValueError, OverflowError):
        return b""
