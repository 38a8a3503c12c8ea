"""Runs and steps in the database: written whenever their traces change, and found again."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from spanreplay.semconv import attributes as names
from spanreplay.store.encoding import Json, to_readable_json
from spanreplay.store.extents import stretches
from spanreplay.store.histories import Histories
from spanreplay.store.rows import RunRow, StepRow
from spanreplay.store.seals import HISTORY_COLUMNS, Records, RunSeals, records_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

RUN_COLUMNS: Final = tuple(item.name for item in fields(RunRow) if item.name != "trace_ids")
STEP_COLUMNS: Final = tuple(item.name for item in fields(StepRow))
STORED_STEP_COLUMNS: Final = (*STEP_COLUMNS, "bytes", "thread")
DERIVED: Final[Mapping[str, tuple[str, ...]]] = {"runs": RUN_COLUMNS, "steps": STORED_STEP_COLUMNS, "history": HISTORY_COLUMNS}
"""Columns of the tables whose rows are derived of a run."""
_RUN_ID: Final = RUN_COLUMNS.index("run_id")
_JSON_COLUMNS: Final = frozenset({"input", "output", "versions", "decision"})
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


def stale_traces(connection: "Connection") -> dict[str, int]:
    """Traces that have changed since their runs were derived, with the generation of the change."""
    return dict(connection.execute("SELECT trace_id, generation FROM stale ORDER BY trace_id").fetchall())


def count_stale(connection: "Connection") -> int:
    """How many such traces there are."""
    found = connection.execute("SELECT count(*) FROM stale").fetchall()
    return int(found[0][0])


def put_runs(
    connection: "Connection",
    trace_ids: Sequence[str],
    runs: Sequence[RunRow],
    steps: Sequence[StepRow],
    seen: Mapping[str, int],
    origin: str | None = None,
    histories: Histories | None = None,
    found: Mapping[str, Records] | None = None,
) -> None:
    """Replaces the derived rows of these traces, inside the caller's transaction.

    Args:
        connection: in a transaction.
        trace_ids: the traces that the runs were derived from.
        runs: all runs in them.
        steps: all steps of these runs.
        seen: generation of the change that was looked at, by trace: one that has changed again since then stays stale.
        origin: who delivered all spans of these traces, if that is known.
        histories: of these steps, if they are made already.
        found: what the database has of these traces, if that is known.
    """
    histories = histories or Histories(steps)
    old = connection.execute("SELECT DISTINCT run_id FROM run_traces WHERE trace_id IN (SELECT unnest($1))", [list(trace_ids)]).fetchall()
    known = connection.execute("SELECT run_id FROM runs WHERE run_id IN (SELECT unnest($1))", [[run.run_id for run in runs]]).fetchall()
    if old or known:
        gone = [[*{run_id for (run_id,) in (*old, *known)}]]
        connection.execute("DELETE FROM runs WHERE run_id IN (SELECT unnest($1))", gone).fetchall()
        connection.execute("DELETE FROM steps WHERE run_id IN (SELECT unnest($1))", gone).fetchall()
        connection.execute("DELETE FROM run_traces WHERE run_id IN (SELECT unnest($1))", gone).fetchall()
        connection.execute("DELETE FROM history WHERE run_id IN (SELECT unnest($1))", gone).fetchall()
    wanted = {trace_id for run in runs for trace_id in run.trace_ids}
    if found is None or not wanted <= found.keys():
        found = records_of(connection, wanted)
    rows = _rows(runs, steps, found, origin, histories)
    seals = RunSeals()
    for table, columns in DERIVED.items():
        seals.take(table, columns, rows[table])
    _append(connection, "runs", (*RUN_COLUMNS, "digest"), ((*row, seals.of(row[_RUN_ID])) for row in rows["runs"]))
    _put_traces(connection, runs, found)
    histories.put(connection)
    _append(connection, "steps", STORED_STEP_COLUMNS, rows["steps"])
    limits = [seen.get(trace_id, 2**63 - 1) for trace_id in trace_ids]
    connection.execute(
        "DELETE FROM stale USING (SELECT unnest($1) AS id, unnest($2) AS seen) AS done"
        " WHERE stale.trace_id = done.id AND stale.generation <= done.seen",
        [list(trace_ids), limits],
    ).fetchall()


def derived_rows(connection: "Connection", runs: Sequence[RunRow], steps: Sequence[StepRow]) -> dict[str, list[tuple[Any, ...]]]:
    """The rows that :func:`put_runs` would write, by table of :data:`DERIVED`."""
    found = records_of(connection, {trace_id for run in runs for trace_id in run.trace_ids})
    return _rows(runs, steps, found, None, Histories(steps))


def _rows(
    runs: Sequence[RunRow], steps: Sequence[StepRow], found: Mapping[str, Records], origin: str | None, histories: Histories
) -> dict[str, list[tuple[Any, ...]]]:
    return {
        "runs": [_run_row(run, found, origin) for run in runs],
        "steps": [_step_row(step, histories) for step in steps],
        "history": histories.rows,
    }


def _put_traces(connection: "Connection", runs: Sequence[RunRow], found: Mapping[str, Records]) -> None:
    nothing = Records(0, 0, "")
    rows = [(run.run_id, trace_id, *found.get(trace_id, nothing)[:2]) for run in runs for trace_id in run.trace_ids]
    if rows:
        connection.execute(_PUT_TRACES, [*map(list, zip(*rows, strict=True))]).fetchall()


_PUT_TRACES: Final = """
    INSERT INTO run_traces BY NAME SELECT *, md5_number_lower(run_id) AS key FROM (
        SELECT unnest($1::VARCHAR[]) AS run_id, unnest($2::VARCHAR[]) AS trace_id,
            unnest($3::BIGINT[]) AS n_records, unnest($4::UBIGINT[]) AS checksum)
