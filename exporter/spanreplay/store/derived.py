"""Runs and steps in the database: written whenever their traces change, and found again."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from spanreplay.store.encoding import Json, to_readable_json
from spanreplay.store.histories import Histories
from spanreplay.store.rows import RunRow, StepRow

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

RUN_COLUMNS: Final = tuple(item.name for item in fields(RunRow) if item.name != "trace_ids")
STEP_COLUMNS: Final = tuple(item.name for item in fields(StepRow))
_JSON_COLUMNS: Final = frozenset({"input", "output", "versions", "decision"})
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


def stale_traces(connection: "Connection") -> dict[str, int]:
    """Traces that have changed since their runs were derived, with the generation of the change."""
    return dict(connection.execute("SELECT trace_id, generation FROM stale ORDER BY trace_id").fetchall())


def put_runs(
    connection: "Connection",
    trace_ids: Sequence[str],
    runs: Sequence[RunRow],
    steps: Sequence[StepRow],
    seen: Mapping[str, int],
    origin: str | None = None,
    histories: Histories | None = None,
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
    origins = _origins(connection, runs) if origin is None else {}
    _append(connection, "runs", RUN_COLUMNS, (_run_row(run, origins.get(run.run_id, origin)) for run in runs))
    _append(connection, "run_traces", ("run_id", "trace_id"), ((run.run_id, trace_id) for run in runs for trace_id in run.trace_ids))
    histories.put(connection)
    _append(connection, "steps", (*STEP_COLUMNS, "bytes", "thread"), (_step_row(step, histories) for step in steps))
    limits = [seen.get(trace_id, 2**63 - 1) for trace_id in trace_ids]
    connection.execute(
        "DELETE FROM stale USING (SELECT unnest($1) AS id, unnest($2) AS seen) AS done"
        " WHERE stale.trace_id = done.id AND stale.generation <= done.seen",
        [list(trace_ids), limits],
    ).fetchall()


def _origins(connection: "Connection", runs: Sequence[RunRow]) -> dict[str, str]:
    wanted = [trace_id for run in runs if run.origin is None for trace_id in run.trace_ids]
    if not wanted:
        return {}
    rows = connection.execute(
        "SELECT trace_id, string_agg(DISTINCT origin, ',' ORDER BY origin) FROM spans WHERE trace_id IN (SELECT unnest($1)) GROUP BY ALL",
        [wanted],
    ).fetchall()
    by_trace = dict(rows)
    return {
        run.run_id: ",".join(sorted({part for trace_id in run.trace_ids for part in (by_trace.get(trace_id) or "").split(",") if part}))
        for run in runs
    }


def _append(connection: "Connection", table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    appender = connection.appender(table, columns=list(columns))
    appender.append_rows(rows)
    appender.flush()


_values_of_run: Final = attrgetter(*RUN_COLUMNS)
_values_of_step: Final = attrgetter(*STEP_COLUMNS)


def _run_row(run: RunRow, origin: str | None) -> tuple[Any, ...]:
    return tuple(map(_storable, RUN_COLUMNS, _values_of_run(run if run.origin is not None else replace(run, origin=origin))))


def _step_row(step: StepRow, histories: Histories) -> tuple[Any, ...]:
    step, thread = histories.left(step)
    return *map(_storable, STEP_COLUMNS, _values_of_step(step)), len(step.input or "") + len(step.output or ""), thread


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


_FIND: Final = """
    SELECT runs.*, (SELECT list(trace_id ORDER BY trace_id) FROM run_traces WHERE run_traces.run_id = runs.run_id) AS trace_ids
    FROM runs
    WHERE ($agent::VARCHAR IS NULL OR agent = $agent::VARCHAR)
        AND ($since_ns::BIGINT IS NULL OR started_ns >= $since_ns::BIGINT)
        AND ($outcome::VARCHAR IS NULL OR outcome = $outcome::VARCHAR)
        AND ($grade::VARCHAR IS NULL OR grade = $grade::VARCHAR)
        AND ($session::VARCHAR IS NULL OR session_id = $session::VARCHAR)
        AND ($command_id::VARCHAR IS NULL OR command_id = $command_id::VARCHAR)
        AND ($run_id::VARCHAR IS NULL OR run_id = $run_id::VARCHAR)
        AND ($tool::VARCHAR IS NULL OR EXISTS (
            FROM steps WHERE steps.run_id = runs.run_id AND steps.kind = 'tool_call' AND steps.name = $tool::VARCHAR))
        AND (coalesce($command_id::VARCHAR, $run_id::VARCHAR) IS NOT NULL OR NOT is_command OR n_steps > 0 OR NOT EXISTS (
            FROM runs AS others WHERE others.command_id = runs.command_id AND others.run_id <> runs.run_id))
    ORDER BY started_ns DESC, run_id DESC
    LIMIT $limit::BIGINT OFFSET $offset::BIGINT
