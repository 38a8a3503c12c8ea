"""DuckDBs that stores are opened in are kept between uses, with nothing open, and never over a fork."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spanreplay.spans.record import SpanRecord
from spanreplay.store import engines
from spanreplay.store.errors import StoreError
from spanreplay.store.store import Store

TRACE = "0af7651916cd43dd8448eb211c80319c"
FIRST = SpanRecord(trace_id=TRACE, span_id="00000000000000a1", name="first", start_ns=1, end_ns=2)
SECOND = SpanRecord(trace_id=TRACE, span_id="00000000000000a2", name="second", start_ns=2, end_ns=3)


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Store:
    store = Store.open(tmp_path / "it's here", create=True)
    store.add([FIRST], origin="import")
    engines.close_idle()
    return store


def names(store: Store) -> list[str]:
    return [span.name for span in store.traces([TRACE])]


def idle(use: engines.Use = "reading") -> list[int]:
    return [id(engine) for kind, engine in engines._idle if ("use", use) in kind]


def test_the_next_read_uses_the_duckdb_of_the_last_one_and_sees_what_was_written_between(store: Store) -> None:
    assert names(store) == ["first"]
    first = idle()
    store.add([SECOND], origin="import")
    assert names(store) == ["first", "second"]
    assert idle() == first
    assert len(first) == 1


def test_the_next_write_uses_the_duckdb_of_the_last_one(store: Store, tmp_path: Path) -> None:
    with store._database.writing():
        pass
    first = idle("writing")
    assert len(first) == 1
    with Store.open(tmp_path / "other", create=True)._database.writing(much=True) as connection:
        assert setting(connection, "memory_limit") == "190.7 MiB"
    assert idle("writing") == first
    with store._database.writing() as connection:
        assert setting(connection, "memory_limit") == "953.6 MiB"
        assert setting(connection, "max_vacuum_tasks") == 2
    assert idle("writing") == first
    assert names(store) == ["first"]


def test_a_write_leaves_no_log_behind(store: Store) -> None:
    store.add([SECOND], origin="import")
    assert idle("writing much")
    assert not [path.name for path in store.path.iterdir() if path.name.endswith(".wal")]


def test_where_a_write_failed_its_duckdb_is_not_used_again(store: Store) -> None:
    with pytest.raises(StoreError), store._database.writing() as connection:
        connection.execute("INSERT INTO no_such_table VALUES (1)")
    assert not idle("writing")
    store.add([SECOND], origin="import")
    assert names(store) == ["first", "second"]


def setting(connection: Any, name: str) -> Any:
    return connection.execute(f"SELECT current_setting('{name}')").fetchall()[0][0]


def test_other_stores_are_read_with_it_too(store: Store, tmp_path: Path) -> None:
    other = Store.open(tmp_path / "other", create=True)
    other.add([SECOND], origin="import")
    assert names(store) == ["first"]
    first = idle()
    assert names(other) == ["second"]
    assert idle() == first


def test_a_read_inside_another_one_of_another_store_has_its_own(store: Store, tmp_path: Path) -> None:
    other = Store.open(tmp_path / "other", create=True)
    other.add([SECOND], origin="import")
    with store.reading(), other.reading():
        assert (names(store), names(other)) == (["first"], ["second"])
    assert len({*idle()}) == 2


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc to see open files in")
def test_between_reads_it_has_no_file_open(store: Store) -> None:
    assert names(store) == ["first"]
    assert idle()
    opened = [os.readlink(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{number}")]
    assert not [path for path in opened if "runs.duckdb" in path]


def test_between_reads_other_processes_write(store: Store) -> None:
    assert names(store) == ["first"]
    code = f"""
from pathlib import Path
from spanreplay.store.store import Store
from spanreplay.spans.record import SpanRecord
Store.open(Path({str(store.path)!r}), wait_s=0).add([{SECOND!r}], origin="import")
"""
    imports = "from spanreplay.spans.record import *\nfrom spanreplay.spans.record import Resource, Scope\n"
    subprocess.run([sys.executable, "-c", imports + code], check=True, timeout=60)
    assert names(store) == ["first", "second"]


def test_where_a_read_failed_its_duckdb_is_not_used_again(store: Store) -> None:
    assert names(store) == ["first"]
    before = idle()
    with pytest.raises(StoreError), store._database.reading(threads=1) as connection:
        connection.execute("SELECT * FROM no_such_table")
    assert not idle()
    assert names(store) == ["first"]
    assert len(before) == len(idle()) == 1


def test_those_that_were_used_last_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_MOST", 1)
    store.find_runs()
    before = idle()
    assert names(store) == ["first"]
    assert len(idle()) == 1
    assert idle() != before
    last = idle()
    assert names(store) == ["first"]
    assert idle() == last


def test_what_a_read_made_for_itself_the_next_one_does_not_see(store: Store) -> None:
    for _ in range(2):
        with store._database.reading(threads=1) as connection:
            connection.execute("CREATE TEMP TABLE mine AS SELECT 1 AS a")
            connection.execute("SET VARIABLE said = 1")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_none_is_taken_through_a_fork(store: Store) -> None:
    store.find_runs()
    assert idle()
    child = os.fork()
    if child == 0:
        os._exit(0 if not idle() and names(store) == ["first"] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not idle()
    assert names(store) == ["first"]
