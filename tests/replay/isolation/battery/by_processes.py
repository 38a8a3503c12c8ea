"""Processes that are started to act, and other processes that are acted on."""

import asyncio
import concurrent.futures
import ctypes
import multiprocessing
import os
import pty
import resource
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from replay.isolation.battery.registry import World, act


def touch(w: World) -> list[str]:
    """A command that leaves a mark."""
    return ["touch", str(w.out / "made")]


def make(path: str) -> None:
    """Leaves a mark by Python's own means."""
    Path(path).write_text("made")


def reap(pid: int) -> None:
    os.waitpid(pid, 0)


@act()
def subprocess_run(w: World) -> None:
    subprocess.run(touch(w), check=True)


@act()
def subprocess_shell(w: World) -> None:
    subprocess.run(f"echo x > {w.out}/made", shell=True, check=True)


@act()
def subprocess_network(w: World) -> None:
    subprocess.run(["bash", "-c", f"echo x > /dev/tcp/127.0.0.1/{w.port}"], check=True)


@act()
def subprocess_detached(w: World) -> None:
    subprocess.Popen(touch(w), start_new_session=True).wait()


@act()
def asyncio_subprocess(w: World) -> None:
    async def start() -> None:
        await (await asyncio.create_subprocess_exec(*touch(w))).wait()

    asyncio.run(start())


@act()
def os_system(w: World) -> None:
    os.system(f"touch {w.out}/made")


@act()
def os_popen(w: World) -> None:
    os.popen(f"touch {w.out}/made").read()


@act()
def os_execv(w: World) -> None:
    os.execvp("touch", touch(w))


@act()
def os_execve(w: World) -> None:
    os.execvpe("touch", touch(w), {"PATH": os.environ["PATH"]})


@act()
def os_posix_spawn(w: World) -> None:
    reap(os.posix_spawnp("touch", touch(w), {"PATH": os.environ["PATH"]}))


@act()
def os_spawnv(w: World) -> None:
    os.spawnvp(os.P_WAIT, "touch", touch(w))


@act()
def pty_spawn(w: World) -> None:
    pty.spawn(touch(w))


@act()
def os_fork(w: World) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            socket.create_connection(("127.0.0.1", w.port), 2)
        finally:
            os._exit(0)
    reap(pid)


@act()
def os_forkpty(w: World) -> None:
    pid, _ = os.forkpty()
    if pid == 0:
        os.execvp("touch", touch(w))
    reap(pid)


@act()
def fork_exec_by_the_c_module(w: World) -> None:
    from multiprocessing import util

    reap(util.spawnv_passfds(b"/usr/bin/touch", [os.fsencode(word) for word in touch(w)], []))  # raises no event


@act()
def c_system(w: World) -> None:
    ctypes.CDLL(None).system(f"touch {w.out}/made".encode())


@act()
def c_fork(w: World) -> None:
    pid = ctypes.CDLL(None).fork()
    if pid == 0:
        ctypes.CDLL(None).creat(str(w.out / "made").encode(), 0o644)
        os._exit(0)
    reap(pid)


@act()
def c_posix_spawn(w: World) -> None:
    pid = ctypes.c_int()
    words = [os.fsencode(word) for word in touch(w)]
    ctypes.CDLL(None).posix_spawnp(ctypes.byref(pid), b"touch", None, None, (ctypes.c_char_p * 3)(*words, None), None)
    reap(pid.value)


@act()
def multiprocessing_fork(w: World) -> None:
    child = multiprocessing.get_context("fork").Process(target=make, args=(str(w.out / "made"),))
    child.start()
    child.join(5)


@act()
def multiprocessing_spawn(w: World) -> None:
    child = multiprocessing.get_context("spawn").Process(target=make, args=(str(w.out / "made"),))
    child.start()
    child.join(18)  # on a busy machine


@act()
def multiprocessing_forkserver(w: World) -> None:
    child = multiprocessing.get_context("forkserver").Process(target=make, args=(str(w.out / "made"),))
    child.start()
    child.join(18)  # on a busy machine


@act()
def process_pool(w: World) -> None:
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        pool.submit(make, str(w.out / "made")).result(8)


