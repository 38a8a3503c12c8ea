"""Memory and queues that others share, system calls past the C library's own, and the machine itself."""

import ctypes
import mmap
import os
import socket
import struct
import syslog
from typing import Any

from replay.isolation.battery.registry import World, act, module

libc: Any = ctypes.CDLL(None, use_errno=True)


def address(port: int) -> bytes:
    """``struct sockaddr_in`` of 127.0.0.1."""
    return struct.pack("=H", 2) + struct.pack(">H4s8x", port, bytes([127, 0, 0, 1]))


@act()
def c_connect(w: World) -> None:
    libc.connect(libc.socket(2, 1, 0), address(w.port), 16)


@act()
def c_connect_of_a_child_thread(w: World) -> None:
    import threading

    thread = threading.Thread(target=c_connect, args=(w,))
    thread.start()
    thread.join()


@act()
def c_sendto(w: World) -> None:
    libc.sendto(libc.socket(2, 2, 0), b"x", 1, 0, address(w.port), 16)


def message(to: bytes | None, keep: list[Any]) -> bytes:
    """``struct msghdr`` of one byte."""
    body = ctypes.create_string_buffer(b"x")
    vector = ctypes.create_string_buffer(struct.pack("=QQ", ctypes.addressof(body), 1))
    name = ctypes.create_string_buffer(to or b"")
    keep += [body, vector, name]
    return struct.pack("=QI4xQQQQi4x", ctypes.addressof(name) if to else 0, len(to or b""), ctypes.addressof(vector), 1, 0, 0, 0)


@act()
def c_sendmsg(w: World) -> None:
    keep: list[Any] = []
    libc.sendmsg(libc.socket(2, 2, 0), message(address(w.port), keep), 0)


@act()
def c_sendmmsg(w: World) -> None:
    keep: list[Any] = []
    headers = message(address(w.port), keep) + bytes(8)
    libc.sendmmsg(libc.socket(2, 2, 0), headers, 1, 0)


@act()
def c_sendmmsg_behind_one_without_address(w: World) -> None:
    """The first message goes to where the socket is connected, which is the sender; the second to somebody else."""
    keep: list[Any] = []
    mine = socket.socket(type=socket.SOCK_DGRAM)
    mine.bind(("127.0.0.1", 0))
    libc.sendmmsg(mine.fileno(), message(None, keep) + bytes(8) + message(address(w.port), keep) + bytes(8), 2, 0)
    libc.sendmmsg(mine.fileno(), message(address(mine.getsockname()[1]), keep) + bytes(8) + message(address(w.port), keep) + bytes(8), 2, 0)


@act()
def c_unix_connect(w: World) -> None:
    path = str(w.out / "s").encode()
    libc.connect(libc.socket(1, 1, 0), struct.pack("=H", 1) + path + b"\0", 3 + len(path))


@act()
def c_unix_abstract(w: World) -> None:
    name = b"\0" + w.abstract.encode()
    libc.connect(libc.socket(1, 1, 0), struct.pack("=H", 1) + name, 2 + len(name))


@act()
def c_netlink(w: World) -> None:
    """Ask the kernel to raise the loopback interface, which is up, on a socket that no address is needed for."""
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    body = struct.pack("=BBHiII", 0, 0, 0, 1, 1, 1)
    libc.send(s.fileno(), struct.pack("=IHHII", 16 + len(body), 16, 5, 1, 0) + body, 16 + len(body), 0)
    s.settimeout(1)
    if struct.unpack_from("=i", s.recv(100), 16)[0] == 0:
        w.confess()


@act()
def c_netlink_to_a_process(w: World) -> None:
    """To whoever has that port, by ``NETLINK_USERSOCK``."""
    hears = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 2)
    hears.bind((0, 0))
    to = struct.pack("=HHII", 16, 0, hears.getsockname()[0], 0)
    if libc.sendto(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 2).fileno(), bytes(16), 16, 0, to, 12) > 0:
        w.confess()


@act()
def io_uring(w: World) -> None:
    parameters = ctypes.create_string_buffer(120)
    if libc.syscall(425, 4, parameters) >= 0:
        w.confess()


@act()
def int_0x80(w: World) -> None:
    """A system call by the 32-bit entrance, whose numbers are others: creat is 8 there."""
    below = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40)  # MAP_32BIT
    below.write(str(w.out / "made").encode() + b"\0")
    at = ctypes.addressof(ctypes.c_char.from_buffer(below))
    code = b"\x53\xb8\x08\0\0\0\xbb" + struct.pack("=I", at) + b"\xb9\xa4\x01\0\0\xcd\x80\x5b\xc3"
    page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()


@act()
def x32_connect(w: World) -> None:
    """The x32 numbers of the same system calls."""
    libc.syscall(0x40000000 + 42, libc.socket(2, 1, 0), address(w.port), 16)


@act()
def memfd_executed(w: World) -> None:
    """A program that is nowhere in the file system."""
    descriptor = os.memfd_create("touch", 0)
    with open("/usr/bin/touch", "rb") as file:
        os.write(descriptor, file.read())
    pid = libc.fork()
    if pid == 0:
        libc.execl(f"/proc/self/fd/{descriptor}".encode(), b"touch", str(w.out / "made").encode(), None)
        os._exit(1)
    os.waitpid(pid, 0)


@act()
def shared_memory(w: World) -> None:
    from multiprocessing.shared_memory import SharedMemory

    SharedMemory(w.name.removeprefix("/")).buf[0:1] = b"x"  # type: ignore[index]