"""


def _append(connection: "Connection", table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    appender = connection.appender(table, columns=list(columns))
    appender.append_rows(rows)
    appender.flush()


_values_of_run: Final = attrgetter(*RUN_COLUMNS)
_values_of_step: Final = attrgetter(*STEP_COLUMNS)


def _run_row(run: RunRow, found: Mapping[str, Records], origin: str | None) -> tuple[Any, ...]:
    if run.origin is None and origin is None:
        parts = (part for trace_id in run.trace_ids if trace_id in found for part in found[trace_id].origins.split(",") if part)
        origin = ",".join(sorted({*parts}))
    return tuple(map(_storable, RUN_COLUMNS, _values_of_run(run if run.origin is not None else replace(run, origin=origin))))


def _step_row(step: StepRow, histories: Histories) -> tuple[Any, ...]:
    step, thread = histories.left(step)
    stored = [
        None if value is None else _storable(column, value) for column, value in zip(STEP_COLUMNS, _values_of_step(step), strict=True)
    ]
    return *stored, len(step.input or "") + len(step.output or ""), thread


def _storable(column: str, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, str):
        if column in _JSON_COLUMNS:
            return queryable(value)
        return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
    if type(value) is int and not -(2**63) <= value < 2**63:
        return None
    return value


def queryable(text: str) -> str:
    """A JSON text that DuckDB's JSON functions accept: they refuse lone surrogates, which become U+FFFD (spans keep the exact value)."""
    # Looking for the letters first is many times faster than the expression, in texts that hold neither.
    if ("\\ud" not in text and "\\uD" not in text) or _ESCAPED_SURROGATE.search(text) is None:
        return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
    try:
        return to_readable_json(_clean(json.loads(text)))
    except (ValueError, RecursionError):
        return _SURROGATE.sub("\ufffd", text)


def _clean(value: Json) -> Json:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {_SURROGATE.sub("\ufffd", key): _clean(item) for key, item in value.items()}
    return value


_FILTERS: Final[Mapping[str, str]] = {
    "agent": "agent = $agent",
    "since_ns": "started_ns >= $since_ns",
    "outcome": "outcome = $outcome",
    "grade": "grade = $grade",
    "session": "session_id = $session",
    "command_id": "command_id = $command_id",
    "run_id": "run_id = $run_id",
    "tool": "run_id IN (SELECT run_id FROM steps WHERE kind = 'tool_call' AND name = $tool)",
}
_LATEST: Final = "ORDER BY started_ns DESC, run_id DESC LIMIT $limit::BIGINT"
_BARE: Final = "is_command AND n_steps = 0"
_ALONE: Final = """(command_id IS NULL OR command_id NOT IN (
    SELECT command_id FROM runs WHERE command_id IS NOT NULL GROUP BY command_id HAVING count(*) > 1))"""


