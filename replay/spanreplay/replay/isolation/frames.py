"""Where each thread of the process is."""

import gc
import sys
import threading
from types import FrameType
from typing import Final

_lock: Final = threading.RLock()


def current_frames() -> dict[int, FrameType]:
    """``sys._current_frames()``, without a collection of garbage in the middle of it.

    Before CPython 3.12 it holds the lock of all interpreters while it makes its dictionary (gh-106883). A collection that begins there runs
    code of Python, which gives the interpreter away to a thread that may be starting another one, and waits for that lock for ever.
    """
    with _lock:
        collects = gc.isenabled()
        gc.disable()
        try:
            return sys._current_frames()
        finally:
            if collects:
                gc.enable()