@act()
def python_without_our_start(w: World) -> None:
    """A Python child that never loads what replays it."""
    code = f"open({str(w.out / 'made')!r}, 'w')"
    ctypes.CDLL(None).system(f'{sys.executable} -I -S -c "{code}"'.encode())


@act()
def thread_in_a_finalizer(w: World) -> None:
    class Late:
        def __del__(self) -> None:
            thread = threading.Thread(target=make, args=(str(w.out / "made"),))
            thread.start()
            thread.join()

    Late()


@act(victim=True)
def os_kill(w: World) -> None:
    os.kill(w.victim, signal.SIGKILL)


@act(victim=True)
def os_killpg(w: World) -> None:
    os.killpg(w.victim, signal.SIGKILL)


@act(victim=True)
def pidfd_send_signal(w: World) -> None:
    signal.pidfd_send_signal(os.pidfd_open(w.victim), signal.SIGKILL)


@act(victim=True)
def c_kill(w: World) -> None:
    ctypes.CDLL(None).kill(w.victim, 9)


@act(victim=True)
def c_killpg(w: World) -> None:
    ctypes.CDLL(None).kill(-w.victim, 9)


@act(victim=True)
def c_tgkill(w: World) -> None:
    ctypes.CDLL(None).syscall(234, w.victim, w.victim, 9)


@act(victim=True)
def c_sigqueue(w: World) -> None:
    ctypes.CDLL(None).sigqueue(w.victim, 9, ctypes.c_void_p(0))


@act(victim=True)
def setpriority(w: World) -> None:
    os.setpriority(os.PRIO_PROCESS, w.victim, 5)


@act(victim=True)
def setpriority_of_a_group(w: World) -> None:
    os.setpriority(os.PRIO_PGRP, w.victim, 5)


@act(victim=True)
def sched_setaffinity(w: World) -> None:
    os.sched_setaffinity(w.victim, {0})


@act(victim=True)
def sched_setscheduler(w: World) -> None:
    os.sched_setscheduler(w.victim, os.SCHED_BATCH, os.sched_param(0))


@act(victim=True)
def prlimit(w: World) -> None:
    resource.prlimit(w.victim, resource.RLIMIT_NOFILE, (50, 50))


@act(victim=True)
def ioprio_set(w: World) -> None:
    ctypes.CDLL(None).syscall(251, 1, w.victim, (2 << 13) | 7)


@act(victim=True)
def ptrace_attach(w: World) -> None:
    if ctypes.CDLL(None).ptrace(16, w.victim, None, None) == 0:
        os.waitpid(w.victim, 0)
        ctypes.CDLL(None).ptrace(8, w.victim, None, None)  # PTRACE_KILL


def stack_of(pid: int) -> int:
    """The last bytes of a process's stack: the name of its program."""
    line = next(line for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if "[stack]" in line)
    return int(line.split()[0].split("-")[1], 16) - 16


@act(victim=True)
def process_vm_writev(w: World) -> None:
    mine = ctypes.create_string_buffer(b"x")
    local = (ctypes.c_void_p * 2)(ctypes.addressof(mine), 1)
    remote = (ctypes.c_void_p * 2)(stack_of(w.victim), 1)
    ctypes.CDLL(None).process_vm_writev(w.victim, local, 1, remote, 1, 0)


@act(victim=True)
def memory_file(w: World) -> None:
    descriptor = os.open(f"/proc/{w.victim}/mem", os.O_RDWR)
    os.pwrite(descriptor, b"x", stack_of(w.victim))


@act(victim=True)
def pidfd_getfd(w: World) -> None:
    """Take the victim's own socket and speak through it."""
    descriptor = ctypes.CDLL(None).syscall(438, os.pidfd_open(w.victim), 0, 0)
    os.write(descriptor, b"x")


@act(victim=True)
def setns(w: World) -> None:
    if ctypes.CDLL(None).setns(os.pidfd_open(w.victim), 0x08000000 | 0x40000000) == 0:  # IPC and network
        w.confess()


@act(victim=True)
def out_of_memory_score(w: World) -> None:
    Path(f"/proc/{w.victim}/oom_score_adj").write_text("500")
