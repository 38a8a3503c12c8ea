"""When the spans of each trace begin.

Spans lie in the order of their arrival, about that of time, and DuckDB skips groups of rows by the least and the largest time in each. So a
trace is looked for between its first and its last moment, which reads a few groups, however many there are; there is no index to keep.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, LiteralString, NamedTuple

from spanreplay.store.span_rows import COLUMNS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

_MOST: Final = 8
"""Stretches that are asked for one by one; traces that lie in more places are looked for in between, too."""
_TRACE: Final = COLUMNS.index("trace_id")
_RUN: Final = COLUMNS.index("run_id")
_COMMAND: Final = COLUMNS.index("command_id")
_START: Final = COLUMNS.index("start_ns")
_Name = tuple[str, str | None, str | None]


class Stretch(NamedTuple):
    """A stretch of time, and traces of which all spans begin in it."""

    traces: list[str]
    first_ns: int
    last_ns: int


def stretches(connection: "Connection", trace_ids: Iterable[str]) -> list[Stretch]:
    """Where to look for the spans of these traces, other versions of spans too; each trace is in one stretch, unknown ones in none."""
    ends: dict[str, tuple[int, int]] = {}
    for trace_id, first, last in _select(connection, {*trace_ids}, "trace_id, first_ns, last_ns"):
        known = ends.get(trace_id, (first, last))
        ends[trace_id] = min(first, known[0]), max(last, known[1])
    found: list[Stretch] = []
    for trace_id, (first_ns, last_ns) in sorted(ends.items(), key=lambda one: (one[1], one[0])):
        if found and first_ns <= found[-1].last_ns:
            found[-1] = Stretch([*found[-1].traces, trace_id], found[-1].first_ns, max(found[-1].last_ns, last_ns))
        else:
            found.append(Stretch([trace_id], first_ns, last_ns))
    return _joined(found)


def _joined(found: Sequence[Stretch]) -> list[Stretch]:
    """The same with the least gaps between them closed, so that they are not too many."""
    gaps = sorted(range(1, len(found)), key=lambda n: found[n].first_ns - found[n - 1].last_ns, reverse=True)
    ends = [0, *sorted(gaps[: _MOST - 1]), len(found)]
    parts = [found[start:end] for start, end in pairwise(ends) if end > start]
    return [Stretch([trace for one in part for trace in one.traces], part[0].first_ns, part[-1].last_ns) for part in parts]


def widen(connection: "Connection", rows: Iterable[tuple[Any, ...]], *, unknown: bool = False) -> None:
    """Notes where new rows of spans lie, inside the caller's transaction.

    Args:
        connection: in a transaction.
        rows: in the order of :data:`~spanreplay.store.span_rows.COLUMNS`.
        unknown: :func:`stretches` has found none of their traces.
    """
    new: dict[_Name, tuple[int, int]] = {}
    for row in rows:
        name, start = (row[_TRACE], row[_RUN], row[_COMMAND]), row[_START]
        first, last = new.get(name, (start, start))
        new[name] = min(first, start), max(last, start)
    if not new:
        return
    traces = {trace_id for trace_id, _, _ in new}
    if not unknown and (known := _select(connection, traces, "trace_id, run_id, command_id, first_ns, last_ns")):
        covered = {row[:3] for row in known if row[:3] in new and row[3] <= new[row[:3]][0] and new[row[:3]][1] <= row[4]}
        if len(covered) == len(new):
            return
        for row in known:
            first, last = new.get(row[:3], row[3:])
            new[row[:3]] = min(first, row[3]), max(last, row[4])
        connection.execute("DELETE FROM extents WHERE trace_id IN (SELECT unnest($1))", [[*{row[0] for row in known}]]).fetchall()
    columns = zip(*((*name, *ends) for name, ends in new.items()), strict=True)
    connection.execute(_INSERT, [*map(list, columns)]).fetchall()


_INSERT: Final = """
    INSERT INTO extents BY NAME SELECT *, md5_number_lower(trace_id) AS key, md5_number_lower(run_id) AS run_key FROM (
        SELECT unnest($1) AS trace_id, unnest($2::VARCHAR[]) AS run_id, unnest($3::VARCHAR[]) AS command_id,
            unnest($4::BIGINT[]) AS first_ns, unnest($5::BIGINT[]) AS last_ns)
"""


def _select(connection: "Connection", trace_ids: set[str], columns: LiteralString) -> list[tuple[Any, ...]]:
    one = len(trace_ids) == 1  # most often, and told so DuckDB skips more
    among = "= md5_number_lower($1)" if one else "IN (SELECT md5_number_lower(unnest($1)))"
    statement = f"SELECT {columns} FROM extents WHERE key {among}"  # noqa: S608 - ours, all of it
    rows = connection.execute(statement, [*trace_ids] if one else [[*trace_ids]]).fetchall()
    return [row for row in rows if row[0] in trace_ids]
