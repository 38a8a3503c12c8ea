"""Whether a thread that was given an answer has done what that set off.

It has when it waits for something, or is gone: then what it has appended, and the future that its job was for, can be seen by others,
before the next thread is given its answer. An event loop tells that it has nothing ready; of a thread it can only be seen that it stands
still.
"""

import threading
import time
from concurrent.futures import thread as pools
from pathlib import Path
from typing import Final

from spanreplay.replay.isolation.frames import current_frames

_GLANCE_S: Final = 0.0003
_GLANCES: Final = 3
"""After so many that find it at the same place it stands still."""
_LONGEST_S: Final = 0.05
"""Of a thread that goes on working the next one does not wait for the end."""
_IDLE: Final = pools._worker.__code__
_nobody: Final = threading.Lock()
"""Held for ever: whoever wants it waits as long as he says, by no function of the program's, some of which are patched."""
_nobody.acquire()


class GivenTo:
    """The thread that runs now, which is given an answer."""

    __slots__ = ("_ident", "_native")

    def __init__(self) -> None:
        self._ident = threading.get_ident()
        self._native = threading.get_native_id()

    def rest(self) -> None:
        """Return when it stands still, is gone or has no job left; at once in that thread itself."""
        if self._ident == threading.get_ident():
            return
        until = time.monotonic() + _LONGEST_S
        before, same = None, 0
        while same < _GLANCES and time.monotonic() < until:
            frame = current_frames().get(self._ident)
            if frame is None or frame.f_code is _IDLE:
                return
            here = id(frame), frame.f_lasti
            frame = None  # nothing of the agent's is kept alive
            same = same + 1 if here == before and not self._runs() else 0
            before = here
            _nobody.acquire(timeout=_GLANCE_S)

    def _runs(self) -> bool:
        return _runs(self._native)


def others_rest() -> None:
    """Return when no other thread does anything, though not after longer than for one that goes on working."""
    until = time.monotonic() + _LONGEST_S
    before, same = None, 0
    while same < _GLANCES and time.monotonic() < until:
        mine = threading.get_ident()
        here = {ident: (id(frame), frame.f_lasti) for ident, frame in current_frames().items() if ident != mine}
        natives = [thread.native_id for thread in threading.enumerate() if thread.ident != mine]
        same = same + 1 if here == before and not any(map(_runs, natives)) else 0
        before = here
        _nobody.acquire(timeout=_GLANCE_S)


def _runs(native: int | None) -> bool:
    """Whether the system would run a thread, had it a processor left; False where it does not tell."""
    try:
        told = Path(f"/proc/self/task/{native}/stat").read_bytes()
    except OSError:
        return False
    return told.rpartition(b")")[2].split()[:1] == [b"R"]
