"""Histories of runs into the database: rows of the table ``history``, and the content that these name."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from spanreplay.store.blobs import key_of, select_blobs
from spanreplay.store.history import Element, History
from spanreplay.store.loading import BLOB_COLUMNS, JSON_MEDIA, append
from spanreplay.store.rows import StepRow

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

_COLUMNS: Final = ("run_id", "thread", "part", "n", "label", "digest", "key", "first_seq", "last_seq")


class Histories:
    """What went into the model calls among some steps.

    Args:
        steps: all steps of some runs.
    """

    def __init__(self, steps: Iterable[StepRow]) -> None:
        histories: dict[str, History] = {}
        self.threads: dict[tuple[str, int], tuple[int, str]] = {}
        """By run and step: the thread, and what its input has beside its history."""
        for step in sorted((step for step in steps if step.kind == "model_call" and step.input), key=lambda step: step.seq):
            history = histories.get(step.run_id)
            if history is None:
                history = histories[step.run_id] = History(step.run_id)
            taken = history.take(step.seq, step.input or "")
            if taken is not None:
                self.threads[step.run_id, step.seq] = taken
        self._rows = [row for history in histories.values() for row in history.end()]
        self._elements: dict[str, Element] = {}
        for history in histories.values():
            self._elements.update(history.elements)

    def input(self, step: StepRow) -> str | None:
        """The input of a step without what is in the history."""
        known = self.threads.get((step.run_id, step.seq))
        return step.input if known is None else known[1]

    def size(self) -> int:
        """Characters of its content."""
        return sum(len(one.text) for one in self._elements.values())

    def put(self, connection: "Connection") -> None:
        """Writes it, inside the caller's transaction."""
        append(connection, "history", [(*row[:6], key_of(row.digest), *row[6:]) for row in self._rows], _COLUMNS)
        _put_elements(connection, list(self._elements.values()))


def _put_elements(connection: "Connection", found: Sequence[Element]) -> None:
    """Each is there whole afterwards, so that a view needs to join nothing else."""
    held = dict(select_blobs(connection, [one.digest for one in found], "is whole"))
    in_pieces = [digest for digest, is_whole in held.items() if not is_whole]
    if in_pieces:
        connection.execute("DELETE FROM blobs WHERE digest IN (SELECT unnest($1))", [in_pieces]).fetchall()
    new = [one for one in found if not held.get(one.digest, False)]
    append(
        connection,
        "blobs",
        [(one.digest, len(one.text.encode()), JSON_MEDIA, one.text, None, None, key_of(one.digest)) for one in new],
        BLOB_COLUMNS,
    )
