"""How the database is written: in groups of rows that fit into memory, without a word on the terminal."""

from pathlib import Path
from typing import Any

import pytest

from spanreplay.spans.record import SpanRecord
from spanreplay.store import database, groups
from spanreplay.store.journal import JournalWriter
from spanreplay.store.process import current_process
from spanreplay.store.store import Store


def setting(connection: Any, name: str) -> object:
    return connection.execute(f"SELECT current_setting('{name}')").fetchall()[0][0]


def span(number: int, **attributes: str) -> SpanRecord:
    return SpanRecord(
        trace_id=f"{number // 8 + 1:032x}", span_id=f"{number + 1:016x}", start_ns=number, end_ns=number, attributes=attributes
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store", create=True)


def groups_of(store: Store, table: str) -> list[int]:
    """The rows of each group."""
    found = store.query(
        f"SELECT row_group_id, CAST(sum(count) AS BIGINT) FROM pragma_storage_info('{table}')"
        " WHERE column_id = 0 AND segment_type <> 'VALIDITY' GROUP BY ALL ORDER BY ALL"
    )
    return [rows for _, rows in found.rows]


def test_a_large_import_is_written_once_and_nothing_is_put_together_after(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanreplay.store.compaction.BATCH_RECORDS", 3000)
    store.add((span(number) for number in range(9000)), origin="import")
    assert groups_of(store, "spans") == [3000, 3000, 3000]


def load(store: Store, first: int, count: int) -> None:
    writer = JournalWriter(store.path, process=current_process())
    for number in range(first, first + count):
        writer.write_span(span(number), "recorder")
    writer.close()
    store.compact()


@pytest.mark.parametrize("rows_of_a_large_one", [12, 13])
def test_large_groups_of_recorded_spans_are_written_once(store: Store, monkeypatch: pytest.MonkeyPatch, rows_of_a_large_one: int) -> None:
    monkeypatch.setattr("spanreplay.store.compaction.SMALL", 2 * rows_of_a_large_one)
    for first in range(0, 48, 12):
        load(store, first, 12)
    assert groups_of(store, "spans") == ([12, 12, 12, 12] if rows_of_a_large_one == 12 else [48])


@pytest.mark.parametrize(("spans", "transactions"), [(20, "1"), (22, "1"), (40, "2")])
def test_the_end_of_a_journal_goes_with_what_is_before_it(
    store: Store, monkeypatch: pytest.MonkeyPatch, spans: int, transactions: str
) -> None:
    monkeypatch.setattr("spanreplay.store.compaction.JOURNAL_RECORDS", 20)
    load(store, 0, spans)
    assert [*store.query("SELECT value FROM meta WHERE key = 'generation'").rows] == [(transactions,)]


def test_small_ones_do_not_pile_up(store: Store) -> None:
    for _ in range(12):
        with store._database.writing() as connection:
            connection.execute("INSERT INTO meta SELECT 'k', repeat('v', 20) FROM range(20)").fetchall()
    assert len(groups_of(store, "meta")) < 6


def test_groups_with_much_content_are_left_as_they_are(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_SMALL_FILE", 0)
    monkeypatch.setattr(groups, "_BYTES", 200_000)
    with store._database.writing() as connection:
        assert setting(connection, "max_vacuum_tasks") == 2
    store.add([span(number, text=f"{number} " + "x" * 60_000) for number in range(3)], origin="import")
    with store._database.writing() as connection:
        assert setting(connection, "max_vacuum_tasks") == 2
    store.add([span(number, text=f"{number} " + "x" * 60_000) for number in range(3, 5)], origin="import")
    with store._database.writing() as connection:
        assert setting(connection, "max_vacuum_tasks") == 0


def test_what_is_much_at_once_makes_large_groups(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanreplay.store.compaction.BATCH_RECORDS", 10_000)
    store.add((span(number) for number in range(9000)), origin="import")
    assert groups_of(store, "spans") == [9000]


@pytest.mark.parametrize(("bytes_of_a_group", "rows"), [(300_000, 4096), (150_000, 2048)])
def test_where_there_is_much_content_in_few_rows_groups_have_fewer(
    store: Store, monkeypatch: pytest.MonkeyPatch, bytes_of_a_group: int, rows: int
) -> None:
    for name, value in {"SMALL": 2048, "LARGE": 4096, "_SMALL_FILE": 0, "_LONG": 10, "_BYTES": bytes_of_a_group}.items():
        monkeypatch.setattr(groups, name, value)
    with store._database.writing() as connection:
        connection.execute("INSERT INTO blobs BY NAME SELECT 'd' AS digest, 50 AS bytes FROM range(4096)").fetchall()
    with store._database.writing() as connection:
        assert setting(connection, "max_vacuum_tasks") == 2
        connection.execute("INSERT INTO meta SELECT i, i FROM range(5000) AS r(i)").fetchall()
    assert max(groups_of(store, "meta")) == rows


@pytest.mark.parametrize("much", [False, True])
def test_duckdb_draws_no_bar_of_its_own(store: Store, much: bool) -> None:
    with store._database.writing(much=much) as connection:
        assert setting(connection, "enable_progress_bar") is False
    with store._database.reading() as connection:
        assert setting(connection, "enable_progress_bar") is False


def test_a_value_larger_than_a_batch_has_the_memory_that_it_takes(store: Store) -> None:
    def memory(size: int) -> float:
        with database.Database(store.path).writing(much=True, size=size) as connection:
            number, unit = str(setting(connection, "memory_limit")).split()
            return float(number) * {"MiB": 2**20, "GiB": 2**30}[unit]

    assert memory(0) == memory(16_000_000) < 210_000_000, "batches of the usual size go with little"
    assert memory(100_000_000) > 5 * 100_000_000