@act()
def shared_memory_unlinked(w: World) -> None:
    module("_posixshmem").shm_unlink(w.name)


@act()
def shared_memory_file(w: World) -> None:
    with open(f"/dev/shm{w.name}", "r+b") as file:
        file.write(b"x")


@act()
def c_shm_open(w: World) -> None:
    descriptor = libc.shm_open(w.name.encode(), os.O_RDWR, 0o600)
    os.write(descriptor, b"x")


@act()
def shared_memory_made(w: World) -> None:
    """Python makes the file before it gives it a size, which is where its audit hook hears of it."""
    from multiprocessing.shared_memory import SharedMemory

    path = f"/dev/shm{w.name}-made"
    try:
        SharedMemory(f"{w.name[1:]}-made", create=True, size=1)
    finally:
        if os.path.exists(path):
            w.confess()
            libc.unlink(path.encode())


@act()
def c_shm_made(w: World) -> None:
    name = f"{w.name}-made".encode()
    if libc.shm_open(name, os.O_CREAT | os.O_RDWR, 0o600) >= 0:
        w.confess()
        libc.shm_unlink(name)


@act()
def c_sem_made(w: World) -> None:
    name = f"{w.name}-made".encode()
    libc.sem_open.restype = ctypes.c_void_p
    if libc.sem_open(name, os.O_CREAT, 0o600, 1):
        w.confess()
        libc.sem_unlink(name)


@act()
def c_sem_post(w: World) -> None:
    libc.sem_open.restype = ctypes.c_void_p
    opened = libc.sem_open(w.name.encode(), 0)
    if opened:
        libc.sem_post(ctypes.c_void_p(opened))


@act()
def c_mq_send(w: World) -> None:
    queue = libc.mq_open(w.name.encode(), os.O_WRONLY | os.O_NONBLOCK)
    libc.mq_send(queue, b"x", 1, 0)


@act()
def c_mq_unlink(w: World) -> None:
    libc.mq_unlink(w.name.encode())


@act()
def c_shmat(w: World) -> None:
    libc.shmat.restype = ctypes.c_void_p
    at = libc.shmat(libc.shmget(w.key, 0, 0), None, 0)
    if at not in (None, 2**64 - 1):
        ctypes.memmove(at, b"x", 1)


@act()
def c_msgsnd(w: World) -> None:
    libc.msgsnd(libc.msgget(w.key, 0), struct.pack("=qc", 1, b"x"), ctypes.c_size_t(1), 0o4000)


@act()
def c_shm_removed(w: World) -> None:
    libc.shmctl(libc.shmget(w.key, 0, 0), 0, None)


def number_of(kind: str, key: int) -> int:
    """Of what has a key, as everybody can read it."""
    with open(f"/proc/sysvipc/{kind}") as table:
        return next(int(line.split()[1]) for line in list(table)[1:] if int(line.split()[0]) == key)


@act()
def c_shmat_by_number(w: World) -> None:
    libc.shmat.restype = ctypes.c_void_p
    at = libc.shmat(number_of("shm", w.key), None, 0)
    if at not in (None, 2**64 - 1):
        ctypes.memmove(at, b"x", 1)


@act()
def c_shm_removed_by_number(w: World) -> None:
    libc.shmctl(number_of("shm", w.key), 0, None)


@act()
def c_msgsnd_by_number(w: World) -> None:
    libc.msgsnd(number_of("msg", w.key), struct.pack("=qc", 1, b"x"), ctypes.c_size_t(1), 0o4000)


@act()
def c_semop_by_number(w: World) -> None:
    if libc.semop(number_of("sem", w.key), struct.pack("=HhH", 0, 1, 0), 1) == 0:
        w.confess()


@act()
def c_chroot(w: World) -> None:
    libc.unshare(0x10000000)  # a user namespace, where one has the right to
    if libc.chroot(str(w.out).encode()) == 0:
        w.confess()


@act()
def kernel_keyring(w: World) -> None:
    if libc.syscall(248, b"user", w.name.encode(), b"x", ctypes.c_size_t(1), -4) >= 0:  # add_key to the user's keyring
        w.confess()


@act()
def host_name(w: World) -> None:
    if libc.sethostname(os.uname().nodename.encode(), len(os.uname().nodename)) == 0:
        w.confess()


@act()
def system_clock(w: World) -> None:
    now = struct.pack("=qq", 0, 2_000_000)  # nanoseconds that are none: refused as invalid where it is allowed
    libc.clock_settime(0, now)
    if ctypes.get_errno() == 22:
        w.confess()


@act()
def system_setting(w: World) -> None:
    with open("/proc/sys/kernel/domainname", "r+") as file:
        before = file.read()
        file.write(before)
        file.flush()
    w.confess()


@act()
def system_log(w: World) -> None:
    syslog.openlog(w.abstract)
    syslog.syslog("x")


@act()
def listening_for_the_network(w: World) -> None:
    """Whoever is told of the port comes in."""
    server = socket.socket()
    server.bind(("0.0.0.0", 0))
    server.listen()
    w.confess()


@act()
def c_listening_for_the_network(w: World) -> None:
    server = libc.socket(2, 1, 0)
    if libc.bind(server, struct.pack("=H", 2) + bytes(14), 16) == 0 and libc.listen(server, 1) == 0:
        w.confess()


@act()
def c_listening_unbound(w: World) -> None:
    if libc.listen(libc.socket(2, 1, 0), 1) == 0:
        w.confess()