"""


def find_runs(connection: "Connection", filters: Mapping[str, str | int | None]) -> list[RunRow]:
    """Runs that meet all filters, newest first; the keys are those of :meth:`spanreplay.store.store.Store.find_runs`."""
    return _run_rows(connection.execute(_FIND, dict(filters)))


def load_runs(connection: "Connection", run_ids: Sequence[str]) -> list[RunRow]:
    """The runs with these ids, in order of their ids."""
    statement = (
        "SELECT runs.*, traces.trace_ids FROM runs LEFT JOIN (SELECT run_id, list(trace_id ORDER BY trace_id) AS trace_ids FROM run_traces"
        " WHERE run_id IN (SELECT unnest($1)) GROUP BY run_id) AS traces USING (run_id)"
        " WHERE runs.run_id IN (SELECT unnest($1)) ORDER BY runs.run_id"
    )
    return _run_rows(connection.execute(statement, [list(run_ids)]))


def _run_rows(result: "Connection") -> list[RunRow]:
    columns = [column[0] for column in result.description or ()]
    rows = [dict(zip(columns, values, strict=True)) for values in result.fetchall()]
    return [RunRow(trace_ids=tuple(row["trace_ids"] or ()), **{column: row[column] for column in RUN_COLUMNS}) for row in rows]


def load_steps(connection: "Connection", run_id: str) -> list[StepRow]:
    """The steps of a run in order; a model call without what is in the table ``history``."""
    result = connection.execute("SELECT * FROM steps WHERE run_id = $1 ORDER BY seq", [run_id])
    columns = [column[0] for column in result.description or ()]
    rows = [dict(zip(columns, values, strict=True)) for values in result.fetchall()]
    return [StepRow(**{column: row[column] for column in STEP_COLUMNS}) for row in rows]


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
    """Ids of runs that begin so, with or without the zeros of a trace id of 64 bits, newest first."""
    rows = connection.execute(
        "SELECT run_id FROM runs WHERE starts_with(run_id, $1) OR starts_with(run_id, $2) ORDER BY started_ns DESC, run_id DESC",
        [prefix, "0" * 16 + prefix],
    ).fetchall()
    return [run_id for (run_id,) in rows]


def traces_of(connection: "Connection", run_id: str) -> list[str]:
    """Traces that a run has spans in, whether it has been derived yet or not."""
    rows = connection.execute("SELECT trace_id FROM run_traces WHERE run_id = $1 ORDER BY trace_id", [run_id]).fetchall()
    if not rows or connection.execute("SELECT 1 FROM stale LIMIT 1").fetchone() is not None:  # else all of it has been derived
        rows = connection.execute(
            "SELECT trace_id FROM run_traces WHERE run_id = $1 UNION SELECT trace_id FROM spans WHERE run_id = $1 ORDER BY trace_id",
            [run_id],
        ).fetchall()
    return [trace_id for (trace_id,) in rows]


def traces_of_command(connection: "Connection", command_id: str) -> list[str]:
    """Traces of all runs of one recorded command."""
    rows = connection.execute(
        "SELECT trace_id FROM run_traces SEMI JOIN (SELECT run_id FROM runs WHERE command_id = $1) USING (run_id)"
        " UNION SELECT trace_id FROM spans WHERE command_id = $1 ORDER BY trace_id",
        [command_id],
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
                waiting.extend(other for run_id in by_trace.get(trace_id, ()) for other in by_run[run_id])
        groups.append(tuple(sorted(group)))
    return groups


def _run_pairs(connection: "Connection", trace_ids: list[str]) -> set[tuple[str, str]]:
    pairs: set[tuple[str, str]] = set()
    wanted = trace_ids
    while wanted:
        rows = connection.execute(
            "SELECT DISTINCT trace_id, run_id FROM spans WHERE run_id IN"
            " (SELECT run_id FROM spans WHERE trace_id IN (SELECT unnest($1)) AND run_id IS NOT NULL)",
            [wanted],
        ).fetchall()
        known = {trace_id for trace_id, _ in pairs} | set(trace_ids)
        pairs.update(rows)
        wanted = [trace_id for trace_id in {trace_id for trace_id, _ in rows} if trace_id not in known]
    return pairs


def sizes(connection: "Connection", trace_ids: Sequence[str]) -> dict[str, int]:
    """About how many bytes the spans of these traces hold: their attributes, and the long content that these refer to."""
    rows = connection.execute(
        """
        WITH wanted AS (SELECT trace_id, coalesce(attributes, '') || coalesce(events, '') AS text FROM spans
            WHERE trace_id IN (SELECT unnest($1))),
        referred AS (SELECT trace_id, unnest(regexp_extract_all(text, 'sha256:[0-9a-f]{64}')) AS digest FROM wanted)
        SELECT trace_id, CAST(sum(held) AS BIGINT) FROM (
            SELECT trace_id, strlen(text) AS held FROM wanted
            UNION ALL SELECT trace_id, bytes FROM referred JOIN blobs USING (digest))
        GROUP BY trace_id
        """,
        [list(trace_ids)],
    ).fetchall()
    return {trace_id: held for trace_id, held in rows if held}


def losses(connection: "Connection", process_ids: Sequence[str]) -> dict[str, int]:
    """Records that are known to be lost, by process: dropped while recording, or damaged in the journal."""
    rows = connection.execute(
        "SELECT process, CAST(sum(dropped + crc_errors) AS BIGINT) FROM journals WHERE process IN (SELECT unnest($1)) GROUP BY process",
        [list(process_ids)],
    ).fetchall()
    return dict(rows)