def find_runs(connection: "Connection", filters: Mapping[str, str | int | None]) -> list[RunRow]:
    """Runs that meet all filters, newest first; the keys are those of :meth:`spanreplay.store.store.Store.find_runs`."""
    given = {name: value for name, value in filters.items() if value is not None and name in _FILTERS}
    wanted = "".join(f" AND {_FILTERS[name]}" for name in given)
    if {"command_id", "run_id"} & given.keys():
        statement = f"SELECT * FROM runs WHERE true{wanted} {_LATEST} OFFSET $offset::BIGINT"  # noqa: S608
    else:  # By their places first, and what asks other rows apart: DuckDB finds the latest of a plain table in a tenth of the time.
        statement = f"""
            WITH places AS (
                (SELECT rowid AS place, started_ns, run_id FROM runs WHERE NOT ({_BARE}){wanted} {_LATEST} + $offset::BIGINT)
                UNION ALL
                (SELECT rowid, started_ns, run_id FROM runs WHERE {_BARE} AND {_ALONE}{wanted} {_LATEST} + $offset::BIGINT))
            SELECT * FROM runs WHERE rowid IN (SELECT place FROM places {_LATEST} OFFSET $offset::BIGINT)
            ORDER BY started_ns DESC, run_id DESC
        """  # noqa: S608 - of our own pieces
    return _run_rows(connection, statement, {**given, "limit": filters.get("limit"), "offset": filters.get("offset") or 0})


def load_runs(connection: "Connection", run_ids: Sequence[str]) -> list[RunRow]:
    """The runs with these ids, in order of their ids."""
    return _run_rows(connection, "SELECT * FROM runs WHERE run_id IN (SELECT unnest($1)) ORDER BY run_id", [list(run_ids)])


def _run_rows(connection: "Connection", statement: str, parameters: Any) -> list[RunRow]:
    result = connection.execute(statement, parameters)
    columns = [column[0] for column in result.description or ()]
    rows = [dict(zip(columns, values, strict=True)) for values in result.fetchall()]
    traces: dict[str, list[str]] = {row["run_id"]: [] for row in rows}
    for run_id, trace_id in connection.execute(_TRACES_OF, [list(traces)]).fetchall() if rows else ():
        if run_id in traces:
            traces[run_id].append(trace_id)
    return [RunRow(trace_ids=tuple(sorted(traces[row["run_id"]])), **{column: row[column] for column in RUN_COLUMNS}) for row in rows]


_TRACES_OF: Final = "SELECT run_id, trace_id FROM run_traces WHERE key IN (SELECT md5_number_lower(unnest($1)))"


def unsettled(connection: "Connection", run_ids: Sequence[str]) -> list[tuple[str, int, str, str]]:
    """Run, step, name and effect of every call that acts on the outside, that began, and of which nothing says how it ended."""
    return connection.execute(
        "SELECT run_id, seq, name, effect FROM steps WHERE run_id IN (SELECT unnest($1)) AND outcome = 'unknown' AND ended_ns IS NULL"
        " AND effect IN ('write', 'irreversible', 'unknown') ORDER BY run_id, seq",
        [list(run_ids)],
    ).fetchall()


def unsettled_elsewhere(connection: "Connection", run_ids: Sequence[str]) -> tuple[int, int]:
    """How many such calls there are in other runs than these, and in how many."""
    found = connection.execute(
        "SELECT count(*), count(DISTINCT run_id) FROM steps WHERE outcome = 'unknown' AND ended_ns IS NULL"
        " AND effect IN ('write', 'irreversible', 'unknown') AND run_id NOT IN (SELECT unnest($1::VARCHAR[]))",
        [list(run_ids)],
    ).fetchall()
    return found[0][0], found[0][1]


def run_ids(connection: "Connection", prefix: str) -> list[str]:
    """Ids of runs that begin so, with or without the zeros of a trace id of 64 bits, newest first; where one is just so, it alone."""
    if len(prefix) > _SHORT_ID and connection.execute(_LISTED, [prefix]).fetchall():
        return [prefix]
    if len(prefix) > _SHORT_ID:
        rows = connection.execute(f"{_BEGIN_SO} {_NEWEST}", [prefix]).fetchall()
    else:
        rows = connection.execute(f"{_BEGIN_SO} OR starts_with(run_id, $2) {_NEWEST}", [prefix, "0" * _SHORT_ID + prefix]).fetchall()
    return [run_id for (run_id,) in rows]


_SHORT_ID: Final = 16
"""Digits of a trace id of 64 bits."""
_LISTED: Final = "SELECT 1 FROM run_traces WHERE key = md5_number_lower($1) AND run_id = $1 LIMIT 1"
_BEGIN_SO: Final = "SELECT run_id FROM runs WHERE starts_with(run_id, $1)"
_NEWEST: Final = "ORDER BY started_ns DESC, run_id DESC"


def traces_of(connection: "Connection", run_id: str) -> list[str]:
    """Traces that a run has spans in, whether it has been derived yet or not."""
    traces = {trace_id for known, trace_id in connection.execute(_TRACES_OF, [[run_id]]).fetchall() if known == run_id}
    if not traces or connection.execute("SELECT 1 FROM stale LIMIT 1").fetchone() is not None:  # else all of it has been derived
        rows = connection.execute(
            "SELECT DISTINCT trace_id FROM extents WHERE run_key = md5_number_lower($1) AND run_id = $1", [run_id]
        ).fetchall()
        traces.update(trace_id for (trace_id,) in rows)
    return sorted(traces)


