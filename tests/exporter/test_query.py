"""SQL over the store: what people ask, and what a question may not do."""

import datetime as dt
import decimal
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from spanreplay.spans.record import SpanRecord
from spanreplay.store.errors import QueryError, StoreError
from spanreplay.store.migrations import MIGRATIONS
from spanreplay.store.rows import RunRow, StepRow
from spanreplay.store.store import Store

TRACE = "0af7651916cd43dd8448eb211c80319c"


def step(seq: int, kind: str, name: str, **fields: Any) -> StepRow:
    times = {"started_ns": seq * 10**9, "ended_ns": seq * 10**9 + 5 * 10**6}
    known: dict[str, Any] = {"run_id": "r", "seq": seq, "kind": kind, "name": name, "trace_id": TRACE, "span_id": "1" * 16}
    return StepRow(**(known | times | fields))


def message(role: str, *texts: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text} for text in texts]}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store.open(tmp_path_factory.mktemp("query") / "store", create=True)
    store.add([SpanRecord(trace_id=TRACE, span_id="1" * 16, start_ns=1, attributes={"a": "x" * 600})], origin="import")
    steps = [
        step(
            1,
            "model_call",
            "gpt",
            input=json.dumps({"messages": [message("system", "be kind"), message("user", "a", "b")]}),
            output=json.dumps({"messages": [message("assistant", "hi")], "finish": "stop"}),
            versions=json.dumps({"prompt": "greet@2", "model": {"name": "gpt"}}),
            input_tokens=5,
            output_tokens=2,
        ),
        step(2, "tool_call", "add", input='{"arguments":{"a":1}}', output='{"result":{"sum":2}}', requested_by=1),
        step(3, "tool_call", "mail", input='{"arguments":"not an object"}', outcome="error", error_type="E", decision='{"outcome":"deny"}'),
        step(4, "model_call", "gpt", input="not json", output=None, versions="[1]", decision="not json"),
    ]
    store.put_runs([TRACE], [RunRow(run_id="r", trace_ids=(TRACE,), agent="a")], steps)
    return store


def ask(store: Store, sql: str) -> list[tuple[object, ...]]:
    return list(store.query(sql).rows)


def test_values_are_those_of_python(store: Store) -> None:
    result = store.query(
        "SELECT NULL AS n, true AS t, 1.5::DECIMAL(3,1) AS d, DATE '2026-01-02' AS day, [1, 2] AS l, {'a': 1} AS s, 'x'::BLOB AS b"
    )
    assert result.columns == ("n", "t", "d", "day", "l", "s", "b")
    assert list(result.rows) == [(None, True, decimal.Decimal("1.5"), dt.date(2026, 1, 2), [1, 2], {"a": 1}, b"x")]


def test_tool_calls(store: Store) -> None:
    rows = ask(store, "SELECT tool, arguments->>'a', result->>'sum', duration_ms, outcome, requested_by FROM tool_calls ORDER BY seq")
    assert rows == [("add", "1", "2", 5.0, "unknown", 1), ("mail", None, None, 5.0, "error", None)]


def test_model_calls(store: Store) -> None:
    assert ask(store, "SELECT model, sum(input_tokens), count(*) FROM model_calls GROUP BY model") == [("gpt", 5, 2)]


def test_messages(store: Store) -> None:
    rows = ask(store, "SELECT seq, side, n, role, text FROM messages ORDER BY seq, side, n")
    assert rows == [(1, "input", 0, "system", "be kind"), (1, "input", 1, "user", "a b"), (1, "output", 0, "assistant", "hi")]


def test_decisions(store: Store) -> None:
    assert ask(store, "SELECT seq, name, decision FROM decisions") == [(3, "mail", "deny")]


def test_versions(store: Store) -> None:
    rows = ask(store, "SELECT seq, what, version_text FROM versions WHERE what = 'prompt'")
    assert rows == [(1, "prompt", "greet@2")]


def test_long_text_is_found_by_joining_blobs(store: Store) -> None:
    sql = "SELECT length(text) FROM spans JOIN blobs ON digest_of_a = blobs.digest"
    sql = sql.replace("spans", "(SELECT attributes::JSON->'a'->>'$.\"$blob\"' AS digest_of_a FROM spans)")
    assert ask(store, sql) == [(600,)]


@pytest.mark.parametrize(
    "sql",
    [
        "VALUES (1)",
        "WITH x AS (SELECT 1 AS a) FROM x",
        "DESCRIBE spans",
        "SHOW TABLES",
        "SUMMARIZE runs",
        "EXPLAIN SELECT 1",
        "SELECT 1;",
        "explain analyze\n(format json) select 1",
    ],
)
def test_statements_that_read_are_welcome(store: Store, sql: str) -> None:
    assert ask(store, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM spans",
        "INSERT INTO meta VALUES ('a', 'b')",
        "UPDATE spans SET name = 'x'",
        "DROP TABLE spans",
        "CREATE TABLE x (a INT)",
        "CREATE TEMP TABLE x (a INT)",
        "COPY spans TO '/tmp/spanreplay-test-out.csv'",
        "EXPORT DATABASE '/tmp/spanreplay-test-out'",
        "ATTACH '/tmp/spanreplay-test-out.duckdb' AS x",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "PRAGMA enable_external_access = true",
        "SET enable_external_access = true",
        "CALL pragma_version()",
        "CHECKPOINT",
        "BEGIN",
        "SELECT 1; SELECT 2",
        "",
        "-- nothing",
        "SELEC 1",
        "SELECT * FROM nowhere",
        "SELECT 1/'a'",
        "SELECT error('mine')",
        "FROM query('DROP TABLE runs')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_json('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "FROM '/etc/passwd'",
        "FROM 'http://127.0.0.1:9/x.parquet'",
        "SELECT getenv('HOME')",
        "UPDATE EXTENSIONS",
        "USE memory",
        "RESET threads",
        "VACUUM",
        "DETACH runs",
        "CREATE SECRET s (TYPE s3)",
        "CREATE MACRO m() AS 1",
        "CALL enable_logging()",
        "PREPARE p AS SELECT 1",
        "IMPORT DATABASE '/tmp'",
        "COPY runs FROM '/etc/passwd'",
        "COPY (SELECT 1) TO '/dev/stdout'",
        "MERGE INTO runs USING runs r ON false WHEN NOT MATCHED THEN INSERT VALUES (1)",
        "EXPLAIN ANALYZE DELETE FROM runs",
        "EXPLAIN ANALYZE COPY runs TO '/tmp/spanreplay-test-out.csv'",
        "EXPLAIN COPY runs TO '/tmp/spanreplay-test-out.csv'",
        "EXPLAIN (ANALYZE, FORMAT json) CREATE TABLE x (a INT)",
        "/* */ EXPLAIN ANALYZE SELECT 1",
        "FROM duckdb_secrets()",
        "FROM duckdb_extensions()",
        "FROM json_execute_serialized_sql(json_serialize_sql('FROM read_text(''/etc/passwd'')'))",
        "FROM read_blob('/etc/passwd')",
        "FROM sniff_csv('/etc/passwd')",
        "FROM read_csv(['/etc/passwd'])",
        "FROM read_duckdb('/tmp/x.duckdb')",
        "FROM sqlite_scan('/tmp/x', 't')",
        "FROM 's3://bucket/x.parquet'",
        "SUMMARIZE '/etc/passwd'",
        "FROM store",
    ],
)
def test_everything_else_is_refused_with_a_reason(store: Store, sql: str) -> None:
    with pytest.raises(QueryError) as caught:
        store.query(sql)
    assert str(caught.value)
    assert isinstance(caught.value, StoreError)
    assert not list(Path("/tmp").glob("spanreplay-test-out*"))


def test_nothing_was_changed_by_what_was_refused(store: Store) -> None:
    tables = {name for version in MIGRATIONS for text in version[2] for name in re.findall(r"CREATE TABLE (\w+)", text)}
    expected = len({"migrations", *tables} - {name for name in tables if name.endswith("_anew")})
    counted = "SELECT (SELECT count(*) FROM spans), (SELECT count(*) FROM steps), (SELECT count(*) FROM duckdb_tables())"
    assert ask(store, counted) == [(1, 4, expected)]


@pytest.mark.parametrize("name", ["runs.duckdb", "runs.duckdb.wal", "x"])
def test_a_plan_cannot_overwrite_the_store(store: Store, name: str) -> None:
    before = (store.path / "runs.duckdb").read_bytes()
    for how in ("EXPLAIN ANALYZE", "explain (analyze)", "EXPLAIN"):
        with pytest.raises(QueryError):
            store.query(f"{how} COPY (SELECT 1) TO '{store.path / name}' (FORMAT csv)")
    assert (store.path / "runs.duckdb").read_bytes() == before
    assert not (store.path / name).exists() or name == "runs.duckdb"


def test_a_variable_of_the_caller_is_no_table(store: Store) -> None:
    rows = {"a": [1]}
    with pytest.raises(QueryError, match="rows"):
        store.query("SELECT * FROM rows")
    assert rows


def test_a_question_leaves_half_of_the_disk_to_those_who_record(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(8 << 30, 4 << 30, 4 << 30))
    assert ask(store, "SELECT current_setting('max_temp_directory_size')") == [("2.0 GiB",)]


def test_a_pivot_says_what_it_wants(store: Store) -> None:
    assert len(ask(store, "PIVOT steps ON outcome IN ('ok', 'error') USING count(*) GROUP BY name")) == 3
    with pytest.raises(QueryError, match=r"PIVOT names .* IN \("):
        store.query("PIVOT steps ON outcome USING count(*) GROUP BY name")


def test_duckdb_says_what_is_wrong(store: Store) -> None:
    with pytest.raises(QueryError, match="nowhere does not exist"):
        store.query("SELECT * FROM nowhere")


def test_the_plain_shell_can_open_the_file_afterwards(store: Store) -> None:
    import duckdb

    connection = duckdb.connect(str(store.path / "runs.duckdb"), read_only=True)
    try:
        assert connection.execute("SELECT agent FROM runs").fetchall() == [("a",)]
    finally:
        connection.close()
