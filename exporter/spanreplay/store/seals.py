"""Sums of what was written: over the records of a trace, over the rows that were derived of a run, and over what is said of a journal.

They are made when runs are derived, and made again by whoever asks whether a row has been changed, added or deleted by hand. They hold
against edits, not against somebody who makes the sums anew.
"""

from collections.abc import Iterable, Sequence
from hashlib import md5, sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from spanreplay.content.json_text import encoder
from spanreplay.store.extents import stretches

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

HISTORY_COLUMNS: Final = ("run_id", "thread", "part", "n", "label", "digest", "parts", "first_seq", "last_seq")
"""Of the table ``history``, in the order of its rows."""


_sealed: Final = encoder(spaced=True)
"""As ``json.dumps`` writes it: what was sealed before has this form."""


class Records(NamedTuple):
    """What the database has of a trace."""

    n_records: int
    """Spans, other versions of spans, and log records."""
    checksum: int
    """Of their digests, and of who delivered them; in no order."""
    origins: str
    """Who delivered its spans, joined by a comma."""


_SPANS: Final = """
    SELECT trace_id, digest, origin, process, started, '' AS kind FROM spans WHERE trace_id IN (SELECT unnest($1)){times}
    UNION ALL SELECT trace_id, digest, origin, process, started, 'version' FROM span_versions WHERE trace_id IN (SELECT unnest($1)){times}
"""
_LOGS: Final = """
    SELECT trace_id, digest, origin, NULL AS process, true AS started, 'log' AS kind FROM logs WHERE trace_id IN (SELECT unnest($1))
"""
_SUM: Final = """
    SELECT trace_id, count(*), bit_xor(md5_number_lower(concat_ws('|', kind, coalesce(digest, ''), coalesce(origin, ''),
            coalesce(process, ''), started))),
        string_agg(DISTINCT origin, ',' ORDER BY origin) FILTER (kind = '')
    FROM ({found}) GROUP BY trace_id
"""
_IN_STRETCH: Final = _SUM.format(found=_SPANS.format(times=" AND start_ns BETWEEN $2 AND $3"))
_ANYWHERE: Final = _SUM.format(found=_SPANS.format(times=""))
_OF_LOGS: Final = _SUM.format(found=_LOGS)


def records_given(origin: str, spans: Iterable[tuple[str, str | None]], logs: Iterable[str]) -> Records:
    """What :func:`records_of` finds of a trace of which the database has these alone.

    Args:
        origin: who delivered them.
        spans: digest and process of each span, all of which have started.
        logs: digest of each log record.
    """
    sums = [f"|{digest}|{origin}|{process or ''}|true" for digest, process in spans]
    origins = origin if sums else ""
    sums += [f"log|{digest}|{origin}||true" for digest in logs]
    checksum = 0
    for text in sums:
        checksum ^= int.from_bytes(md5(text.encode(), usedforsecurity=False).digest()[8:], "little")
    return Records(len(sums), checksum, origins)


def records_of(connection: "Connection", trace_ids: Iterable[str], *, anywhere: bool = False) -> dict[str, Records]:
    """What there is of each trace; a trace of which there is nothing is left out.

    Args:
        connection: may read.
        trace_ids: of these traces.
        anywhere: look at every span, and not only where the spans of a trace should be.
    """
    wanted = [*dict.fromkeys(trace_ids)]
    rows: list[tuple[Any, ...]] = []
    if anywhere:
        rows += connection.execute(_ANYWHERE, [wanted]).fetchall()
    else:
        for stretch in stretches(connection, wanted):
            rows += connection.execute(_IN_STRETCH, list(stretch)).fetchall()
    rows += connection.execute(_OF_LOGS, [wanted]).fetchall()
    found: dict[str, Records] = {}
    for trace_id, count, checksum, origins in rows:
        before = found.get(trace_id, Records(0, 0, ""))
        found[trace_id] = Records(before.n_records + count, before.checksum ^ checksum, before.origins or origins or "")
    return found


def row_seal(table: str, row: Sequence[Any]) -> str:
    """The digest of one row, whose values are as the database has them."""
    return f"sha256:{sha256(_sealed([table, *row]).encode()).hexdigest()}"


class RunSeals:
    """Digests of the rows that are derived of runs; the rows are taken in any order."""

    def __init__(self) -> None:
        self._rows: dict[str, list[bytes]] = {}

    def take(self, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Takes rows as the database has them.

        Args:
            table: where they are.
            columns: their names.
            rows: values in that order.
        """
        at = columns.index("run_id")
        for row in rows:
            self._rows.setdefault(row[at], []).append(sha256(_sealed([table, *row]).encode()).digest())

    def of(self, run_id: str) -> str:
        """The digest of everything that was taken of a run."""
        return f"sha256:{sha256(b''.join(sorted(self._rows.get(run_id, ())))).hexdigest()}"
