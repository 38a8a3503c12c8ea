"""What was open before the guard was armed. A fresh command has none of these."""

import mmap
import os
import queue
import socket
import threading
from typing import Any

from replay.isolation.battery.registry import World, act


def connected(w: World) -> socket.socket:
    return socket.create_connection(("127.0.0.1", w.port), 2)


def opened(w: World) -> int:
    return os.open(w.there, os.O_RDWR)


def mapped(w: World) -> mmap.mmap:
    return mmap.mmap(opened(w), 0)


def unix_pair(w: World) -> socket.socket:
    s = socket.socket(socket.AF_UNIX)
    s.connect(str(w.out / "s"))
    return s


def worker(w: World) -> tuple[Any, threading.Thread]:
    work: queue.Queue[Any] = queue.Queue()

    def run() -> None:
        while (one := work.get()) is not None:
            one()

    thread = threading.Thread(target=run)
    thread.start()
    return work, thread


@act(before=connected)
def socket_connected_before(w: World, s: socket.socket) -> None:
    s.sendall(b"said")


@act(before=unix_pair)
def unix_socket_connected_before(w: World, s: socket.socket) -> None:
    s.sendall(b"said")


@act(before=opened)
def file_opened_before(w: World, descriptor: int) -> None:
    os.write(descriptor, b"x")


@act(before=mapped)
def memory_mapped_before(w: World, memory: mmap.mmap) -> None:
    memory[0:1] = b"x"


@act(before=opened)
def file_opened_before_cut(w: World, descriptor: int) -> None:
    os.ftruncate(descriptor, 0)


@act(before=worker)
def thread_started_before(w: World, started: tuple[Any, threading.Thread]) -> None:
    work, thread = started
    work.put(lambda: (w.out / "made").touch())
    work.put(None)
    thread.join()
