"""Whether the rows of some runs are those that were written: what was changed, added or deleted by hand is named.

Each span is compared with the digest of what was recorded, and its columns with what is recorded; traces and derived rows with their sums
(:mod:`spanreplay.store.seals`). A store that an older version has written to lacks some of these, and then nothing is said of it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from spanreplay.store.blobs import load_content, select_blobs
from spanreplay.store.compaction import JOURNAL_COLUMNS
from spanreplay.store.derived import DERIVED, derived_rows, losses
from spanreplay.store.encoding import blob_refs, digest_of, to_sorted_json
from spanreplay.store.form import RESOURCE, Form
from spanreplay.store.loading import LOG_COLUMNS, log_row, service_in
from spanreplay.store.reading import digests_hold
from spanreplay.store.rows import RunRow, StepRow
from spanreplay.store.seals import RunSeals, records_of, row_seal
from spanreplay.store.span_rows import COLUMNS, row_of, version_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

_LEFT: Final = 60
"""Characters of a value that are shown."""
_ROWS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A row that is not what was written."""

    table: str
    detail: str
    run_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    seq: int | None = None
    """Of a step."""
    column: str | None = None
    """``None`` where it cannot be told, or the whole row is concerned."""
    unsealed: bool = False
    """It says only that some derived row of the run was changed; :func:`name_changes` tells which."""
    lost: bool = False
    """Nobody changed it: it is not there, and some of what the process recorded was lost before it was loaded."""
    dropped_attributes: int | None = None
    """Of a span that lacks content: how many attributes the SDK dropped. The span as it is loaded lacks more."""


def changes(connection: "Connection", run_ids: Sequence[str]) -> list[Change]:
    """What of some runs is not what was written.

    Args:
        connection: may read.
        run_ids: of these runs; what their traces hold of other runs is looked at, too.
    """
    stale = {trace_id for (trace_id,) in connection.execute("SELECT trace_id FROM stale").fetchall()}
    sums = connection.execute(
        "SELECT DISTINCT trace_id, n_records, checksum FROM run_traces WHERE run_id IN (SELECT unnest($1)) ORDER BY trace_id", [[*run_ids]]
    ).fetchall()
    traces = [*dict.fromkeys(trace_id for trace_id, _, _ in sums)]
    found = [*_spans(connection, traces), *_logs(connection, traces), *_extents(connection, traces)]
    there = records_of(connection, traces, anywhere=True)
    for trace_id, count, checksum in sums:
        if trace_id in stale or count is None:
            continue
        now, known = there.get(trace_id), {change.span_id for change in found if change.trace_id == trace_id}
        if (now.n_records if now else 0) != count:
            detail = f"{now.n_records if now else 0} records are there, and its runs were derived from {count}: rows were added or deleted"
            found.append(Change(table="spans", trace_id=trace_id, detail=detail))
            found += _gone(connection, trace_id)
        elif now is not None and now.checksum != checksum and not known:
            detail = "its records are not those that its runs were derived from, or others delivered them"
            found.append(Change(table="spans", trace_id=trace_id, column="origin", detail=detail))
    found += _processes(connection, traces)
    found += _contents(connection, traces, run_ids)
    return [*found, *_unsealed(connection, run_ids, stale), *_orphans(connection)]


def name_changes(connection: "Connection", run_ids: Iterable[str], runs: Sequence[RunRow], steps: Sequence[StepRow]) -> list[Change]:
    """What of the derived rows of some runs is not what their records say.

    Args:
        connection: may read.
        run_ids: of these runs.
        runs: as they are derived now, others may be among them.
        steps: all steps of these.
    """
    wanted = {*run_ids}
    made = derived_rows(connection, [run for run in runs if run.run_id in wanted], [step for step in steps if step.run_id in wanted])
    found: list[Change] = []
    for table, columns in DERIVED.items():
        there = _rows(connection, table, [*wanted])
        names = [column for column in columns if column in _NAMES[table]]
        old, new = _by_name(there, columns, names), _by_name(made[table], columns, names)
        for name in dict.fromkeys([*new, *old]):
            where = dict(zip(names, name[:-1], strict=True))
            at: dict[str, Any] = {"table": table, "run_id": where["run_id"], "seq": where.get("seq", where.get("first_seq"))}
            if name not in old:
                found.append(Change(**at, detail="the row is not there"))
            elif name not in new:
                found.append(Change(**at, detail="nothing that was recorded says that there is such a row"))
            else:
                found += _differing(columns, old[name], new[name], at)
    return found