def traces_of_command(connection: "Connection", command_id: str) -> list[str]:
    """Traces of all runs of one recorded command."""
    rows = connection.execute(
        "SELECT trace_id FROM run_traces SEMI JOIN (SELECT run_id FROM runs WHERE command_id = $1) USING (run_id)"
        " UNION SELECT trace_id FROM extents WHERE command_id = $1 ORDER BY trace_id",
        [command_id],
    ).fetchall()
    return [trace_id for (trace_id,) in rows]


def traces_of_forks(connection: "Connection", run_ids: Sequence[str], since_ns: int) -> list[str]:
    """Traces of what was forked from these runs."""
    rows = connection.execute(
        "SELECT DISTINCT trace_id FROM spans WHERE start_ns >= $2 AND contains(attributes, $3)"
        " AND EXISTS (SELECT 1 FROM (SELECT unnest($1) AS run_id) WHERE contains(attributes, run_id)) ORDER BY trace_id",
        [list(run_ids), since_ns, f'"{names.FORKED_FROM}"'],
    ).fetchall()
    return [trace_id for (trace_id,) in rows]


def connected(connection: "Connection", trace_ids: Sequence[str]) -> list[tuple[str, ...]]:
    """Groups of traces that share runs, each group whole, for all groups that these traces are in.

    Two traces are in one group if spans of both name the same ``spanreplay.run.id``, directly or through others.
    """
    groups: list[tuple[str, ...]] = []
    left = dict.fromkeys(trace_ids)
    pairs = _run_pairs(connection, list(left))
    by_trace: dict[str, set[str]] = {}
    by_run: dict[str, set[str]] = {}
    for trace_id, run_id in pairs:
        by_trace.setdefault(trace_id, set()).add(run_id)
        by_run.setdefault(run_id, set()).add(trace_id)
    while left:
        group: set[str] = set()
        waiting = [next(iter(left))]
        while waiting:
            trace_id = waiting.pop()
            if trace_id not in group:
                group.add(trace_id)
                left.pop(trace_id, None)
                for run_id in by_trace.get(trace_id, ()):
                    waiting.extend(by_run.pop(run_id, ()))  # each once: a server's run has a trace for each request
        groups.append(tuple(sorted(group)))
    return groups


def _run_pairs(connection: "Connection", trace_ids: list[str]) -> set[tuple[str, str]]:
    pairs: set[tuple[str, str]] = set()
    wanted = trace_ids
    while wanted:
        rows = connection.execute(
            "SELECT DISTINCT trace_id, run_id FROM extents WHERE run_key IN"
            " (SELECT run_key FROM extents WHERE key IN (SELECT md5_number_lower(unnest($1))) AND run_key IS NOT NULL)",
            [wanted],
        ).fetchall()
        known = {trace_id for trace_id, _ in pairs} | set(trace_ids)
        pairs.update(rows)
        wanted = [trace_id for trace_id in {trace_id for trace_id, _ in rows} if trace_id not in known]
    return pairs


def sizes(connection: "Connection", trace_ids: Sequence[str]) -> dict[str, int]:
    """About how many bytes the spans of these traces hold: their attributes, and the long content that these refer to."""
    rows = [row for stretch in stretches(connection, trace_ids) for row in connection.execute(_SIZES, list(stretch)).fetchall()]
    return {trace_id: held for trace_id, held in rows if held}


_SIZES: Final = """
    WITH wanted AS (
        SELECT trace_id, coalesce(attributes, '') || coalesce(events, '') AS text FROM spans
        WHERE trace_id IN (SELECT unnest($1)) AND start_ns BETWEEN $2 AND $3),
    referred AS (SELECT trace_id, unnest(regexp_extract_all(text, 'sha256:[0-9a-f]{64}')) AS digest FROM wanted)
    SELECT trace_id, CAST(sum(held) AS BIGINT) FROM (
        SELECT trace_id, strlen(text) AS held FROM wanted
        UNION ALL SELECT trace_id, bytes FROM referred JOIN blobs ON key = CAST('0x' || referred.digest[8:23] AS UBIGINT))
    GROUP BY trace_id
"""


def losses(connection: "Connection", process_ids: Sequence[str]) -> dict[str, int]:
    """Records that are known to be lost, by process: dropped while recording, or damaged in the journal."""
    rows = connection.execute(
        "SELECT process, CAST(sum(dropped + crc_errors) AS BIGINT) FROM journals WHERE process IN (SELECT unnest($1)) GROUP BY process",
        [list(process_ids)],
    ).fetchall()
    return dict(rows)
