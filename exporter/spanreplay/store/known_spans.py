"""What the database has already of spans that are to be loaded: looked for where their traces lie."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from spanreplay.store.extents import Stretch, stretches
from spanreplay.store.span_rows import Version, version_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

Key = tuple[str, str]
"""Trace and span."""


def known_traces(connection: "Connection", trace_ids: set[str]) -> set[str]:
    """Those of some traces that the database has something of."""
    if not trace_ids:
        return set()
    logs = connection.execute("SELECT DISTINCT trace_id FROM logs WHERE trace_id IN (SELECT unnest($1))", [list(trace_ids)]).fetchall()
    return {trace_id for stretch in stretches(connection, trace_ids) for trace_id in stretch.traces} | {trace_id for (trace_id,) in logs}


def known_digests(connection: "Connection", keys: list[Key]) -> dict[Key, set[str]]:
    """The digests of the known versions of some spans; of a version that is only a piece, none."""
    known: dict[Key, set[str]] = {}
    for place in places_of(connection, keys):
        rows = connection.execute(_DIGEST + _IN_PLACE, place).fetchall()
        for trace_id, span_id, digest in rows:
            known.setdefault((trace_id, span_id), set()).add(digest)
    return known


_IN_PLACE: Final = "start_ns BETWEEN $1 AND $2 AND (trace_id, span_id) IN (SELECT unnest($3), unnest($4))"
_DIGEST: Final = "SELECT trace_id, span_id, CASE WHEN started THEN digest END FROM (FROM spans UNION ALL FROM span_versions) WHERE "


def places_of(connection: "Connection", keys: Sequence[Key]) -> list[list[Any]]:
    """Where these spans are, if they are there at all: parameters of a condition that is :data:`_IN_PLACE`."""
    if not keys:
        return []
    by_trace: dict[str, list[str]] = {}
    for trace_id, span_id in keys:
        by_trace.setdefault(trace_id, []).append(span_id)

    def parameters(place: Stretch) -> list[Any]:
        wanted = [(trace_id, span_id) for trace_id in place.traces for span_id in by_trace[trace_id]]
        return [place.first_ns, place.last_ns, [trace_id for trace_id, _ in wanted], [span_id for _, span_id in wanted]]

    return [parameters(place) for place in stretches(connection, by_trace)]


def known_versions(connection: "Connection", places: Sequence[list[Any]]) -> dict[Key, list[Version]]:
    """The known versions of some spans, the current ones first; ``places`` is what :func:`places_of` them gave."""
    known: dict[Key, list[Version]] = {}
    for table, current in (("spans", True), ("span_versions", False)):
        for place in places:
            result = connection.execute(f"SELECT * FROM {table} WHERE {_IN_PLACE}", place)  # noqa: S608
            columns = [column[0] for column in result.description or ()]
            for values in result.fetchall():
                row = dict(zip(columns, values, strict=True))
                known.setdefault((row["trace_id"], row["span_id"]), []).append(version_of(row, current=current))
    return known


def delete_spans(connection: "Connection", keys: list[Key]) -> None:
    """Removes all versions of some spans, inside the caller's transaction."""
    for place in places_of(connection, keys):
        connection.execute(f"DELETE FROM spans WHERE {_IN_PLACE}", place).fetchall()  # noqa: S608
        connection.execute(f"DELETE FROM span_versions WHERE {_IN_PLACE}", place).fetchall()  # noqa: S608
