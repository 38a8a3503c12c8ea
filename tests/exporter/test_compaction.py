"""Compaction: each record exactly once, through kills, live writers, torn tails and journals from later versions."""

import dataclasses
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any
from zlib import crc32

import duckdb
import pytest

from spanreplay.spans.record import LogRecord, SpanRecord
from spanreplay.store import compaction
from spanreplay.store.encoding import digest_of
from spanreplay.store.journal import JournalWriter
from spanreplay.store.loading import Batch
from spanreplay.store.process import ProcessInfo, current_process
from spanreplay.store.store import Store
from support.size import FULL

TRACE = "0af7651916cd43dd8448eb211c80319c"
SIZE = 20 if FULL else 1


def span(number: int = 1, **fields: Any) -> SpanRecord:
    known: dict[str, Any] = {"trace_id": TRACE, "span_id": f"{number:016x}", "name": "step", "start_ns": number}
    return SpanRecord(**(known | fields))


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store to copy, since making the tables takes longer than most tests."""
    store = Store.open(tmp_path_factory.mktemp("empty") / "store", create=True)
    store.find_runs()
    return store.path


@pytest.fixture
def store(empty: Path, tmp_path: Path) -> Store:
    shutil.copytree(empty, tmp_path / "store")
    return Store.open(tmp_path / "store")


@pytest.fixture
def writer(store: Store) -> JournalWriter:
    return JournalWriter(store.path, process=current_process())


def journals(store: Store) -> list[Path]:
    return sorted((store.path / "journal").iterdir())


def other_process(**fields: Any) -> ProcessInfo:
    known: dict[str, Any] = {"host": current_process().host, "pid": os.getpid(), "process_id": "f" * 16, "started_ns": 1}
    return ProcessInfo(**(known | fields))


def everything(store: Store) -> list[object]:
    tables = ("spans", "span_versions", "logs", "blobs", "journals", "stale")
    return [sorted(map(repr, store.query(f"SELECT * FROM {table}").rows)) for table in tables]


def line(form: dict[str, Any]) -> bytes:
    data = json.dumps(form).encode()
    return b"%08x %s\n" % (crc32(data), data)


def test_compacting_again_changes_nothing(store: Store, writer: JournalWriter) -> None:
    writer.open_span(span(1, attributes={"a": "x" * 600}))
    writer.close_span(TRACE, f"{1:016x}", end_ns=2, status=1, status_message="", attributes={"b": 1})
    writer.write_log(LogRecord(time_ns=1, trace_id=TRACE, body="hello"))
    first = store.compact()
    assert (first.journals, first.records, first.new, first.changed) == (1, 4, 2, 1)
    before = everything(store)
    second = store.compact()
    assert (second.records, second.new, second.same, second.changed) == (0, 0, 0, 0)
    assert everything(store) == before


@pytest.mark.parametrize("often", [True, False])
def test_pieces_of_a_span_are_one_row_whenever_they_arrive(store: Store, writer: JournalWriter, often: bool) -> None:
    def pause() -> None:
        if often:
            store.compact()

    writer.open_span(span(1, attributes={"a": 1, "b": 1}))
    pause()
    writer.patch_span(TRACE, f"{1:016x}", attributes={"late": True})
    pause()
    writer.close_span(TRACE, f"{1:016x}", end_ns=9, status=2, status_message="why", attributes={"b": 2})
    pause()
    writer.patch_span(TRACE, f"{1:016x}", attributes={"later": True})
    store.compact()
    expected = span(1, end_ns=9, status=2, status_message="why", attributes={"a": 1, "b": 2, "late": True, "later": True})
    assert list(store.traces([TRACE])) == [expected]
    assert list(store.query("SELECT count(*), bool_and(complete) FROM spans").rows) == [(1, True)]
    assert list(store.other_versions([TRACE])) == []


@pytest.mark.parametrize("often", [True, False])
def test_pieces_from_two_processes_are_one_row_in_any_order(store: Store, writer: JournalWriter, often: bool) -> None:
    other = JournalWriter(store.path, process=other_process())
    other.patch_span(TRACE, f"{1:016x}", attributes={"from": "other"})
    if often:
        store.compact()
        assert list(store.traces([TRACE])) == [], "an addition is no span"
    writer.open_span(span(1))
    if often:
        store.compact()
    other.close_span(TRACE, f"{1:016x}", end_ns=5, status=0, status_message="", attributes={})
    store.compact()
    assert list(store.traces([TRACE])) == [span(1, end_ns=5, attributes={"from": "other"})]
    assert list(store.other_versions([TRACE])) == []


def test_an_end_without_its_start_is_kept_as_incomplete(store: Store, writer: JournalWriter) -> None:
    writer.close_span(TRACE, f"{1:016x}", end_ns=9, status=1, status_message="", attributes={"a": 1})
    store.compact()
    (found,) = store.traces([TRACE])
    assert (found.start_ns, found.end_ns, found.attributes) == (0, 9, {"a": 1})
    assert list(store.query("SELECT complete, started FROM spans").rows) == [(False, False)]


def test_a_whole_span_of_the_same_process_completes_its_start(store: Store, writer: JournalWriter) -> None:
    writer.open_span(span(1, attributes={"at start": 1, "both": 1}))
    store.compact()
    writer.write_span(span(1, end_ns=3, name="renamed", attributes={"both": 2}), "exporter")
    store.compact()
    assert list(store.traces([TRACE])) == [span(1, end_ns=3, name="renamed", attributes={"at start": 1, "both": 2})]
    assert list(store.other_versions([TRACE])) == []


def test_a_copy_from_elsewhere_does_not_disturb_the_record(store: Store, writer: JournalWriter) -> None:
    writer.open_span(span(1, attributes={"a": 1, "b": 2}))
    store.compact()
    store.add([span(1, end_ns=3, attributes={"a": 1})], origin="receiver")
    assert [one.end_ns for one in store.traces([TRACE])] == [3]
    writer.close_span(TRACE, f"{1:016x}", end_ns=3, status=1, status_message="", attributes={})
    store.compact()
    assert list(store.traces([TRACE])) == [span(1, end_ns=3, status=1, attributes={"a": 1, "b": 2})]
    assert list(store.other_versions([TRACE])) == [span(1, end_ns=3, attributes={"a": 1})]


def test_what_could_not_be_kept_is_counted_on_the_span_and_the_process(store: Store, writer: JournalWriter) -> None:
    class Awkward:
        def __str__(self) -> str:
            raise RuntimeError

    writer.open_span(span(1, attributes={"a": Awkward(), "b": 1}))
    store.compact()
    (found,) = store.traces([TRACE])
    assert (found.attributes, found.dropped_attributes) == ({"b": 1}, 1)
    assert store.losses([writer.process.process_id, "none"]) == {writer.process.process_id: 1}


# ---- journals ----------------------------------------------------------------------------------------------------------


def test_a_journal_stays_while_its_writer_lives_and_goes_when_it_has_closed(store: Store, writer: JournalWriter) -> None:
    writer.open_span(span(1))
    assert store.compact().removed == 0
    assert len(journals(store)) == 1
    writer.close()
    assert store.compact().removed == 1
    assert journals(store) == []
    assert list(store.query("SELECT removed, closed, records FROM journals").rows) == [(True, True, 3)]
    assert list(store.traces([TRACE])) == [span(1)]


def run_writer(store: Store, code: str) -> subprocess.CompletedProcess[str]:
    start = "import os, sys\nfrom pathlib import Path\nfrom spanreplay.spans.record import SpanRecord\n"
    start += "from spanreplay.store.journal import get_writer\nwriter = get_writer(Path(sys.argv[1]))\n"
    command = [sys.executable, "-c", start + textwrap.dedent(code), str(store.path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_dead_process_leaves_an_open_span_and_no_file(store: Store) -> None:
    run_writer(store, f'writer.open_span(SpanRecord(trace_id="{TRACE}", span_id="1" * 16, start_ns=4)); os.kill(os.getpid(), 9)')
    (journal,) = journals(store)
    with journal.open("ab") as file:
        file.write(b'00000000 {"t":"close","tr')
    report = store.compact()
    assert (report.crc_errors, report.removed) == (1, 1)
    assert journals(store) == []
    (found,) = store.traces([TRACE])
    assert (found.start_ns, found.end_ns) == (4, None)


def test_a_journal_of_a_reused_pid_is_removed_and_one_of_another_host_is_not(store: Store) -> None:
    mine = current_process()
    for name, form in {
        "reused": {"host": mine.host, "pid": os.getpid(), "locks": True},
        "elsewhere": {"host": "elsewhere", "pid": 1, "locks": True},
        "running": {"host": mine.host, "pid": os.getpid()},
        "gone": {"host": mine.host, "pid": 2**22 + 1},
    }.items():
        text = line({"t": "process", "v": 1, "process": name, **form})
        (store.path / "journal" / f"{name}.journal").write_bytes(text)
    store.compact()
    assert sorted(path.stem for path in journals(store)) == ["elsewhere", "running"]


def test_two_hosts_with_the_same_pid_share_a_folder(store: Store, writer: JournalWriter) -> None:
    other = JournalWriter(store.path, process=other_process(host="elsewhere", pid=os.getpid()))
    for number, one in enumerate((writer, other)):
        one.open_span(span(number))
        one.close_span(TRACE, f"{number:016x}", end_ns=9, status=0, status_message="", attributes={})
    writer.close()
    report = store.compact()
    assert (report.new, report.removed) == (2, 1), "whether a process of another host lives is not known"
    other.open_span(span(3))
    other.close()
    assert store.compact().removed == 1
    assert journals(store) == []
    assert list(store.query("SELECT host, pid = $pid FROM processes ORDER BY host".replace("$pid", str(os.getpid()))).rows) == sorted(
        [(current_process().host, True), ("elsewhere", True)]
    )


def test_a_clock_that_steps_back_changes_nothing_of_what_is_loaded(store: Store, writer: JournalWriter) -> None:
    writer.open_span(span(1, start_ns=2_000))
    writer.close_span(TRACE, f"{1:016x}", end_ns=1_000, status=0, status_message="", attributes={})
    store.compact()
    (journal,) = journals(store)
    os.utime(journal, (1, 1))
    writer.open_span(span(2, start_ns=500))
    os.utime(journal, (2**31, 2**31))
    assert store.compact().new == 1
    assert {(one.start_ns, one.end_ns) for one in store.traces([TRACE])} == {(2_000, 1_000), (500, None)}
    assert store.compact().records == 0


def test_a_torn_tail_of_a_living_process_is_read_when_it_is_whole(store: Store, writer: JournalWriter) -> None:
    writer.open_span(span(1))
    (journal,) = journals(store)
    text = line({"t": "close", "trace": TRACE, "span": f"{1:016x}", "end": 5})
    with journal.open("ab") as file:
        file.write(text[:20])
    assert store.compact().new == 1
    with journal.open("ab") as file:
        file.write(text[20:])
    report = store.compact()
    assert (report.changed, report.crc_errors) == (1, 0)
    assert [one.end_ns for one in store.traces([TRACE])] == [5]


def test_a_damaged_line_costs_itself_only(store: Store, writer: JournalWriter) -> None:
    for number in range(3):
        writer.open_span(span(number))
    writer.close()
    (journal,) = journals(store)
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"step", b"stop")
    journal.write_bytes(b"".join(lines))
    report = store.compact()
    assert (report.new, report.crc_errors, report.removed) == (2, 1, 1)
    assert store.losses([writer.process.process_id]) == {writer.process.process_id: 1}


@pytest.mark.parametrize(
    "text",
    [
        line({"t": "process", "v": 4, "host": "h", "pid": 1, "process": "p"}) + line({"t": "open", "trace": TRACE, "span": "1" * 16}),
        line({"t": "process", "v": 1, "host": "h", "pid": 1, "process": "p"}) + line({"t": "novelty"}),
    ],
    ids=["journal version", "record type"],
)
def test_a_journal_of_a_later_version_is_left_alone(store: Store, writer: JournalWriter, text: bytes) -> None:
    later = store.path / "journal" / "later.journal"
    later.write_bytes(text)
    writer.open_span(span(1))
    report = store.compact()
    assert [name for name, _ in report.refused] == ["later.journal"]
    assert report.new == 1
    assert later.read_bytes() == text


def test_a_journal_that_no_memory_is_enough_for_keeps_no_other_from_being_loaded(
    store: Store, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    (store.path / "journal" / "large.journal").write_bytes(
        line({"t": "process", "v": 1, "host": "h", "pid": 1, "process": "p"}) + line({"t": "open", "trace": "e" * 32, "span": "1" * 16})
    )
    writer.open_span(span(1))
    load = Batch.load

    def refused(batch: Any, *arguments: Any) -> Any:
        done = load(batch, *arguments)
        if any(trace == "e" * 32 for trace, _ in batch._spans):
            raise duckdb.OutOfMemoryException("could not allocate")
        return done

    monkeypatch.setattr(Batch, "load", refused)
    report = store.compact()
    assert [name for name, _ in report.refused] == ["large.journal"]
    assert [found.trace_id for found in store.traces([TRACE, "e" * 32])] == [TRACE]
    monkeypatch.undo()
    assert store.compact().new == 1


def test_what_is_no_file_keeps_no_journal_from_being_loaded(store: Store, writer: JournalWriter) -> None:
    folder = store.path / "journal"
    (folder / "a.journal").symlink_to(folder / "removed meanwhile")
    (folder / "b.journal").mkdir()
    os.mkfifo(folder / "c.journal")
    writer.open_span(span(1))
    assert store.compact().new == 1


def test_a_journal_of_the_first_version_is_loaded(store: Store) -> None:
    text, piece = json.dumps(["a" * 2000]), '"' + "a" * 2000 + '"'
    records: list[dict[str, Any]] = [
        {"t": "process", "v": 1, "host": "h", "pid": 1, "process": "p"},
        {"t": "blob", "d": digest_of(piece.encode()), "text": piece},
        {"t": "pieces", "d": digest_of(text.encode()), "n": len(text), "parts": ["[", digest_of(piece.encode()), "]"]},
        {"t": "blob", "d": digest_of(b"b" * 2000), "text": "b" * 2000},
        {"t": "open", "trace": TRACE, "span": "1" * 16, "name": "n", "start": 1, "attrs": {"a": {"$blob": digest_of(text.encode())}}},
        {"t": "close", "trace": TRACE, "span": "1" * 16, "end": 2, "attrs": {"b": {"$blob": digest_of(b"b" * 2000)}}},
    ]
    (store.path / "journal" / "first.journal").write_bytes(b"".join(line(record) for record in records))
    assert store.compact().rejected == 0
    (loaded,) = store.traces([TRACE])
    assert loaded.attributes == {"a": text, "b": "b" * 2000}


@pytest.mark.parametrize("size", [700, 5000])
def test_content_that_is_not_what_its_digest_says_costs_itself_only(store: Store, writer: JournalWriter, size: int) -> None:
    writer.write_span(span(1, end_ns=9, attributes={"a": "x" * size, "b": 1}), "recorder")
    writer.write_span(span(2, end_ns=9, attributes={"a": "y" * size}), "recorder")
    writer.close()
    (path,) = (store.path / "journal").iterdir()
    lines = path.read_bytes().split(b"\n")
    (at,) = [number for number, line in enumerate(lines) if b"x" * size in line]
    data = lines[at][9:].replace(b"x" * 20, b"z" * 20)
    lines[at] = b"%08x %s" % (crc32(data), data)
    path.write_bytes(b"\n".join(lines))
    report = store.compact()
    assert (report.new, report.crc_errors, report.removed) == (2, 1, 1)
    assert [(dict(one.attributes), one.dropped_attributes) for one in store.traces([TRACE])] == [({"b": 1}, 1), ({"a": "y" * size}, 0)]


def test_texts_that_come_whole_are_kept_in_pieces(store: Store, writer: JournalWriter) -> None:
    said = "ü" * 1100
    texts = [json.dumps([{"content": said}], ensure_ascii=False), json.dumps({"input": [said]}, ensure_ascii=False)]
    writer.write_span(span(1, attributes={"a": texts[0], "b": texts[1]}), "recorder")
    store.compact()
    (kept,) = store.query("SELECT count(*), sum(bytes) FROM blobs WHERE text IS NOT NULL AND media = 'text/plain'").rows
    assert kept == (1, 2202)
    assert [one.attributes for one in store.traces([TRACE])] == [{"a": texts[0], "b": texts[1]}]


def test_odd_records_are_rejected_and_the_rest_is_loaded(store: Store) -> None:
    good: dict[str, Any] = {"t": "open", "trace": TRACE, "span": "1" * 16, "name": "n", "start": 1}
    odd: list[dict[str, Any]] = [
        {"t": "open", "trace": 3, "span": "2" * 16},
        {**good, "span": "3" * 16, "start": "soon"},
        {**good, "span": "4" * 16, "attrs": []},
        {**good, "span": "5" * 16, "events": [1]},
        {**good, "span": "6" * 16, "dropped": 4},
        {"t": "blob", "d": "sha256:x"},
        {"t": "blob", "d": "sha256:x", "data": "%"},
        {"t": "log", "time": "now"},
        {"t": "log", "time": 1, "dropped": "x", "lost": 1},
    ]
    replaced = {**good, "span": "7" * 16, "name": "a\ud800"}
    first = line({"t": "process", "v": 1, "host": "h", "pid": 1, "process": "p"})
    (store.path / "journal" / "odd.journal").write_bytes(first + b"".join(line(form) for form in [*odd, good, replaced]))
    report = store.compact()
    assert (report.rejected, report.new) == (len(odd), 2)
    assert [one.name for one in store.traces([TRACE])] == ["n", "a?"]


def test_batches_are_cut_and_lose_nothing(store: Store, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "JOURNAL_RECORDS", 5)
    for number in range(23):
        writer.open_span(span(number, attributes={"a": f"{number}" * 600}))
        writer.close_span(TRACE, f"{number:016x}", end_ns=number, status=1, status_message="", attributes={})
    report = store.compact()
    assert report.records == 69
    assert [one.end_ns for one in store.traces([TRACE])] == list(range(23))


def test_a_failure_in_the_middle_leaves_rows_and_offset_as_they_were(
    store: Store, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.open_span(span(1))
    store.compact()
    before = everything(store)
    writer.open_span(span(2))

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compaction, "_save", fail)
    with pytest.raises(KeyboardInterrupt):
        store.compact()
    monkeypatch.undo()
    assert everything(store) == before
    assert store.compact().new == 1
    assert len(list(store.traces([TRACE]))) == 2


# ---- kill -9 -----------------------------------------------------------------------------------------------------------

WRITER = """
    number = 0
    said = []
    def tell(what):
        os.write(1, b"%s%510d\\n" % (what, number))  # a full pipe holds the writer back
    while True:
        number += 1
        said.append({"role": "user", "content": "%d " % number * 100})
        body = json.dumps({"messages": said[-40:]})
        one = SpanRecord(trace_id="%032x" % os.getpid(), span_id="%016x" % number, start_ns=number, attributes={"body": body})
        writer.open_span(one)
        if number % 5 == 0:
            writer.sync()
            tell(b"i")
        writer.close_span(one.trace_id, one.span_id, end_ns=number + 1, status=1, status_message="", attributes={"n": number})
        tell(b"e")
