"""Journals into the database while a receiver runs, so that none grows for ever and commands find everything loaded."""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from spanreplay.store.compaction import pending
from spanreplay.store.errors import StoreError
from spanreplay.store.store import Store

_log: Final = logging.getLogger("spanreplay.receiver")
_EVERY_S: Final = 2.0
_MUCH: Final = 16_000_000
"""Bytes of journals that are loaded at once, however busy it is."""
_QUIET_S: Final = 2.0
_WAIT_S: Final = 30.0
_COMPLAIN_S: Final = 60.0

Settle = Callable[[Store], object]
"""Derives what is derived from spans; called when nothing has come for a while."""


class Upkeep:
    """A thread that loads journals.

    Args:
        store: the store's folder.
        taken_at: when something was received last, on the monotonic clock; 0 for never.
        settle: see :data:`Settle`.
    """

    def __init__(self, store: Path, taken_at: Callable[[], float], settle: Settle | None) -> None:
        self._store = store
        self._taken_at = taken_at
        self._settle = settle
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="spanreplay-upkeep", daemon=True)
        self._settled_at = -1.0
        self._left = 0
        """Bytes of journals that were there when some were loaded last: of those still written to."""
        self._complained_at = float("-inf")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, patience_s: float) -> bool:
        """Load what is left, unless that takes longer than this: then the next command does. ``False``: the thread is still at it."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(patience_s)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while not self._stop.wait(_EVERY_S):
            self._look()
        self._load()

    def _look(self) -> None:
        taken_at = self._taken_at()
        quiet = time.monotonic() - taken_at >= _QUIET_S
        if quiet and taken_at != self._settled_at:
            if self._load(settle=True):
                self._settled_at = taken_at
        elif not quiet and self._pending() - self._left > _MUCH:
            self._load()
            self._left = self._pending()

    def _pending(self) -> int:
        """Bytes of all journals, loaded or not."""
        total = 0
        for path in pending(self._store):
            try:
                total += path.stat().st_size
            except OSError:
                continue
        return total

    def _load(self, *, settle: bool = False) -> bool:
        try:
            with Store.open(self._store, wait_s=_WAIT_S) as store:
                store.compact()
                if settle and self._settle is not None:
                    self._settle(store)
        except StoreError as error:
            now = time.monotonic()
            if now - self._complained_at >= _COMPLAIN_S:
                self._complained_at = now
                _log.warning("what was received is kept in journals, but cannot be loaded at present: %s", error)
            return False
        except Exception:  # noqa: BLE001 — receiving goes on
            _log.exception("what was received is kept in journals, but could not be loaded")
            return True  # the same again would fail the same
        return True
