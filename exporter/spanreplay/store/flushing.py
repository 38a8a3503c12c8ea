"""Writing what a journal has gathered, a second after the first of it was: the one thread of a recording that gathers."""

import threading
import time
import weakref
from typing import Final, Protocol

SECONDS: Final = 1.0


class Flushes(Protocol):
    """What a :class:`Flusher` flushes."""

    def flush(self) -> None:
        """Write what was gathered."""
        ...


class Flusher:
    """Flushes a writer a second after it was woken. Its thread is made when it is needed, and ends when it is not.

    Args:
        writer: held weakly: a writer that nobody holds any more keeps no thread.
    """

    def __init__(self, writer: Flushes) -> None:
        self._writer = weakref.ref(writer)
        self._awake = False

    def wake(self) -> None:
        """Something is gathered. The caller serialises its calls."""
        if not self._awake:
            self._awake = True
            try:
                threading.Thread(target=self._run, name="spanreplay-journal", daemon=True).start()
            except RuntimeError:  # the interpreter shuts down: what is left is written when the journal is closed
                self._awake = False

    def _run(self) -> None:
        time.sleep(SECONDS)
        self._awake = False
        writer = self._writer()
        if writer is not None:
            writer.flush()
