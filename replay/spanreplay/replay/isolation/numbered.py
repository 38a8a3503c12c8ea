"""System V shared memory, semaphores and queues that a call names by number: those that others find by a key are others'.

A private one (``IPC_PRIVATE``) has no key: its number is known to whom its maker tells it. See sysvipc(7) and proc_sysvipc(5).
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

LOOKS: Final = frozenset({2, 3, 11, 12, 13, 14, 15, 18, 19, 20})
"""Commands of ``semctl`` that change nothing; of ``shmctl`` and ``msgctl`` without 11 and 12, which lock memory there."""
_LOCKS: Final = frozenset({11, 12})
_READ_ONLY: Final = 0o10000
_KINDS: Final = {"shmat": "shm", "shmctl": "shm", "semop": "sem", "semtimedop": "sem", "semctl": "sem", "msgsnd": "msg", "msgrcv": "msg",
                 "msgctl": "msg"}  # fmt: skip
CALLS: Final = frozenset(_KINDS)
_COMMAND: Final = 0xFF
"""Some C libraries set ``IPC_64``, 0x100, beside it."""


def only_looks(call: str, second: int, third: int) -> bool:
    """Whether a call of this name, with these second and third arguments, changes nothing."""
    if call == "shmat":
        return bool(third & _READ_ONLY)
    if call == "semctl":
        return third & _COMMAND in LOOKS
    return call in ("shmctl", "msgctl") and second & _COMMAND in LOOKS - _LOCKS


def has_key(call: str, number: int) -> bool:
    """Whether what the call names is found by a key; False where there is none of that number, and the call fails."""
    with suppress(OSError, ValueError), Path("/proc/sysvipc", _KINDS[call]).open(encoding="ascii") as table:
        next(table, None)
        for line in table:
            key, found, *_ = line.split()
            if int(found) == number:
                return int(key) != 0
    return False