_NAMES: Final = {"runs": {"run_id"}, "steps": {"run_id", "seq"}, "history": {"run_id", "thread", "part", "n", "first_seq"}}


def _by_name(rows: Iterable[tuple[Any, ...]], columns: Sequence[str], names: Sequence[str]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    places = [columns.index(name) for name in names]
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in rows:
        name = tuple(row[place] for place in places)
        copy = sum(other[:-1] == name for other in found) if (*name, 0) in found else 0
        found[*name, copy] = row
    return found


def _differing(columns: Sequence[str], there: Sequence[Any], wanted: Sequence[Any], at: Mapping[str, Any]) -> Iterator[Change]:
    for column, value, expected in zip(columns, there, wanted, strict=True):
        if value != expected:
            yield Change(**at, column=column, detail=f"{column} is {_shown(value)}, and {_shown(expected)} was recorded")


def _shown(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
    return text if len(text) <= _LEFT else f"{text[:_LEFT]}…"


def _select(connection: "Connection", statement: str, parameters: Sequence[Any]) -> list[dict[str, Any]]:
    result = connection.execute(statement, [*parameters])
    columns = [column[0] for column in result.description or ()]
    return [dict(zip(columns, values, strict=True)) for values in result.fetchall()]


# ---- what was recorded -----------------------------------------------------------------------------------------------


def _spans(connection: "Connection", traces: Sequence[str]) -> Iterator[Change]:
    exact = digests_hold(connection)
    for table in ("spans", "span_versions"):
        rows = _select(connection, f"SELECT * FROM {table} WHERE trace_id IN (SELECT unnest($1)) ORDER BY start_ns, span_id", [[*traces]])  # noqa: S608
        resources = {row["resource"] for row in rows if row["resource"] is not None}
        services = {digest: service_in(text) for digest, text in select_blobs(connection, resources, "text") if text is not None}
        for row in rows:
            at = {"table": table, "trace_id": row["trace_id"], "span_id": row["span_id"], "run_id": row["run_id"]}
            try:
                version = version_of(row, current=True)
                version.known_digest = None
                wanted = dict(zip(COLUMNS, row_of(version, services.get(row["resource"] or "")), strict=True))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                yield Change(**at, detail=f"the row cannot be read ({error})")
                continue
            if exact and wanted.pop("digest") != row["digest"]:
                yield _told(row, connection, at)
            wanted.pop("digest", None)
            yield from _differing([*wanted], [row[column] for column in wanted], [*wanted.values()], at)


def _told(row: Mapping[str, Any], connection: "Connection", at: Mapping[str, Any]) -> Change:
    """Which column of a span was changed, where one value that it may have had makes the digest right."""
    for column, values in _candidates(row, connection).items():
        for value in values:
            if value != row[column] and _digest({**row, column: value}) == row["digest"]:
                detail = f"{column} is {_shown(row[column])}, and {_shown(value)} was recorded"
                return Change(**at, column=column, detail=detail)
    return Change(**at, detail="it is not what its digest says: its name, a time, an attribute, an event or a link was changed")


def _candidates(row: Mapping[str, Any], connection: "Connection") -> dict[str, list[Any]]:
    others = connection.execute("SELECT DISTINCT span_id FROM spans WHERE trace_id = $1", [row["trace_id"]]).fetchall()
    steps = connection.execute(
        "SELECT started_ns, ended_ns, error_message FROM steps WHERE trace_id = $1 AND span_id = $2", [row["trace_id"], row["span_id"]]
    ).fetchall()
    ends = connection.execute("SELECT first_ns, last_ns FROM extents WHERE trace_id = $1", [row["trace_id"]]).fetchall()
    return {
        "status": [0, 1, 2],
        "kind": [*range(6)],
        "parent_span_id": [None, *(span_id for (span_id,) in others)],
        "start_ns": [*(step[0] for step in steps), *(time for extent in ends for time in extent)],
        "end_ns": [None, *(step[1] for step in steps)],
        "status_message": ["", *(step[2] for step in steps if step[2] is not None)],
        "flags": [0, 1, 256, 257, 768, 769],
        "dropped_attributes": [0],
        "dropped_events": [0],
        "dropped_links": [0],
        "trace_state": [""],
    }


def _digest(row: Mapping[str, Any]) -> str | None:
    try:
        return digest_of(to_sorted_json(version_of(row, current=True).form).encode("ascii"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _logs(connection: "Connection", traces: Sequence[str]) -> Iterator[Change]:
    exact = digests_hold(connection)
    for row in _select(connection, "SELECT * FROM logs WHERE trace_id IN (SELECT unnest($1)) ORDER BY time_ns, digest", [[*traces]]):
        at = {"table": "logs", "trace_id": row["trace_id"], "span_id": row["span_id"]}
        try:
            content = json.loads(row["record"])
            digest = digest_of(to_sorted_json(content).encode("ascii"))
            wanted = log_row(row["digest"], content, row["origin"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            yield Change(**at, detail=f"the row cannot be read ({error})")
            continue
        if exact and digest != row["digest"]:
            yield Change(**at, column="record", detail="the record is not what its digest says")
        yield from _differing(LOG_COLUMNS, [row[column] for column in LOG_COLUMNS], wanted, at)


def _extents(connection: "Connection", traces: Sequence[str]) -> Iterator[Change]:
    rows = connection.execute(
        "SELECT trace_id, run_id, first_ns, last_ns FROM (SELECT trace_id, run_id, command_id, min(start_ns) AS first_ns,"
        " max(start_ns) AS last_ns FROM (SELECT trace_id, run_id, command_id, start_ns FROM spans UNION ALL"
        " SELECT trace_id, run_id, command_id, start_ns FROM span_versions) WHERE trace_id IN (SELECT unnest($1)) GROUP BY ALL) AS has"
        " WHERE NOT EXISTS (FROM extents WHERE extents.trace_id = has.trace_id AND extents.run_id IS NOT DISTINCT FROM has.run_id"
        " AND extents.command_id IS NOT DISTINCT FROM has.command_id AND extents.first_ns <= has.first_ns"
        " AND extents.last_ns >= has.last_ns AND extents.key = md5_number_lower(extents.trace_id)) ORDER BY trace_id",
        [[*traces]],
    ).fetchall()
    for trace_id, run_id, first_ns, last_ns in rows:
        detail = f"no row covers its spans, which begin from {first_ns} to {last_ns}"
        yield Change(table="extents", trace_id=trace_id, run_id=run_id, detail=detail)


def _gone(connection: "Connection", trace_id: str) -> Iterator[Change]:
    """Spans that are not there, or twice, as far as that can be told."""
    rows = connection.execute(
        "SELECT run_id, span_id, any_value(seq) FROM steps WHERE trace_id = $1 AND span_id NOT IN"
        " (SELECT span_id FROM spans WHERE trace_id = $1) GROUP BY ALL ORDER BY ALL",
        [trace_id],
    ).fetchall()
    for run_id, span_id, seq in rows:
        yield Change(table="spans", trace_id=trace_id, span_id=span_id, run_id=run_id, seq=seq, detail="the row is not there")
    twice = connection.execute("SELECT span_id FROM spans WHERE trace_id = $1 GROUP BY span_id HAVING count(*) > 1 ORDER BY 1", [trace_id])
    for (span_id,) in twice.fetchall():
        yield Change(table="spans", trace_id=trace_id, span_id=span_id, detail="there are several rows of it")


def _processes(connection: "Connection", traces: Sequence[str]) -> Iterator[Change]:
    """Processes that recorded spans, and of which there is no journal, or another than was written."""
    rows = connection.execute(
        "SELECT DISTINCT trace_id, process FROM spans WHERE trace_id IN (SELECT unnest($1)) AND origin = 'recorder'"
        " AND process IS NOT NULL AND process NOT IN (SELECT process FROM journals WHERE process IS NOT NULL) ORDER BY ALL",
        [[*traces]],
    ).fetchall()
    for trace_id, process in rows:
        yield Change(table="journals", trace_id=trace_id, detail=f"there is no row of process {process}, which recorded spans of it")
    columns = ", ".join(f"journals.{column}" for column in JOURNAL_COLUMNS)
    statement = (
        f"SELECT any_value(spans.trace_id), journals.digest, {columns} FROM spans JOIN journals USING (process)"  # noqa: S608 - our names
        " WHERE trace_id IN (SELECT unnest($1)) AND journals.digest IS NOT NULL GROUP BY ALL ORDER BY ALL"
    )
    for trace_id, digest, *row in connection.execute(statement, [[*traces]]).fetchall():
        if row_seal("journals", row) != digest:
            told = dict(zip(JOURNAL_COLUMNS, row, strict=True))
            numbers = ", ".join(f"{column} {told[column]}" for column in ("records", "dropped", "crc_errors"))
            detail = f"the row of process {told['process']} is not the one that was written; it says: {numbers}"
            yield Change(table="journals", trace_id=trace_id, detail=detail)


def _contents(connection: "Connection", traces: Sequence[str], run_ids: Sequence[str]) -> Iterator[Change]:
    """Content that is not what its digest says, or is not there."""
    named: dict[str, dict[Any, tuple[dict[str, Any], str | None]]] = {}
    """By digest and span: where it is named, and the process that recorded that."""
    both = "SELECT *, true AS is_current FROM spans UNION ALL SELECT *, false FROM span_versions"
    for row in _select(connection, f"SELECT * FROM ({both}) WHERE trace_id IN (SELECT unnest($1))", [[*traces]]):  # noqa: S608 - our own text
        try:
            form: Form = version_of(row, current=True).form
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        key = row["trace_id"], row["span_id"]
        where = {"trace_id": key[0], "span_id": key[1], "run_id": row["run_id"]}
        if row["is_current"]:
            where["dropped_attributes"] = row["dropped_attributes"] or 0
        if RESOURCE in form:  # told of once: every span names it
            named.setdefault(form[RESOURCE], {key: (where, row["process"])})
        for digest in blob_refs(form):
            named.setdefault(digest, {}).setdefault(key, (where, row["process"]))
    for run_id, seq, text in connection.execute(
        "SELECT run_id, first_seq, parts FROM history WHERE run_id IN (SELECT unnest($1))", [[*run_ids]]
    ).fetchall():
        try:
            for digest in json.loads(text)[1::2]:
                named.setdefault(digest, {run_id: ({"run_id": run_id, "seq": seq}, None)})
        except (ValueError, TypeError):
            continue  # its sum says so
    damaged: list[str] = []
    there = load_content(connection, named, damaged)
    gone = [(digest, *place) for digest, places in named.items() if digest not in there for place in places.values()]
    lossy = losses(connection, [*{process for _, _, process in gone if process is not None}]) if gone else {}
    for digest, where, process in gone:
        changed = any(digest in line for line in damaged)
        lost = not changed and bool(lossy.get(process or ""))
        how = "has been changed" if changed else "was lost with its line of the journal" if lost else "is not there whole"
        yield Change(table="blobs", **where, lost=lost, detail=f"the content {digest} {how}")


# ---- what was derived ------------------------------------------------------------------------------------------------


def _rows(connection: "Connection", table: str, run_ids: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """In no order, a few at a time: to sort them, DuckDB would have all of them in memory, and one may be very long."""
    columns = ", ".join(DERIVED[table])
    cursor = connection.execute(f"SELECT {columns} FROM {table} WHERE run_id IN (SELECT unnest($1))", [[*run_ids]])  # noqa: S608
    while rows := cursor.fetchmany(_ROWS):
        yield from rows


def _unsealed(connection: "Connection", run_ids: Sequence[str], stale: set[str]) -> Iterator[Change]:
    """Runs whose derived rows are not those that were written; :func:`name_changes` tells which."""
    seals = RunSeals()
    for table, columns in DERIVED.items():
        seals.take(table, columns, _rows(connection, table, run_ids))
    known = connection.execute(
        "SELECT run_id, any_value(digest), list(DISTINCT trace_id) FROM runs LEFT JOIN run_traces USING (run_id)"
        " WHERE run_id IN (SELECT unnest($1)) GROUP BY run_id ORDER BY run_id",
        [[*run_ids]],
    ).fetchall()
    for run_id, digest, traces in known:
        if digest is not None and stale.isdisjoint(traces) and seals.of(run_id) != digest:
            yield Change(table="runs", run_id=run_id, column="digest", detail=_UNSEALED, unsealed=True)


_UNSEALED: Final = "its rows in runs, steps or history are not those that were derived"
_ORPHANS: Final = """
    SELECT run_id, 'runs' AS gone, 'steps' AS left_in FROM (SELECT DISTINCT run_id FROM steps) ANTI JOIN runs USING (run_id)
    UNION ALL SELECT run_id, 'runs', 'run_traces' FROM (SELECT DISTINCT run_id FROM run_traces) ANTI JOIN runs USING (run_id)
    UNION ALL SELECT run_id, 'run_traces', 'runs' FROM runs ANTI JOIN run_traces USING (run_id)
    ORDER BY ALL LIMIT 100
"""


def _orphans(connection: "Connection") -> Iterator[Change]:
    """Runs of the whole store of which one table has rows and another has none."""
    for run_id, gone, left_in in connection.execute(_ORPHANS).fetchall():
        yield Change(table=gone, run_id=run_id, detail=f"the row is not there, and {left_in} has some of this run")
