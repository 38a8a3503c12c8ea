"""What the span exporter and the log exporter share: the journal of a store, and what is known to be in it."""

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from spanreplay.boundary.complaints import complain
from spanreplay.exporter.convert import Converter
from spanreplay.exporter.environment_variables import SPANREPLAY_DURABILITY, choice, store_folder
from spanreplay.exporter.recorder import Recorder
from spanreplay.exporter.redacting import redactor_for
from spanreplay.exporter.writer import Writer
from spanreplay.store.journal import get_writer
from spanreplay.store.journal_file import Durability

_DURABILITY: Final[tuple[Durability, ...]] = ("process", "disk", "batch")
_log: Final = logging.getLogger("spanreplay")
_recorders: Final[dict[Path, Recorder]] = {}


def announce(store: Path, recorder: Recorder) -> None:
    """Let exporters to the same store know what the recorder has open, also after it has stopped."""
    _recorders[store] = recorder


class Pipeline:
    """The way from an exporter to a store's journal.

    Args:
        store: folder of the store; the environment's by default.
        redaction: ``default`` or ``none``; the environment's by default.
        ignored: options given that do not exist.
    """

    def __init__(self, store: str | Path | None, *, redaction: str | None = None, ignored: Mapping[str, object] | None = None) -> None:
        if ignored:
            _log.warning("spanreplay's exporter has no option named %s; it is not used", ", ".join(sorted(ignored)))
        self.store = store_folder(store)
        self.failures = 0
        self._redaction = redaction
        self._writer: Writer | None = None
        self._converter: Converter | None = None
        self._complained_at = float("-inf")

    @property
    def writer(self) -> Writer:
        """The journal; opened at the first record."""
        if self._writer is None:
            self._writer = get_writer(self.store, durability=choice(SPANREPLAY_DURABILITY, _DURABILITY, "process"))
        return self._writer

    @property
    def converter(self) -> Converter:
        """Makes records; replaces secrets as the recorder of this store does, so that one secret has one replacement."""
        recorder = _recorders.get(self.store)
        if recorder is not None:
            return recorder.converter
        if self._converter is None:
            self._converter = Converter(redactor_for(self._redaction))
        return self._converter

    @property
    def lost(self) -> int:
        """Records lost so far, here and in the journal."""
        return self.failures + (self._writer.dropped if self._writer is not None else 0)

    def knows(self, trace_id: str, span_id: str) -> bool:
        """Whether the span is written, or the recorder will write it."""
        recorder = _recorders.get(self.store)
        if recorder is not None:
            if recorder.holds(trace_id, span_id):
                return True
            if recorder.left_open(trace_id, span_id):
                return False
        return self.writer.seen(trace_id, span_id)

    def sync(self) -> None:
        """Put everything on the disk."""
        if self._writer is not None:
            self._writer.sync()

    def failed(self, what: str) -> None:
        """Count a record lost here, and log one line a minute at most."""
        self.failures += 1
        now = time.monotonic()
        if now - self._complained_at >= 60:
            self._complained_at = now
            complain(_log, "spanreplay could not keep %s (%d so far); the application is not affected", what, self.failures)