"""


def start_writer(store: Store) -> subprocess.Popen[bytes]:
    start = "import json, os, sys\nfrom pathlib import Path\nfrom spanreplay.spans.record import SpanRecord\n"
    start += "from spanreplay.store.journal import get_writer\nwriter = get_writer(Path(sys.argv[1]))\n"
    return subprocess.Popen([sys.executable, "-c", start + textwrap.dedent(WRITER), str(store.path)], stdout=subprocess.PIPE)


class Told:
    """What a writer has said that it has done: intents synced, spans ended."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.last = {b"i": 0, b"e": 0}

    def take(self, lines: list[bytes]) -> None:
        for line_ in lines:
            if len(line_.rstrip(b"\n")) == 511:
                self.last[line_[:1]] = int(line_[1:])

    def read(self, lines: int) -> None:
        assert self.process.stdout is not None
        self.take([self.process.stdout.readline() for _ in range(lines)])

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.take(self.process.communicate()[0].splitlines())


def body_of(number: int) -> str:
    return json.dumps({"messages": [{"role": "user", "content": f"{n} " * 100} for n in range(max(1, number - 39), number + 1)]})


@pytest.mark.parametrize("seed", range(125 if FULL else 1))
def test_writers_that_are_killed_lose_nothing_that_they_have_ended_or_begun_to_act(store: Store, seed: int) -> None:
    randomness = random.Random(seed)
    writers = [Told(start_writer(store)) for _ in range(4)]
    for told in writers:
        told.read(randomness.randrange(1, 150 if FULL else 60))
    for told in randomness.sample(writers, 4):
        told.kill()
        if randomness.random() < 0.5:
            store.compact()  # while the others write
    store.compact()
    before = everything(store)
    assert store.compact().records == 0
    assert everything(store) == before
    assert journals(store) == []
    for told in writers:
        found = list(store.traces([f"{told.process.pid:032x}"]))
        ended = [one for one in found if one.end_ns is not None]
        assert len(ended) >= told.last[b"e"]
        assert len(found) >= max(told.last.values()) > 0, "what acts is there before it acts"
        assert [one.start_ns for one in found] == list(range(1, len(found) + 1)), "each once, none missing"
        assert all(one.attributes == {"body": body_of(one.start_ns), "n": one.start_ns} for one in ended)
        assert all(one.attributes == {"body": body_of(one.start_ns)} for one in found if one.end_ns is None)
    assert list(store.other_versions([f"{told.process.pid:032x}" for told in writers])) == []


