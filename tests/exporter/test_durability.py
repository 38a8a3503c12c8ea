"""When a record is safe, what a long life or a sudden end does to a journal, and what a process does at its end."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spanreplay.spans.record import SpanRecord
from spanreplay.store import compaction, ending, flushing, journal_file, steps
from spanreplay.store.ending import compact_at_end
from spanreplay.store.journal import JournalWriter
from spanreplay.store.journal_reader import read_journal
from spanreplay.store.process import current_process
from spanreplay.store.store import Store

TRACE = "0af7651916cd43dd8448eb211c80319c"


def span(number: int, **fields: Any) -> SpanRecord:
    return SpanRecord(**{"trace_id": TRACE, "span_id": f"{number:016x}", "name": "step", "start_ns": number, **fields})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store", create=True)


@pytest.fixture
def writer(store: Store, monkeypatch: pytest.MonkeyPatch) -> JournalWriter:
    monkeypatch.setattr(flushing, "SECONDS", 3600)
    return JournalWriter(store.path, durability="batch", process=current_process())


def records(store: Store) -> list[str]:
    return [record["t"] for path in sorted((store.path / "journal").iterdir()) for _, record in read_journal(path)]


def test_a_batch_is_written_when_it_is_asked_for(store: Store, writer: JournalWriter) -> None:
    writer.open_span(span(1))
    assert records(store) == []
    writer.sync()
    assert records(store) == ["process", "open"]
    writer.close_span(TRACE, f"{1:016x}", end_ns=2, status=0, status_message="", attributes={})
    writer.close()
    assert records(store) == ["process", "open", "close", "end"]
    store.compact()
    assert [one.end_ns for one in store.traces([TRACE])] == [2]


def test_a_batch_is_written_when_it_is_large(store: Store, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[int] = []
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        writes.append(len(data))
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    for number in range(1000):
        writer.open_span(span(number, attributes={"a": f"{number}" * 100}))
    writer.close()
    assert len([size for size in writes if size > 1000]) < 10
    assert max(writes) < 2 * journal_file.GATHERED_BYTES
    assert store.compact().new == 1000


def test_a_batch_is_written_after_a_second(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flushing, "SECONDS", 0.01)
    writer = JournalWriter(store.path, durability="batch", process=current_process())
    written = threading.Event()
    flush = writer._file.flush

    def flushed() -> None:
        flush()
        written.set()

    monkeypatch.setattr(writer._file, "flush", flushed)
    writer.open_span(span(1))
    assert written.wait(30)
    assert records(store) == ["process", "open"]


def test_a_batch_that_does_not_fit_is_counted_and_its_content_written_again(
    store: Store, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = "x" * 2000
    writer.open_span(span(1))
    writer.sync()
    writer.open_span(span(2, attributes={"a": content}))
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda descriptor, data: 10)
        writer.flush()
    assert writer.dropped == 2
    writer.open_span(span(3, attributes={"a": content}))
    writer.close()
    report = store.compact()
    assert (report.dropped, report.crc_errors) == (2, 0)
    assert [(one.span_id[-1], dict(one.attributes)) for one in store.traces([TRACE])] == [("1", {}), ("3", {"a": content})]
    assert store.losses([writer.process.process_id]) == {writer.process.process_id: 2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_writes_nothing_that_its_parent_has_gathered(store: Store, writer: JournalWriter) -> None:
    writer.open_span(span(1))
    child = os.fork()
    if child == 0:
        try:
            writer.open_span(span(2))
            writer.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    writer.close()
    assert sorted(records(store)) == ["end", "end", "open", "open", "process", "process"]
    assert store.compact().new == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("end", ["os._exit(0)", "os.execvp('true', ['true'])", "multiprocessing"])
def test_a_process_that_leaves_past_its_end_writes_what_it_gathered(store: Store, end: str) -> None:
    code = (
        "import multiprocessing, os, sys\nfrom pathlib import Path\nfrom spanreplay.spans.record import SpanRecord\n"
        "from spanreplay.store import flushing\nfrom spanreplay.store.journal import get_writer\nflushing.SECONDS = 3600\n"
        "writer = get_writer(Path(sys.argv[1]), durability='batch')\n"
        f"def write(number):\n    writer.open_span(SpanRecord(trace_id='{TRACE}', span_id='%016x' % number, start_ns=number))\n"
        "write(1)\n"
    )
    if end == "multiprocessing":
        code += "child = multiprocessing.get_context('fork').Process(target=write, args=(2,))\n"
        code += "child.start()\nchild.join()\nwriter.close()\n"
    else:
        code += f"if os.fork() == 0:\n    write(2)\n    {end}\nos.wait()\n{end}\n"
    subprocess.run([sys.executable, "-c", code, str(store.path)], check=True, timeout=60)
    assert store.compact().new == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_batch_of_a_forked_child_is_written_after_a_second(store: Store, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.open_span(span(1))
    child = os.fork()
    if child == 0:
        flushing.SECONDS = 0.01  # type: ignore[misc]
        written = threading.Event()
        flush = writer._file.flush

        def flushed() -> None:
            flush()
            written.set()

        writer._file.flush = flushed  # type: ignore[method-assign]
        writer.open_span(span(2))
        written.wait(30)
        os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    assert records(store) == ["process", "open"]


def test_a_batch_that_no_thread_can_write_later_is_written_at_once(
    store: Store, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_threads(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", no_threads)
    writer.open_span(span(1))
    assert records(store) == ["process", "open"]


def test_a_killed_process_loses_only_what_it_gathered(store: Store) -> None:
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom spanreplay.spans.record import SpanRecord\n"
        "from spanreplay.store.journal import get_writer\nwriter = get_writer(Path(sys.argv[1]), durability='batch')\n"
        "for number in range(10):\n"
        f"    writer.open_span(SpanRecord(trace_id='{TRACE}', span_id='%016x' % number, start_ns=number))\n"
        "    if number == 6:\n        writer.sync()\n"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(store.path)], check=False, timeout=60)
    report = store.compact()
    assert (report.new, report.crc_errors, report.removed) == (7, 0, 1)


def test_a_full_journal_is_followed_by_another_which_stands_for_itself(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_file, "FULL_BYTES", 20_000)
    writer = JournalWriter(store.path, process=current_process())
    content = "y" * 600
    for number in range(200):
        writer.open_span(span(number, attributes={"a": content, "n": number}))
        writer.close_span(TRACE, f"{number:016x}", end_ns=number + 1, status=0, status_message="", attributes={})
    journals = list((store.path / "journal").iterdir())
    assert len(journals) > 2
    assert max(path.stat().st_size for path in journals) < 22_000
    assert store.compact().removed == len(journals) - 1
    spans = list(store.traces([TRACE]))
    assert [(one.end_ns, one.attributes["a"], one.attributes["n"]) for one in spans] == [(n + 1, content, n) for n in range(200)]
    assert list(store.query("SELECT count(*), count(DISTINCT process), sum(dropped) FROM journals").rows) == [(len(journals), 1, 0)]


def test_a_span_that_is_open_when_the_journal_is_full_is_one_span(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_file, "FULL_BYTES", 1)
    writer = JournalWriter(store.path, process=current_process())
    writer.open_span(span(1, attributes={"a": 1}))
    writer.close_span(TRACE, f"{1:016x}", end_ns=5, status=1, status_message="", attributes={"b": 2})
    writer.close()
    store.compact()
    assert list(store.traces([TRACE])) == [span(1, end_ns=5, status=1, attributes={"a": 1, "b": 2})]
    assert list(store.other_versions([TRACE])) == []


# ---- at the end ------------------------------------------------------------------------------------------------------


def filled(store: Store, spans: int) -> None:
    writer = JournalWriter(store.path, process=current_process())
    for number in range(spans):
        writer.write_span(span(number, end_ns=number + 1), "recorder")
    writer.close()


def test_a_small_journal_is_left_to_the_next_command(store: Store) -> None:
    filled(store, 10)
    compact_at_end(store.path, 5)
    assert len(list((store.path / "journal").iterdir())) == 1
    assert not (store.path / "runs.duckdb").exists()


def test_a_large_journal_is_loaded_within_the_limit_and_the_rest_later(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "LARGE_BYTES", 1)
    monkeypatch.setattr(compaction, "JOURNAL_RECORDS", 10)
    filled(store, 100)
    clock = iter(range(10**6))
    for module in (compaction, steps):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(clock), time=time.time))
    monkeypatch.setattr(ending, "time", SimpleNamespace(monotonic=lambda: 0))
    compact_at_end(store.path, 3)
    monkeypatch.undo()
    ((loaded,),) = store.query("SELECT count(*) FROM spans").rows
    assert 10 <= int(str(loaded)) < 100
    store.compact()
    assert [one.end_ns for one in store.traces([TRACE])] == [number + 1 for number in range(100)]


def test_a_store_that_somebody_holds_is_waited_for_no_longer_than_the_limit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "LARGE_BYTES", 1)
    filled(store, 1)
    with store._database._locked():
        start = time.monotonic()
        compact_at_end(store.path, 0.2)
        compact_at_end(store.path, 0)
        assert time.monotonic() - start < 20
    assert len(list((store.path / "journal").iterdir())) == 1


@pytest.mark.parametrize("seconds", [0, 5])
def test_whatever_is_wrong_with_the_store_the_process_ends(tmp_path: Path, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "LARGE_BYTES", 0)
    (tmp_path / "runs.duckdb").write_bytes(b"no database" * 1000)
    compact_at_end(tmp_path, seconds)
    compact_at_end(tmp_path / "nowhere" / "at all", seconds)


@pytest.mark.usefixtures("stores_made")
def test_what_is_committed_to_the_database_is_on_the_disk(store: Store) -> None:
    """The tests' own stores are not synced."""
    with store._database.writing() as connection:
        assert connection.execute("SELECT current_setting('fsync_mode')").fetchone() == ("STANDARD",)
