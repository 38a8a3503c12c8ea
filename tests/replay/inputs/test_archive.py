"""Archives: runs out of a store into Parquet and back, the same; one of them found by reading little; here and through fsspec."""

import json
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spanreplay.replay.archiving import write_archive
from spanreplay.replay.importing import import_records
from spanreplay.replay.inputs.archive import MARKER, open_archive
from spanreplay.replay.inputs.report import UnreadableSource
from spanreplay.semconv.attributes import PROCESS_ID
from spanreplay.spans.record import EventRecord, LogRecord, Record, SpanRecord
from spanreplay.store.archive_folder import ArchiveError, ArchiveFolder, is_url
from spanreplay.store.retention import Limits, Retention
from spanreplay.store.rows import RunRow
from spanreplay.store.store import Store

DAY = 86_400 * 10**9
START = 1_790_000_000 * 10**9


def trace(number: int) -> str:
    return f"{number:032x}"


def run_of(number: int, spans: int = 3) -> list[Record]:
    start = START + number * DAY // 4
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a", "gen_ai.conversation.id": f"conv-{number % 3}"}
    odd: dict[str, Any] = {
        "raw": b"\x00\xff",
        "whole": 1.0,
        "large": 2**60,
        "half": "\ud800",
        "list": ("a", 1),
        "nul": "a\x00b",
        "long": "x" * 5000,
    }
    made: list[Record] = [
        SpanRecord(trace_id=trace(number), span_id=f"{1:016x}", name="a", start_ns=start, end_ns=start + 99, attributes=agent)
    ]
    for n in range(2, spans + 1):
        call = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"t{n}", **odd}
        made.append(
            SpanRecord(
                trace_id=trace(number), span_id=f"{n:016x}", parent_span_id=f"{1:016x}", name="t", start_ns=start + n, end_ns=start + n + 1,
                attributes=call, events=(EventRecord(name="e", time_ns=start + n),),
            )
        )  # fmt: skip
    return [*made, LogRecord(time_ns=start, trace_id=trace(number), span_id=f"{2:016x}", body={"said": number})]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive") / "store"
    store = Store.open(folder, create=True)
    import_records(store, [record for number in range(1, 9) for record in run_of(number)], {trace(3): ["line 17 was cut"]})
    return folder


@pytest.fixture
def place(tmp_path: Path) -> str:
    """Where an archive is made."""
    return str(tmp_path / "archive")


@pytest.fixture
def remote() -> Iterator[str]:
    """Where one is made that only fsspec knows."""
    fsspec = pytest.importorskip("fsspec")
    name = f"memory://{uuid.uuid4().hex}/runs"
    yield name
    fsspec.filesystem("memory").rm(name.removeprefix("memory:/"), recursive=True)


def archive(store: Path, place: str, limits: Limits = Limits()) -> None:
    retention = Retention(store)
    bundles, _ = retention.archivable(limits)
    marks = retention.fingerprints([trace_id for bundle in bundles for trace_id in bundle.traces])
    write_archive(Store.open(store), bundles, ArchiveFolder(place), marks, lambda _: None)


def key(record: Record) -> tuple[str, bool, str]:
    return record.trace_id or "", isinstance(record, LogRecord), record.span_id or ""


def same(found: Iterator[Record], number: int | None = None) -> bool:
    wanted = [record for n in (range(1, 9) if number is None else [number]) for record in run_of(n)]
    return sorted(found, key=key) == sorted(wanted, key=key)


def test_everything_comes_back_as_it_was(made: Path, place: str) -> None:
    archive(made, place)
    opened = open_archive(place)
    assert (opened.format, same(opened.records)) == ("archive", True)
    assert {name: [*told] for name, told in opened.report.losses.items()} == {trace(3): ["line 17 was cut"]}
    assert same(open_archive(place, trace(5)).records, 5)
    assert list(open_archive(place, "nothing").records) == []


def test_the_same_through_fsspec(made: Path, remote: str) -> None:
    test_everything_comes_back_as_it_was(made, remote)
    before = ArchiveFolder(remote).names("")
    archive(made, remote)
    assert ArchiveFolder(remote).names("") == before


def test_archiving_again_changes_nothing(made: Path, place: str) -> None:
    archive(made, place, Limits(keep=4))
    folder = ArchiveFolder(place)
    before = {name: folder.read(name) for name in folder.names("")}
    archive(made, place, Limits(keep=4))
    assert {name: folder.read(name) for name in folder.names("")} == before


def test_what_has_changed_is_archived_again_and_read_once(made: Path, place: str, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "store")
    archive(tmp_path / "store", place, Limits(keep=5))
    late = LogRecord(time_ns=START, trace_id=trace(2), body="late")
    import_records(Store.open(tmp_path / "store"), [late])
    archive(tmp_path / "store", place)
    found = list(open_archive(place, trace(2)).records)
    assert len(found) == 5
    found.remove(late)
    assert same(iter(found), 2)
    assert len(list(open_archive(place).records)) == 8 * 4 + 1


def test_it_can_be_imported_and_is_the_same_run(made: Path, place: str, tmp_path: Path) -> None:
    archive(made, place)
    opened = open_archive(place)
    store = Store.open(tmp_path / "other", create=True)
    assert import_records(store, opened.records, opened.report.losses).new == 8 * 4
    first, second = Store.open(made), store

    def told(of: Store) -> list[tuple[object, ...]]:
        return [(run.run_id, run.started_ns, run.n_steps, run.grade, run.session_id) for run in of.find_runs()]

    assert told(first) == told(second)
    assert second.source_losses() == {trace(3): ["line 17 was cut"]}


