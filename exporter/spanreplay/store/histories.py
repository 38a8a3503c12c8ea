"""Histories of runs into the database: rows of the table ``history``, and the content that these name."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from spanreplay.store.appending import append, clean
from spanreplay.store.blobs import key_of, select_blobs
from spanreplay.store.encoding import to_readable_json
from spanreplay.store.history import History
from spanreplay.store.loading import BLOB_COLUMNS, TEXT_MEDIA
from spanreplay.store.rows import StepRow
from spanreplay.store.seals import HISTORY_COLUMNS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection


class Histories:
    """What went into the model calls among some steps.

    Args:
        steps: all steps of some runs.
    """

    def __init__(self, steps: Iterable[StepRow]) -> None:
        histories: dict[str, History] = {}
        self._left: dict[tuple[str, int], tuple[int, str, str | None]] = {}
        for step in sorted((step for step in steps if step.kind == "model_call" and step.input), key=lambda step: step.seq):
            history = histories.get(step.run_id)
            if history is None:
                history = histories[step.run_id] = History(step.run_id)
            taken = history.take(step.seq, step.input or "", step.output)
            if taken is not None:
                self._left[step.run_id, step.seq] = taken
        found = [row for history in histories.values() for row in history.end()]
        self.rows = [clean((*row[:6], to_readable_json(row.parts), *row[7:])) for row in found]
        """Of the table ``history``, by :data:`~spanreplay.store.seals.HISTORY_COLUMNS`."""
        self._strings = {digest: piece for history in histories.values() for digest, piece in history.strings.items()}

    def left(self, step: StepRow) -> tuple[StepRow, int | None]:
        """A step without what is in its history, and the thread of that."""
        known = self._left.get((step.run_id, step.seq))
        return (step, None) if known is None else (replace(step, input=known[1], output=known[2]), known[0])

    def size(self) -> int:
        """Bytes of its content, about."""
        return sum(piece.size for piece in self._strings.values()) + sum(len(row[6]) for row in self.rows)

    def put(self, connection: "Connection") -> None:
        """Writes it, inside the caller's transaction."""
        append(connection, "history", self.rows, HISTORY_COLUMNS)
        known = {digest for (digest,) in select_blobs(connection, self._strings, "digest")}
        new = [piece for digest, piece in self._strings.items() if digest not in known]
        rows = [(piece.digest, piece.size, TEXT_MEDIA, piece.text, None, None, key_of(piece.digest)) for piece in new]
        append(connection, "blobs", rows, BLOB_COLUMNS)
