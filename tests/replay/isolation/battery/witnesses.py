"""The world that an act may touch, a new one for each, and what has happened to it."""

import ctypes
import hashlib
import os
import selectors
import shutil
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_libc: Any = ctypes.CDLL(None, use_errno=True)
_libc.shmat.restype = ctypes.c_void_p
_libc.sem_open.restype = ctypes.c_void_p


@dataclass(kw_only=True)
class Made:
    """One world, and what lies in it."""

    act: str
    out: Path
    port: int
    abstract: str
    name: str
    key: int
    victim: "subprocess.Popen[bytes] | None"
    before: str = ""

    def told(self) -> dict[str, Any]:
        """For the program that acts."""
        victim = 0 if self.victim is None else self.victim.pid
        return {"out": str(self.out), "port": self.port, "abstract": self.abstract, "victim": victim, "name": self.name, "key": self.key}


@dataclass
class Ears:
    """Listens on every port and socket; answers all alike."""

    heard: dict[str, bytes] = field(default_factory=dict)
    _poll: selectors.DefaultSelector = field(default_factory=selectors.DefaultSelector)
    _sockets: list[socket.socket] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, name="ears")

    def listen(self, act: str, out: Path, abstract: str) -> int:
        """Listen in every way on behalf of an act; returns the port."""
        tcp = socket.create_server(("127.0.0.1", 0))
        port: int = tcp.getsockname()[1]
        udp = socket.socket(type=socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", port))
        unix, unnamed = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        here = Path.cwd()
        os.chdir(out)  # the path of a socket is short
        unix.bind("s")
        os.chdir(here)
        unnamed.bind("\0" + abstract)
        for one in (unix, unnamed):
            one.listen()
        for one in (tcp, udp, unix, unnamed):
            one.setblocking(False)
            self._sockets.append(one)
            self._poll.register(one, selectors.EVENT_READ, (act, one is not udp))
        return port

    def start(self) -> None:
        """Until :meth:`rest`."""
        self._thread.start()

    def _run(self) -> None:
        while (ready := self._poll.select(0.02)) or not self._ended.is_set():
            for key, _ in ready:
                act, listens = key.data
                one: Any = key.fileobj
                with suppress(OSError):
                    if listens:
                        connection, _ = one.accept()
                        self.heard[act] = self.heard.get(act, b"")
                        self._sockets.append(connection)
                        connection.setblocking(False)
                        self._poll.register(connection, selectors.EVENT_READ, (act, False))
                        continue
                    said = one.recv(1000)
                    self.heard[act] = self.heard.get(act, b"") + said
                    if said and one.type == socket.SOCK_STREAM:
                        one.send(b"HTTP/1.1 500 no\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                    if one.type == socket.SOCK_STREAM:
                        self._poll.unregister(one)
                        one.close()

    def rest(self) -> None:
        """Hear what is still on its way, and no more."""
        self._ended.set()
        self._thread.join()

    def close(self) -> None:
        """Close everything."""
        for one in self._sockets:
            one.close()
        self._poll.close()


@contextmanager
def worlds(folder: Path, acts: dict[str, bool]) -> Iterator[tuple[dict[str, Made], Ears]]:
    """A world for each act.

    Args:
        folder: holds them.
        acts: name to whether it needs a victim.
    """
    ears = Ears()
    made = {name: _world(folder / name, name, victim, ears) for name, victim in acts.items()}
    for one in made.values():
        one.before = state(one)
    ears.start()
    try:
        yield made, ears
    finally:
        ears.rest()
        ears.close()
        for one in made.values():
            _clear(one)
        shutil.rmtree(folder)


def _world(out: Path, act: str, victim: bool, ears: Ears) -> Made:
    (out / "folder").mkdir(parents=True)
    (out / "there").write_text("untouched")
    (out / "locked").write_text("locked")
    (out / "folder" / "inner").mkdir()
    number = hashlib.sha256(str(out).encode()).digest()
    name, key = f"/srp-{number.hex()[:12]}", struct.unpack("=I", number[:4])[0] >> 1 | 1
    abstract = f"srp-{number.hex()[:12]}"
    port = ears.listen(act, out, abstract)
    Path(f"/dev/shm{name}").write_bytes(b"untouched")
    semaphore = _libc.sem_open(name.encode(), os.O_CREAT, 0o600, 1)
    _libc.sem_close(ctypes.c_void_p(semaphore))
    smallest = (ctypes.c_long * 8)(0, 2, 8)  # a user has memory for few large ones
    queue = _libc.mq_open(name.encode(), os.O_CREAT | os.O_RDONLY, 0o600, smallest)
    if queue >= 0:
        os.close(queue)
    _libc.shmget(key, 4096, 0o1600)
    _libc.msgget(key, 0o1600)
    _libc.semget(key, 1, 0o1600)
    process = None
    if victim:
        mine, its = socket.socketpair()
        process = subprocess.Popen(["sleep", "1000"], stdin=its.fileno(), start_new_session=True)
        its.close()
        process.said = mine  # type: ignore[attr-defined]
    return Made(act=act, out=out, port=port, abstract=abstract, name=name, key=key, victim=process)


def _clear(made: Made) -> None:
    for prefix in ("", "sem."):
        Path(f"/dev/shm/{prefix}{made.name[1:]}").unlink(missing_ok=True)
    _libc.mq_unlink(made.name.encode())
    _libc.shmctl(_libc.shmget(made.key, 0, 0), 0, None)
    _libc.msgctl(_libc.msgget(made.key, 0), 0, None)
    _libc.semctl(_libc.semget(made.key, 0, 0), 0, 0)
    if made.victim is not None:
        made.victim.kill()
        made.victim.wait()
        made.victim.said.close()  # type: ignore[attr-defined]


def state(made: Made) -> str:
    """All that can be seen of a world, as text: any difference is an act that got out."""
    lines = []
    for path in sorted(made.out.rglob("*")):
        about = path.lstat()
        kept = [about.st_mode, about.st_uid, about.st_gid, about.st_nlink, about.st_mtime_ns, os.listxattr(path, follow_symlinks=False)]
        text = path.read_bytes()[:100] if path.is_file() else b""
        lines.append(f"{path.relative_to(made.out)} {kept} {text!r} {_flags(path)!r}")
    for prefix in ("", "sem."):
        shared = Path(f"/dev/shm/{prefix}{made.name[1:]}")
        lines.append(f"{shared} {shared.read_bytes().hex() if shared.exists() else None}")
    lines += [f"queue {_queued(made)}", f"memory {_memory(made)!r}", f"messages {_messages(made)}"]
    if made.victim is not None:
        lines.append(_process(made.victim))
    return "\n".join(lines)


def _flags(path: Path) -> bytes:
    if not path.is_file():
        return b""
    import fcntl

    try:
        with path.open() as file:
            return fcntl.ioctl(file.fileno(), 0x80086601, bytes(8))
    except OSError:
        return b""


def _queued(made: Made) -> int | None:
    queue = _libc.mq_open(made.name.encode(), os.O_RDONLY | os.O_NONBLOCK)
    if queue < 0:
        return None
    attributes = (ctypes.c_long * 8)()
    _libc.mq_getattr(queue, attributes)
    os.close(queue)
    return attributes[3]


def _memory(made: Made) -> bytes | None:
    number = _libc.shmget(made.key, 0, 0)
    at = _libc.shmat(number, None, 0o10000) if number >= 0 else None
    if at in (None, 2**64 - 1):
        return None
    found = ctypes.string_at(at, 4)
    _libc.shmdt(ctypes.c_void_p(at))
    return found


def _messages(made: Made) -> int | None:
    about = ctypes.create_string_buffer(200)
    number = _libc.msgget(made.key, 0)
    if number < 0 or _libc.msgctl(number, 2, about) < 0:
        return None
    return int(struct.unpack_from("=Q", about, 80)[0])  # msg_qnum


def _process(process: "subprocess.Popen[bytes]") -> str:
    if process.poll() is not None:
        return f"ended with {process.returncode}"
    root = Path(f"/proc/{process.pid}")
    status = [line for line in (root / "status").read_text().splitlines() if line.startswith(("Tracer", "Cpus_allowed_list", "State"))]
    stack = next(line for line in (root / "maps").read_text().splitlines() if "[stack]" in line)
    with (root / "mem").open("rb", buffering=0) as memory:
        memory.seek(int(stack.split()[0].split("-")[1], 16) - 16)
        last = memory.read(16)
    priority = _libc.syscall(252, 1, process.pid)
    said: Any = process.said  # type: ignore[attr-defined]
    said.setblocking(False)
    try:
        heard = said.recv(10)
    except BlockingIOError:
        heard = b""
    scheduled = os.sched_getscheduler(process.pid)
    limits = next(line for line in (root / "limits").read_text().splitlines() if line.startswith("Max open files"))
    score = (root / "oom_score_adj").read_text()
    return str([status, last, os.getpriority(os.PRIO_PROCESS, process.pid), priority, heard, scheduled, limits, score])
