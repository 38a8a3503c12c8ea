"""One run out of a small store and out of a large one."""

import resource
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Final

from bench.measure import Ratio, ratio
from spanreplay.store.store import Store
from support.size import FULL

_SMALL: Final = 100_000 if FULL else 6_000
_LARGE: Final = 50 * _SMALL
_OF_A_RUN: Final = 30
_LISTED: Final = 50
"""Runs that ``spanreplay runs`` lists."""
_AT_ONCE: Final = 200
"""Runs whose spans arrive by turns."""
_HELD: Final = 150_000_000
"""Bytes that what is written takes, each time."""


def make(folder: Path, spans: int) -> Store:
    """A store of runs of 30 spans, of which many go on at the same time."""
    store = Store.open(folder, create=True)
    with store._database.writing(much=True, size=_HELD) as connection:
        connection.execute(
            f"""INSERT INTO spans BY NAME
            SELECT md5((i // {_AT_ONCE * _OF_A_RUN} * {_AT_ONCE} + i % {_AT_ONCE})::VARCHAR) AS trace_id, trace_id AS run_id,
                printf('%016x', i) AS span_id, 'chat' AS name, 3 AS kind, 1790000000000000000 + i * 1000000 AS start_ns,
                start_ns + 5000000 AS end_ns, 0 AS status, '' AS status_message, 'chat' AS op, 'gpt-5-mini' AS model, 'refunds' AS agent,
                i AS seq_start, i + 1 AS seq_end, 100 AS input_tokens, 20 AS output_tokens, 'model_call' AS step_kind,
                '{{"app.number":' || i || ',"gen_ai.request.model":"gpt-5-mini"}}' AS attributes, '' AS trace_state, 0 AS flags,
                0 AS dropped_attributes, 0 AS dropped_events, 0 AS dropped_links, 'recorder' AS origin, true AS complete, true AS started,
                'sha256:' || sha256('{{"attrs":' || attributes || ',"end":' || end_ns || ',"kind":3,"name":"chat","span":"' || span_id
                    || '","start":' || start_ns || ',"trace":"' || trace_id || '"}}') AS digest
            FROM range({spans}) AS r(i)"""
        ).fetchall()
        connection.execute(
            "INSERT INTO extents BY NAME SELECT trace_id, run_id, min(start_ns) AS first_ns, max(start_ns) AS last_ns,"
            " md5_number_lower(trace_id) AS key, md5_number_lower(run_id) AS run_key FROM spans GROUP BY ALL"
        ).fetchall()
        connection.execute(
            "INSERT INTO steps BY NAME SELECT run_id, row_number() OVER (PARTITION BY run_id ORDER BY start_ns) AS seq,"
            " 'model_call' AS kind, 'gpt-5-mini' AS name, trace_id, span_id, 'ok' AS outcome, start_ns AS started_ns,"
            " end_ns AS ended_ns, 'exact' AS grade,"
            " 'openai' AS dialect, 100 AS input_tokens, 20 AS output_tokens, 0 AS bytes FROM spans"
        ).fetchall()
        connection.execute(
            "INSERT INTO run_traces BY NAME SELECT DISTINCT run_id, trace_id, md5_number_lower(run_id) AS key FROM spans"
        ).fetchall()
        connection.execute(
            "INSERT INTO runs BY NAME SELECT run_id, min(start_ns) AS started_ns, max(end_ns) AS ended_ns, 'refunds' AS agent,"
            " 'ok' AS outcome, 'exact' AS grade, count(*) AS n_steps, false AS is_command, 0 AS dropped"
            " FROM spans GROUP BY run_id ORDER BY started_ns"
        ).fetchall()
    return store


@cache
def _stores() -> tuple[list[Store], list[str], "tempfile.TemporaryDirectory[str]"]:
    """The small one and the large one, a run of each, and where they are for as long as the bench goes on."""
    folder = tempfile.TemporaryDirectory()
    stores = [make(Path(folder.name) / name, spans) for name, spans in (("small", _SMALL), ("large", _LARGE))]
    return stores, [store.find_runs(limit=1, offset=_SMALL // _OF_A_RUN // 2)[0].run_id for store in stores], folder


def one_run() -> Ratio:
    """A run of 30 spans by its id, out of fifty times as many, the database opened for it."""
    stores, runs, _ = _stores()

    def load(number: int) -> None:
        store = stores[number]
        with store.reading():
            spans = list(store.traces(store.traces_of(runs[number])))
        assert len(spans) == _OF_A_RUN

    return ratio(
        f"a run of 30 spans out of {_LARGE} / out of {_SMALL}",
        lambda: load(0),
        lambda: load(1),
        goal=2,
        times=1,
        pairs=20,
        clock=time.process_time,
    )


def runs_command() -> Ratio:
    """``spanreplay runs`` on the large store, against the same question to DuckDB, both as programs of their own from their start."""
    return _command("runs", f"SELECT * FROM runs ORDER BY started_ns DESC LIMIT {_LISTED}")


def show_command() -> Ratio:
    """``spanreplay show`` of one of its runs, against its steps as DuckDB gives them."""
    _, (_, run), _ = _stores()
    return _command("show", f"SELECT * FROM steps WHERE run_id = '{run}' ORDER BY seq", run)


def _command(name: str, sql: str, *arguments: str) -> Ratio:
    (_, store), _, _ = _stores()
    shell = f"import duckdb; duckdb.connect({str(store.path / 'runs.duckdb')!r}, read_only=True).sql({sql!r}).show(max_rows={_LISTED})"
    return ratio(
        f"spanreplay {name} of {_LARGE} spans / DuckDB asked for the same",
        lambda: _program("-c", shell),
        lambda: _program("-m", "spanreplay.cli.main", name, *arguments, "--store", str(store.path)),
        goal=2,
        times=1,
        pairs=20,
        clock=_cpu_of_programs,
        note="its package for Python in place of its shell, of which there is none on PyPI that opens files of 2.0",
    )


def _program(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def _cpu_of_programs() -> float:
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime
