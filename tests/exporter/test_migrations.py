"""Migrations: every older store is brought up to date, a newer one is refused."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from spanreplay.spans.record import SpanRecord
from spanreplay.store.errors import DamagedStoreError, NewerStoreError
from spanreplay.store.journal import JournalWriter
from spanreplay.store.migrations import MIGRATIONS, SCHEMA_VERSION
from spanreplay.store.process import current_process
from spanreplay.store.schema import migrate, schema_version
from spanreplay.store.store import Store

pytestmark = pytest.mark.usefixtures("stores_made")

RELEASED = {
    1: "ef6d1cf7ef5439d987f444fb98d8547f000a67d2d67f121f6c40f1c5c3fe977c",
    2: "b8520f0dfcd9f7423ec9eeee7a5068bd702a518c447b3e9e5facc9b999454b4f",
    3: "c58866fd03876c010a9e95bd91d37c265c80e7651e8d93ede4ff09906307b2d5",
    4: "93e96f775dcf7f82dfc977a469377ba087af0f276a79bc4d4c336d2b10b30b04",
    5: "7c36cbd91a08b334ae8516674ccbcaa12b7424f03047f11b88136e9f6bdc761f",
    6: "50a0a5c0f1e56daa4329740a86e3d30f19375fba0d24d96e2c5538a8c0fbb991",
    7: "86eb6d368124965ffbba23306169f8dcbf7fd8c891c590644ce7d498c95ba1a8",
    8: "f800e50bae1a1613bfd7d09b7814eccc975f9b27836189713a3a01620f4df4a1",
    9: "319eda259a0b7a8b3a0c7bceb73609c78838812d9bee32c6d64d09403fac5cc6",
    10: "44fd4b456dd7d3843741c532b7868aee699a871864920108a08ff7ff3b33fe66",
    11: "652d32ad328a964ee40953233918c0a4819edfa051b42bdc6dc051fc3177b83f",
    12: "156ee1f04facc8ab94347387bf8e66cf647eca50727cc205b3289cbe865dea6c",
}
"""sha256 of the SQL of each released migration: stores in the world were made by exactly this."""


def make_old_store(folder: Path, version: int) -> Store:
    """A store as the program of that schema version left it, with one span and one run in it."""
    import duckdb

    store = Store.open(folder, create=True)
    connection = duckdb.connect(str(folder / "runs.duckdb"))
    migrate(connection, upto=version)
    connection.execute(
        "INSERT INTO spans (trace_id, span_id, name, kind, start_ns, end_ns, status, status_message, attributes, trace_state, flags,"
        " dropped_attributes, dropped_events, dropped_links, origin, complete, started, digest)"
        " VALUES ('t', 's', 'old', 1, 5, 6, 0, '', '{\"a\":1}', '', 0, 0, 0, 0, 'recorder', true, true, 'sha256:old')"
    )
    if version >= 9:
        connection.execute("INSERT INTO extents SELECT 't', NULL, NULL, 5, 5, md5_number_lower('t'), NULL")
    connection.execute("DELETE FROM meta WHERE key = 'digests'")
    connection.execute("INSERT INTO runs (run_id, started_ns, is_command, dropped) VALUES ('r', 5, false, 0)")
    connection.execute(
        "INSERT INTO run_traces BY NAME SELECT 'r' AS run_id, 't' AS trace_id" + (", md5_number_lower('r') AS key" if version >= 9 else "")
    )
    connection.close()
    return store


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_a_store_of_every_version_can_be_read_and_written(tmp_path: Path, version: int) -> None:
    store = make_old_store(tmp_path / "store", version)
    assert list(store.traces(["t"])) == [
        SpanRecord(trace_id="t", span_id="s", name="old", kind=1, start_ns=5, end_ns=6, attributes={"a": 1})
    ]
    assert store.run_ids("") == ["r"]
    applied = list(store.query("SELECT version, name FROM migrations ORDER BY version").rows)
    assert applied == [(number, name) for number, name, _ in MIGRATIONS]
    writer = JournalWriter(store.path, process=current_process())
    writer.open_span(SpanRecord(trace_id="t", span_id="new", start_ns=9))
    store.compact()
    assert [one.span_id for one in store.traces(["t"])] == ["s", "new"]
    assert list(store.query("SELECT process, ended FROM processes").rows) == [(current_process().process_id, False)]
    for view in ("tool_calls", "model_calls", "messages", "decisions", "versions"):
        assert list(store.query(f"SELECT * FROM {view}").rows) == []


def test_an_old_store_is_compacted_without_being_read_first(tmp_path: Path) -> None:
    store = make_old_store(tmp_path / "store", 1)
    JournalWriter(store.path, process=current_process()).open_span(SpanRecord(trace_id="t", span_id="new", start_ns=9))
    assert store.compact().new == 1


def test_a_newer_store_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    store = make_old_store(tmp_path / "store", SCHEMA_VERSION)
    with store._database.writing() as connection:
        connection.execute("INSERT INTO migrations VALUES (99, 'later', 1)")
    writer = JournalWriter(store.path, process=current_process())
    writer.open_span(SpanRecord(trace_id="t", span_id="new"))
    for act in (store.find_runs, store.compact, lambda: list[Any](store.traces(["t"])), lambda: store.query("SELECT 1")):
        with pytest.raises(NewerStoreError, match="schema 99"):
            act()
    assert len(list((store.path / "journal").iterdir())) == 1


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    import duckdb

    store = Store.open(tmp_path / "store", create=True)
    connection = duckdb.connect(str(store.path / "runs.duckdb"))
    connection.execute("CREATE TABLE customers (a INT)")
    connection.close()
    with pytest.raises(DamagedStoreError, match="customers"):
        store.find_runs()


def test_a_migration_that_fails_leaves_the_old_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    connection = duckdb.connect(str(tmp_path / "x.duckdb"))
    migrate(connection, upto=1)
    broken = (MIGRATIONS[0], (2, "broken", ("CREATE TABLE half (a INT)", "SELECT nonsense")))
    monkeypatch.setattr("spanreplay.store.schema.MIGRATIONS", broken)
    with pytest.raises(duckdb.Error):
        migrate(connection)
    assert schema_version(connection) == 1
    monkeypatch.undo()
    assert migrate(connection) == SCHEMA_VERSION - 1
    assert migrate(connection) == 0
    connection.close()


def test_a_new_store_is_what_one_became_version_by_version(tmp_path: Path) -> None:
    import duckdb

    made, grown = (duckdb.connect(str(tmp_path / name)) for name in ("made", "grown"))
    assert migrate(made) == SCHEMA_VERSION
    for version in range(1, SCHEMA_VERSION + 1):
        assert migrate(grown, upto=version) == 1
    for asked in (
        "SELECT sql FROM duckdb_tables() ORDER BY sql",
        "SELECT sql FROM duckdb_views() WHERE NOT internal ORDER BY sql",
        "SELECT * FROM meta WHERE key <> 'created_ns' ORDER BY key",
        "SELECT version, name FROM migrations ORDER BY version",
    ):
        found = made.execute(asked).fetchall()
        assert found
        assert found == grown.execute(asked).fetchall()
    made.close()
    grown.close()


def test_a_new_store_is_made_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    connection = duckdb.connect(str(tmp_path / "x.duckdb"))
    monkeypatch.setattr("spanreplay.store.schema.MIGRATIONS", (MIGRATIONS[0], (2, "broken", ("SELECT nonsense",))))
    with pytest.raises(duckdb.Error):
        migrate(connection)
    assert connection.execute("SELECT * FROM duckdb_tables()").fetchall() == []
    monkeypatch.undo()
    assert migrate(connection) == SCHEMA_VERSION
    connection.close()


def test_released_migrations_are_never_edited() -> None:
    found = {version: hashlib.sha256("\n".join(statements).encode()).hexdigest() for version, _, statements in MIGRATIONS}
    assert found == RELEASED


def test_every_table_column_group_and_view_is_documented(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store", create=True)
    undocumented = "SELECT table_name FROM duckdb_tables() WHERE comment IS NULL AND table_name <> 'migrations'"
    assert list(store.query(undocumented).rows) == []
    assert list(store.query("SELECT view_name FROM duckdb_views() WHERE NOT internal AND comment IS NULL").rows) == []
    assert list(store.query("SELECT count(*) FROM duckdb_indexes()").rows) == [(0,)]
    assert list(store.query("SELECT count(*) FROM duckdb_constraints()").rows) == [(0,)]
