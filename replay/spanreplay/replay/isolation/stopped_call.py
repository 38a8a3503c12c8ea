"""A system call that the kernel has stopped: its arguments, read from the memory of the process that waits, and what it would do.

What is read is what was in memory when it was looked at, which another thread of that process could change meanwhile: this keeps honest
code from acting by accident. Files outside scratch, TCP connections and signals are denied by Landlock in any case.
"""

# Paths of other processes, links in them unfollowed: pathlib would be most of what an answer costs.
# ruff: noqa: PTH115

import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from spanreplay.replay.isolation.refusal import Action

_PAGE, _LONGEST_PATH = 4096, 4096
HERE: Final = -100
"""``AT_FDCWD``: the folder that a process is in, in place of the descriptor of one."""


class Stopped(NamedTuple):
    """An act that is to be refused, unless it was allowed by its host and port."""

    action: Action
    target: str
    mild: bool = False
    port: int = 0
    host: str = ""
    """Numeric address, or path of a Unix socket."""
    quiet: bool = False
    """Every program does that, and nobody need hear of it."""
    nobody: bool = False
    """It reaches nobody: the process that it is meant for is gone, and that is what the caller is told."""


class Call(NamedTuple):
    """A system call that waits."""

    pid: int
    """Of the thread, as the kernel tells it."""
    name: str
    arguments: Sequence[int]

    @property
    def process(self) -> int:
        """Id of its process."""
        return process_of(self.pid)

    def integer(self, index: int) -> int:
        """An argument of 32 bits, with its sign."""
        return int(struct.unpack("=i", struct.pack("=Q", self.arguments[index])[:4])[0])

    def memory(self, address: int, size: int) -> bytes:
        """What the process has there; less, or nothing, where it cannot be read."""
        with suppress(OSError, ValueError, OverflowError), Path(f"/proc/{self.pid}/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            return memory.read(size) or b""
        return b""

    def text(self, address: int) -> str | None:
        """A path; ``None`` where it cannot be read."""
        found = b""
        while b"\0" not in found and len(found) < _LONGEST_PATH:
            more = self.memory(address + len(found), _PAGE - (address + len(found)) % _PAGE)
            if not more:
                return None
            found += more
        return os.fsdecode(found.split(b"\0", 1)[0])


def link(path: str) -> str | None:
    """Where a link leads; ``None`` where there is none."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def _field(path: str, name: str) -> int:
    with suppress(OSError, ValueError), Path(path).open(encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1])
    return 0


def process_of(thread: int) -> int:
    """Id of the process of a thread."""
    return _field(f"/proc/{thread}/status", "Tgid:") or thread


def parent_of(pid: int) -> int:
    """Id of the process that has started another, or has inherited it; 0 where there is none."""
    return _field(f"/proc/{pid}/status", "PPid:")


def pid_of(process: int, pidfd: int) -> int:
    """Id of the process that a descriptor stands for; -1 for none."""
    return _field(f"/proc/{process}/fdinfo/{pidfd}", "Pid:") or -1