COMPACTOR = """
    import sys
    from pathlib import Path
    from spanreplay.store import compaction
    from spanreplay.store.store import Store
    compaction.JOURNAL_RECORDS = 50
    print("go", flush=True)
    Store.open(Path(sys.argv[1])).compact()
"""


@pytest.mark.parametrize("seed", range(2 * SIZE - 1))
def test_a_killed_compactor_loads_nothing_twice(store: Store, writer: JournalWriter, seed: int) -> None:
    for number in range(1, 601):
        writer.open_span(span(number, attributes={"a": f"{number}" * 200}))
        writer.close_span(TRACE, f"{number:016x}", end_ns=number, status=1, status_message="", attributes={})
    randomness = random.Random(seed)
    for _ in range(2):
        command = [sys.executable, "-c", textwrap.dedent(COMPACTOR), str(store.path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        try:
            process.wait(randomness.uniform(0.05, 0.6))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
    store.compact()
    rows = list(store.query("SELECT count(*), count(DISTINCT span_id), count(end_ns) FROM spans").rows)
    assert rows == [(600, 600, 600)]
    assert len(list(store.traces([TRACE]))) == 600


def test_two_compactors_at_once_load_each_record_once(store: Store, writer: JournalWriter) -> None:
    for number in range(300):
        writer.open_span(span(number))
    command = [sys.executable, "-c", textwrap.dedent(COMPACTOR), str(store.path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    store.compact()
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert list(store.query("SELECT count(*), count(DISTINCT span_id) FROM spans").rows) == [(300, 300)]


def test_a_process_that_died_is_told_from_one_that_ended(store: Store) -> None:
    ended, died, alive = (JournalWriter(store.path, process=dataclasses.replace(current_process(), process_id=f"p{n}")) for n in range(3))
    for number, writer in enumerate((ended, died, alive)):
        writer.write_log(LogRecord(time_ns=number, body="x"))
    ended.close()
    died._file.close()  # what is left of a killed process: nobody holds the file
    store.compact()
    told = [(process[-2:], *rest) for process, *rest in store.query("SELECT process, ended, died FROM processes ORDER BY process").rows]
    assert told == [("p0", True, False), ("p1", False, True), ("p2", False, False)]
    alive.close()
