"""What was changed in a store by hand is named by run, span and column; what was only written, derived again or moved is not."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.runs.spans import agent, chat, tool
from spanreplay.replay.rebuilding.changed import CHANGED, LOST, changed, with_changes
from spanreplay.replay.rebuilding.completeness import gaps
from spanreplay.replay.rebuilding.runs import derive_groups, index, load_run
from spanreplay.spans.record import LogRecord, Resource, SpanRecord
from spanreplay.store.integrity import Change, changes, name_changes
from spanreplay.store.journal import JournalWriter
from spanreplay.store.process import current_process
from spanreplay.store.rows import RunRow, StepRow
from spanreplay.store.store import Store

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

TOOL = tool(3, 1)
LONG = SpanRecord(trace_id=TOOL.trace_id, span_id="c" * 16, parent_span_id=TOOL.span_id, name="GET", start_ns=TOOL.start_ns, end_ns=9)


@dataclass
class Tampered:
    """One store that all tests change, each for itself."""

    connection: "Connection"
    ids: list[str]
    derived: tuple[list[RunRow], list[StepRow]]

    def after(self, *statements: str) -> list[Change]:
        self.connection.begin()
        try:
            for statement in statements:
                self.connection.execute(statement).fetchall()
            found = changes(self.connection, self.ids)
            if any(change.unsealed for change in found):
                found += name_changes(self.connection, self.ids, *self.derived)
        finally:
            self.connection.rollback()
        return [change for change in found if not change.unsealed]


@pytest.fixture(scope="module")
def tampered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tampered]:
    store = Store.open(tmp_path_factory.mktemp("changed") / "store", create=True)
    resource = Resource(attributes={"service.name": "shop"})
    spans = [agent(1), chat(2, 1), TOOL, replace(LONG, attributes={"http.body": "body " * 2000})]
    log = LogRecord(trace_id=TOOL.trace_id, span_id=TOOL.span_id, time_ns=TOOL.start_ns, body="said")
    store.add([*(replace(span, resource=resource) for span in spans), log], origin="import")
    index(store)
    ids, derived = store.run_ids(""), derive_groups(store, store.connected([TOOL.trace_id]))
    assert changed(store, [load_run(store, ids[0])]) == []
    with store._database.writing() as connection:
        yield Tampered(connection, ids, derived)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("tool", "'rm'"),
        ("status", "1"),
        ("end_ns", "end_ns + 1"),
        ("start_ns", "start_ns - 5"),
        ("parent_span_id", "NULL"),
        ("kind", "4"),
        ("outcome", "'error'"),
        ("input_tokens", "7"),
        ("service", "'bank'"),
        ("complete", "false"),
    ],
)
def test_a_column_of_a_span(tampered: Tampered, column: str, value: str) -> None:
    found = tampered.after(f"UPDATE spans SET {column} = {value} WHERE span_id = '{TOOL.span_id}'")
    assert (TOOL.span_id, column) in {(change.span_id, change.column) for change in found}


@pytest.mark.parametrize("change", ["attributes = replace(attributes, 'a', 'b')", "digest = 'sha256:0'", "scope = 'x'", "name = 'other'"])
def test_what_only_the_digest_of_a_span_tells(tampered: Tampered, change: str) -> None:
    found = tampered.after(f"UPDATE spans SET {change} WHERE span_id = '{TOOL.span_id}'")
    assert any(one.span_id == TOOL.span_id and "its digest" in one.detail for one in found)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE spans SET process = 'x'", "others delivered them"),
        ("UPDATE spans SET origin = 'recorder'", "others delivered them"),
        ("UPDATE spans SET attributes = '{'", "the row cannot be read"),
        (f"DELETE FROM spans WHERE span_id = '{TOOL.span_id}'", "the row is not there"),
        (f"DELETE FROM spans WHERE span_id = '{LONG.span_id}'", "4 records are there, and its runs were derived from 5"),
        (f"INSERT INTO spans FROM spans WHERE span_id = '{TOOL.span_id}'", "there are several rows of it"),
        (f"INSERT INTO span_versions FROM spans WHERE span_id = '{TOOL.span_id}'", "6 records are there"),
        ("DELETE FROM logs", "4 records are there"),
        ("UPDATE logs SET body = '\"sold\"'", 'body is "\\"sold\\"", and "\\"said\\"" was recorded'),
        ("DELETE FROM steps WHERE kind = 'tool_call'", "the row is not there"),
        ("INSERT INTO steps SELECT * REPLACE (9 AS seq) FROM steps LIMIT 1", "nothing that was recorded says that there is such a row"),
        ("INSERT INTO steps FROM steps", "nothing that was recorded says that there is such a row"),
        ('UPDATE steps SET decision = \'{"outcome": "allowed"}\'', "decision is "),
        ("UPDATE steps SET versions = '{\"prompt\": 1}'", "versions is "),
        ("DELETE FROM history WHERE part = 'message'", "the row is not there"),
        ("UPDATE history SET parts = '[\"no\"]'", "parts is "),
        ("UPDATE runs SET outcome = 'error'", 'outcome is "error", and "ok" was recorded'),
        ("DELETE FROM runs", "run_traces has some of this run"),
        ("DELETE FROM run_traces", "runs has some of this run"),
        ("DELETE FROM extents", "no row covers its spans"),
        ("DELETE FROM blobs WHERE bytes > 9000", "is not there whole"),
        ("UPDATE blobs SET text = 'x', parts = NULL WHERE bytes > 9000", "has been changed"),
    ],
)
def test_a_row_of_a_documented_table(tampered: Tampered, statement: str, words: str) -> None:
    found = tampered.after(statement)
    assert any(words in change.detail for change in found), found


def test_what_is_stale_or_was_derived_by_an_older_version_is_not_told_of(tampered: Tampered) -> None:
    assert tampered.after() == []
    assert tampered.after("UPDATE runs SET digest = NULL, agent = 'x'", "UPDATE run_traces SET n_records = NULL", "DELETE FROM logs") == []
    assert tampered.after("INSERT INTO stale SELECT trace_id, 1 FROM run_traces", "UPDATE runs SET agent = 'x'", "DELETE FROM logs") == []


def test_a_number_of_lost_records_that_was_changed(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store", create=True)
    writer = JournalWriter(store.path, process=current_process())
    writer.write_span(TOOL, "recorder")
    writer.close()
    store.compact()
    index(store)
    (run_id,) = store.run_ids("")
    assert store.changes([run_id]) == []
    with store._database.writing() as connection:
        connection.execute("UPDATE journals SET dropped = 3").fetchall()
    (change,) = store.changes([run_id])
    assert (change.table, change.trace_id) == ("journals", TOOL.trace_id)
    assert "records 3, dropped 3, crc_errors 0" in change.detail
    with store._database.writing() as connection:
        connection.execute("UPDATE journals SET digest = NULL").fetchall()
    assert store.changes([run_id]) == []


def test_very_long_rows_are_looked_at_without_all_of_them_in_memory(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store", create=True)
    long = '"' + "xy" * 6_000_000 + '"'
    steps = [
        StepRow(run_id="r", seq=n, kind="tool_call", name="t", trace_id="a" * 32, span_id=f"{n:016x}", input=long, output=long)
        for n in range(2)
    ]
    store.put_runs(["a" * 32], [RunRow(run_id="r", trace_ids=("a" * 32,))], steps)
    with store._database.reading() as connection:
        connection.execute("SET memory_limit = '90MB'")  # in a run with 250 MB in one value, the usual 1 GB
        assert changes(connection, ["r"]) == []


@pytest.mark.parametrize("dropped", [0, 2])
def test_content_in_a_damaged_line_is_lost_and_was_dropped_by_no_sdk(tmp_path: Path, dropped: int) -> None:
    store = Store.open(tmp_path / "store", create=True)
    writer = JournalWriter(store.path, process=current_process())
    for span in (LONG, replace(LONG, span_id="d" * 16)):
        writer.write_span(replace(span, attributes={"http.body": "body " * 5000}, dropped_attributes=dropped), "recorder")
    writer.close()
    (journal,) = (store.path / "journal").iterdir()
    journal.write_bytes(journal.read_bytes().replace(b"body body", b"body BODY", 1))
    assert store.compact().crc_errors == 1
    index(store)
    run = load_run(store, store.run_ids("")[0])
    (found,) = with_changes(store, [run], gaps([run], store.traces(run.trace_ids))).values()
    lost = [gap for gap in found if gap.code == LOST]
    assert [gap.span_id for gap in lost] == ["c" * 16, "d" * 16]
    assert all("was lost with its line of the journal" in gap.detail and "runs.duckdb" not in gap.advice for gap in lost)
    counts = [gap.detail for gap in found if gap.code == "dropped-attributes"]
    assert counts == ["2 attributes were dropped where it was recorded"] * dropped
    assert CHANGED not in {gap.code for gap in found}


def test_content_that_was_deleted_is_not_told_as_lost_by_the_journal(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store", create=True)
    store.add([replace(LONG, attributes={"http.body": "body " * 5000})], origin="import")
    index(store)
    with store._database.writing() as connection:
        connection.execute("DELETE FROM blobs WHERE media = 'text/plain'").fetchall()
    run = load_run(store, store.run_ids("")[0])
    (found,) = with_changes(store, [run], gaps([run], store.traces(run.trace_ids))).values()
    codes = {gap.code: gap.advice for gap in found}
    assert "restore runs.duckdb" in codes[CHANGED]
    assert not codes.keys() & {LOST, "dropped-attributes"}
