"""What the files that traces were imported from had lost, kept by trace until a whole copy of the trace arrives."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from spanreplay.store.extents import stretches

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection


def find(connection: "Connection", trace_ids: Sequence[str] | None = None) -> dict[str, list[str]]:
    """Trace id to what was lost of it; of all traces if none are named."""
    rows = connection.execute(
        "SELECT trace_id, detail FROM source_losses WHERE $1 OR trace_id IN (SELECT unnest($2::VARCHAR[])) ORDER BY rowid",
        [trace_ids is None, list(trace_ids or ())],
    ).fetchall()
    found: dict[str, list[str]] = {}
    for trace_id, detail in rows:
        found.setdefault(trace_id, []).append(detail)
    return found


def add(connection: "Connection", losses: Mapping[str, Iterable[str]], generation: int) -> None:
    """Remembers losses that are not known yet, inside the caller's transaction; the traces that they are of become stale."""
    known = find(connection, list(losses))
    new = [(trace_id, detail) for trace_id, details in losses.items() for detail in details if detail not in known.get(trace_id, ())]
    if new:
        columns = [[trace_id for trace_id, _ in new], [detail for _, detail in new]]
        connection.execute("INSERT INTO source_losses SELECT unnest($1), unnest($2)", columns).fetchall()
        _make_stale(connection, {trace_id for trace_id, _ in new}, generation)


def forget(connection: "Connection", spans: Mapping[str, int], generation: int) -> None:
    """Forgets the losses of traces of which as many spans came from one whole input as the store has, inside the caller's transaction."""
    whole: set[str] = set()
    for stretch in stretches(connection, spans):
        rows = connection.execute(
            "SELECT trace_id, count(*) FROM spans WHERE trace_id IN (SELECT unnest($1)) AND start_ns BETWEEN $2 AND $3 GROUP BY trace_id",
            list(stretch),
        ).fetchall()
        whole |= {trace_id for trace_id, held in rows if spans[trace_id] >= held}
    if whole:
        connection.execute("DELETE FROM source_losses WHERE trace_id IN (SELECT unnest($1))", [sorted(whole)]).fetchall()
        _make_stale(connection, whole, generation)


def _make_stale(connection: "Connection", trace_ids: set[str], generation: int) -> None:
    connection.execute("DELETE FROM stale WHERE trace_id IN (SELECT unnest($1))", [sorted(trace_ids)]).fetchall()
    connection.execute("INSERT INTO stale SELECT unnest($1), $2", [sorted(trace_ids), generation]).fetchall()