def test_one_run_is_found_by_reading_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    from spanreplay.replay.inputs import archive as module

    store = Store.open(tmp_path / "store", create=True)
    ids = [trace(number) for number in range(1, 6)]
    spans = (SpanRecord(trace_id=name, span_id=f"{n:016x}", name="t", start_ns=START, end_ns=START) for name in ids for n in range(1, 851))
    store.add(spans, origin="import")
    store.put_runs(ids, [RunRow(run_id=name, trace_ids=(name,)) for name in ids], [])
    import_records(store, run_of(500))
    place = tmp_path / "archive"
    archive(store.path, str(place))
    files = sorted((place / "records").rglob("*.parquet"))
    assert len(files) == 2, "a day a file"
    plans: list[str] = []
    real = ArchiveFolder.ask

    def ask(self: ArchiveFolder, sql: str, names: Any, parameters: Any = ()) -> Iterator[tuple[Any, ...]]:
        if sql == module._ROWS_OF:
            connection = duckdb.connect()
            plans.append(connection.execute(f"EXPLAIN ANALYZE {sql}", [[self._place(n) for n in names], *parameters]).fetchall()[0][1])
            connection.close()
        return real(self, sql, names, parameters)

    monkeypatch.setattr(ArchiveFolder, "ask", ask)
    found = list(open_archive(str(place), trace(2)).records)
    assert len(found) == 850
    assert len(plans) == 1, "one file"
    scanned = re.search(r"Row Groups Scanned: (\d+) / (\d+)", plans[0])
    assert scanned is not None, plans[0]
    assert (int(scanned[1]) <= 2, int(scanned[2]) >= 3) == (True, True), scanned[0]


def test_a_run_with_versions_and_losses_keeps_them(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store", create=True)
    one = SpanRecord(
        trace_id=trace(1), span_id=f"{1:016x}", name="a", start_ns=START, end_ns=START + 1, attributes={PROCESS_ID: "p1", "a": 1}
    )
    other = SpanRecord(trace_id=trace(1), span_id=f"{1:016x}", name="b", start_ns=START, end_ns=START + 1)
    import_records(store, [one, other])
    with store._database.writing() as connection:
        connection.execute("INSERT INTO journals (name, process, dropped, crc_errors) VALUES ('x', 'p1', 3, 1)")
    archive(store.path, str(tmp_path / "archive"))
    opened = open_archive(str(tmp_path / "archive"))
    assert sorted(opened.records, key=lambda r: getattr(r, "name", "")) == [one, other]
    assert {name: [*told] for name, told in opened.report.losses.items()} == {trace(1): ["process p1 lost 4 records"]}


@pytest.fixture(scope="module")
def whole(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "archive"
    archive(made, str(folder), Limits(keep=7))
    return folder


@pytest.mark.parametrize("damage", ["no marker", "another version", "no parquet", "another form", "a way out", "no json"])
def test_what_is_no_archive_of_ours_is_said(damage: str, whole: Path, tmp_path: Path) -> None:
    place = tmp_path / "archive"
    shutil.copytree(whole, place)
    (index,) = (place / "runs").rglob("*.parquet")
    (records,) = (place / "records").rglob("*.parquet")
    if damage == "no marker":
        (place / MARKER).unlink()
    elif damage == "another version":
        (place / MARKER).write_text(json.dumps({"schema": 2}))
    elif damage == "no parquet":
        records.write_bytes(b"PAR1 no")
    elif damage == "another form":
        shutil.copy(records, index)
    else:
        import duckdb

        row = (
            "'[1]', '../../x'" if damage == "a way out" else "'{', 'x'"
        ) + " AS records, NULL::VARCHAR AS command_id, NULL::VARCHAR AS lost"
        duckdb.sql(f"COPY (SELECT 'r' AS run_id, {row.replace(',', ' AS trace_ids,', 1)}) TO '{index}'")
    opened = None
    try:
        opened = open_archive(str(place))
        assert list(opened.records) == []
    except (ArchiveError, UnreadableSource):
        return
    assert damage == "a way out"
    assert opened.report.rejected == 1


@pytest.mark.parametrize("kind", ["folder", "url"])
def test_a_file_that_is_gone_is_named(kind: str, whole: Path, tmp_path: Path) -> None:
    place = tmp_path / "archive"
    shutil.copytree(whole, place)
    (records,) = (place / "records").rglob("*.parquet")
    records.unlink()
    where = str(place) if kind == "folder" else f"memory://{tmp_path.name}"
    if kind == "url":
        memory = pytest.importorskip("fsspec").filesystem("memory")
        memory.put(f"{place}/", f"/{tmp_path.name}/", recursive=True)
    with pytest.raises(ArchiveError, match=f"{records.relative_to(place)} is not there"):
        list(open_archive(where).records)


def test_urls() -> None:
    assert [is_url(text) for text in ("s3://b/x", "memory://x", "http://x", "https://x", "jaeger+http://x", "a/b", "C:\\x", "-")] == [
        True, True, False, False, False, False, False, False,
    ]  # fmt: skip
    with pytest.raises(ArchiveError, match="nosuch"):
        ArchiveFolder("nosuch://x")


def test_without_fsspec_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ArchiveError, match=r"spanreplay\[archive\]"):
        ArchiveFolder("memory://x")
