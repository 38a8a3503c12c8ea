"""The journal: lines whole or counted, content once, private, fork-safe, and never an exception."""

import dataclasses
import errno
import json
import logging
import os
import resource
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from spanreplay.boundary.call import StepStarted
from spanreplay.spans.record import EventRecord, LinkRecord, LogRecord, Resource, Scope, SpanRecord
from spanreplay.store.encoding import digest_of
from spanreplay.store.journal import JournalWriter, get_writer
from spanreplay.store.journal_file import JournalFile
from spanreplay.store.journal_reader import parse_line, read_journal
from spanreplay.store.process import ProcessInfo, current_process
from spanreplay.store.record_text import plain_end, plain_place, step_record

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


def span(number: int = 1, **fields: Any) -> SpanRecord:
    known: dict[str, Any] = {"trace_id": TRACE, "span_id": f"{number:016x}", "name": "step", "start_ns": number}
    return SpanRecord(**(known | fields))


def journals(store: Path) -> list[Path]:
    return sorted((store / "journal").glob("*.journal"))


def records(store: Path) -> list[dict[str, Any]]:
    found = []
    for path in journals(store):
        reader = read_journal(path)
        found += [record for _, record in reader]
        assert reader.bad_lines == 0
    return found


def of_type(store: Path, kind: str) -> list[dict[str, Any]]:
    return [record for record in records(store) if record["t"] == kind]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def writer(store: Path) -> JournalWriter:
    return JournalWriter(store, process=current_process())


def test_nothing_is_made_before_the_first_record(store: Path, writer: JournalWriter) -> None:
    writer.sync()
    writer.close()
    assert not store.exists()


def test_the_store_is_private_and_invisible_to_git(store: Path, writer: JournalWriter) -> None:
    writer.open_span(span())
    (journal,) = journals(store)
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600
    assert (store / ".gitignore").read_text() == "*\n"


def test_the_first_line_says_who_writes(store: Path, writer: JournalWriter) -> None:
    writer.open_span(span())
    first = records(store)[0]
    process = current_process()
    assert (first["t"], first["v"]) == ("process", 3)
    assert (first["host"], first["pid"], first["process"]) == (process.host, os.getpid(), process.process_id)
    assert len(process.process_id) == 16
    assert first["started"] == process.started_ns


def test_a_line_is_checksum_and_json_in_one_write(store: Path, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.open_span(span())
    written: list[bytes] = []
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        written.append(data)
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    writer.close_span(TRACE, f"{1:016x}", end_ns=2, status=1, status_message="", attributes={"a": 1})
    (line,) = written
    assert line.endswith(b"\n")
    assert line[8:9] == b" "
    assert parse_line(line) == {"t": "close", "trace": TRACE, "span": f"{1:016x}", "end": 2, "status": 1, "attrs": {"a": 1}}


@pytest.mark.parametrize("line", [b"\n", b"abc\n", b"zzzzzzzz {}\n", b"00000000 {}\n", b"a3830348  {}\n", b"\xff\xfe\n", b"0x000000 {}\n"])
def test_a_line_that_was_not_written_so_is_refused(line: bytes) -> None:
    assert parse_line(line) is None


def test_long_content_is_written_once_and_referred_to(store: Path, writer: JournalWriter) -> None:
    text = "ü" * 256  # 512 bytes
    short = "u" * 511
    writer.open_span(span(1, attributes={"a": text, "b": short, "c": b"\xff" * 600}))
    writer.open_span(span(2, attributes={"a": "".join(list(text)), "c": b"\xff" * 600}))
    blobs = of_type(store, "blob")
    assert [blob["d"] for blob in blobs] == [digest_of(text.encode()), digest_of(b"\xff" * 600)]
    assert blobs[0]["text"] == text
    first, second = of_type(store, "open")
    assert first["attrs"] == {"a": {"$blob": blobs[0]["d"]}, "b": short, "c": {"$bytes": {"$blob": blobs[1]["d"]}}}
    assert second["attrs"]["a"] == {"$blob": blobs[0]["d"]}


@pytest.mark.parametrize("text", ['"\\\x00\r\x85ü😀' * 500, '{"a":[]}' * 200, "a\nb" * 500], ids=["odd characters", "JSON", "line feeds"])
def test_a_long_text_stands_in_the_file_as_it_is_if_a_line_can_hold_it(store: Path, writer: JournalWriter, text: str) -> None:
    writer.open_span(span(1, attributes={"a": text}))
    (blob,) = of_type(store, "blob")
    assert (blob["d"], blob["text"]) == (digest_of(text.encode()), text)
    (journal,) = journals(store)
    assert (text.encode() in journal.read_bytes()) == ("\n" not in text)


@pytest.mark.parametrize("text", ['{"t":"text","d":"sha256:0" }x', '{"t":"text","d":"sha256:0', '{"t":"text","d":"ü"}x'])
def test_a_text_after_anything_but_its_digest_is_refused(text: str) -> None:
    assert parse_line(b"%08x %s\n" % (crc32(text.encode()), text.encode())) is None


@pytest.mark.parametrize("text", ["x" * 5000, "\u00e9\n" * 5000])
def test_content_that_comes_again_is_not_hashed_each_time(
    store: Path, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    for number in (1, 2):
        writer.open_span(span(number, attributes={"a": "".join(list(text))}))
    for module in ("content.digests", "store.journal_content"):
        monkeypatch.setattr(f"spanreplay.{module}.sha256", lambda data: pytest.fail("hashed again"))
    writer.open_span(span(3, attributes={"a": "".join(list(text))}))
    assert writer.dropped == 0
    monkeypatch.undo()
    assert [record["text"] for record in of_type(store, "blob")] == [text]


def test_memory_for_content_seen_is_bounded(monkeypatch: pytest.MonkeyPatch, store: Path) -> None:
    monkeypatch.setattr("spanreplay.store.journal_content._SEEN_DIGESTS", 8)
    monkeypatch.setattr("spanreplay.store.journal._SEEN_SPANS", 8)
    writer = JournalWriter(store, process=current_process())
    for number in range(40):
        writer.open_span(span(number, attributes={"a": f"{number}" * 1000}))
    assert len(writer._lines.content) <= 16
    assert len(writer._spans) <= 16
    assert writer.seen(TRACE, f"{32:016x}")
    assert not writer.seen(TRACE, f"{1:016x}")
    assert len(of_type(store, "open")) == 40


def test_a_resource_is_written_once_whatever_its_order(store: Path, writer: JournalWriter) -> None:
    writer.open_span(span(1, resource=Resource(attributes={"service.name": "a", "k": 1})))
    writer.open_span(span(2, resource=Resource(attributes={"k": 1, "service.name": "a"})))
    (found,) = of_type(store, "resource")
    assert {record["resource"] for record in of_type(store, "open")} == {found["d"]} == {digest_of(found["json"].encode())}


def test_every_kind_of_record(store: Path, writer: JournalWriter) -> None:
    event = EventRecord(name="e", time_ns=5, attributes={"x": 1})
    link = LinkRecord(trace_id=TRACE, span_id=SPAN)
    writer.open_span(span(1, scope=Scope(name="spanreplay", version="1")))
    writer.close_span(
        TRACE,
        f"{1:016x}",
        end_ns=9,
        status=2,
        status_message="no",
        attributes={},
        events=(event,),
        links=(link,),
        name="n",
        dropped=(1, 0, 0),
    )
    writer.write_span(span(2, end_ns=3), "exporter")
    writer.patch_span(TRACE, f"{2:016x}", attributes={"p": 1.0}, events=(event,), links=(link,))
    writer.write_log(LogRecord(time_ns=1, trace_id=TRACE, body={"k": [1]}))
    writer.close()
    found = records(store)
    assert [record["t"] for record in found] == ["process", "open", "close", "span", "patch", "log", "end"]
    assert found[1]["scope"] == {"name": "spanreplay", "version": "1"}
    assert found[2]["message"] == "no"
    assert found[2]["dropped"] == [1, 0, 0]
    assert found[3]["origin"] == "exporter"
    assert found[4]["attrs"] == {"p": 1.0}
    assert found[5]["body"] == {"k": [1]}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"parent_span_id": None},
        {"name": "zürich 漢字", "client": True},
        {"trace_flags": 1, "trace_state": "a=1"},
        {"attributes": {"x": "long " * 200, "n": 1, "f": 1.0, "odd": object()}},
        {"attributes": {}},
    ],
)
def test_a_step_is_written_as_its_span_would_be(store: Path, writer: JournalWriter, fields: dict[str, Any]) -> None:
    told: dict[str, Any] = {
        "trace_id": "1" * 32,
        "span_id": "2" * 16,
        "parent_span_id": "3" * 16,
        "trace_flags": 0,
        "trace_state": "",
        "name": "chat m",
        "client": False,
        "start_ns": 5,
        "attributes": {"a": "b"},
        "intent": False,
        **fields,
    }
    step, scope, made = StepStarted(**told), Scope(name="spanreplay"), Resource(attributes={"service.name": "s"})
    writer.open_step(step, kind=3, resource=made, scope=scope)
    writer.open_span(step_record(step, kind=3, resource=made, scope=scope))
    writer.close()
    first, second = of_type(store, "open")
    assert {"attrs": {}, **first} == {"attrs": {}, **second}


def test_seen_knows_what_this_process_wrote(writer: JournalWriter) -> None:
    writer.open_span(span(1))
    writer.write_span(span(2), "exporter")
    assert writer.seen(TRACE, f"{1:016x}")
    assert writer.seen(TRACE, f"{2:016x}")
    assert not writer.seen(TRACE, f"{3:016x}")


def test_a_record_after_close_goes_to_a_new_file(store: Path, writer: JournalWriter) -> None:
    text = "t" * 600
    writer.open_span(span(1, attributes={"a": text}))
    writer.close()
    writer.open_span(span(2, attributes={"a": text}))
    assert len(journals(store)) == 2
    assert len(of_type(store, "blob")) == 2, "each file holds all that it refers to"


def test_one_writer_for_one_store(store: Path, tmp_path: Path) -> None:
    assert get_writer(store) is get_writer(Path(str(store)))
    assert get_writer(store) is not get_writer(tmp_path / "other")


class Awkward:
    def __str__(self) -> str:
        raise RuntimeError("no")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize("value", [Awkward(), nested(5000), circular()], ids=["str fails", "deep", "circular"])
def test_a_value_that_cannot_be_kept_costs_itself_only(store: Path, writer: JournalWriter, value: object) -> None:
    writer.open_span(span(1, attributes={"good": 1, "bad": value}))
    (opened,) = of_type(store, "open")
    assert opened["attrs"] == {"good": 1}
    assert opened["lost"] == 1
    assert writer.dropped == 1
    (drop,) = of_type(store, "drop")
    assert drop["n"] == 1


def test_wrong_arguments_raise_nothing(writer: JournalWriter, store: Path) -> None:
    writer.open_span(None)  # type: ignore[arg-type]
    writer.close_span(TRACE, SPAN, end_ns=object(), status=0, status_message=None, attributes=None)  # type: ignore[arg-type]
    writer.patch_span(TRACE, SPAN, attributes=3)  # type: ignore[arg-type]
    writer.write_log("log")  # type: ignore[arg-type]
    assert writer.dropped == 4
    writer.open_span(span(1))
    assert of_type(store, "drop")[0]["n"] == 4


def test_values_of_other_kinds_become_text_or_their_base_kind(store: Path, writer: JournalWriter) -> None:
    class Text(str):
        __slots__ = ()

    class Number(int):
        pass

    value = {"path": Path("/x"), "text": Text("t"), "number": Number(3), "tuple": (1, True), "view": memoryview(b"ab"), "set": {1}}
    writer.open_span(span(1, attributes=value))
    (opened,) = of_type(store, "open")
    assert opened["attrs"] == {"path": "/x", "text": "t", "number": 3, "tuple": [1, True], "view": {"$bytes": "YWI="}, "set": "{1}"}


def test_threads_write_whole_lines(store: Path, writer: JournalWriter) -> None:
    def work(thread: int) -> None:
        for number in range(100):
            one = span(thread * 1000 + number, attributes={"a": "x" * 700, "n": number})
            writer.open_span(one)
            writer.close_span(TRACE, one.span_id, end_ns=5, status=1, status_message="", attributes={"thread": thread})

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(of_type(store, "open")) == len(of_type(store, "close")) == 800
    assert len(of_type(store, "blob")) == 1
    assert writer.dropped == 0


FORK = """
    import os, sys
    from pathlib import Path
    from spanreplay.spans.record import SpanRecord
    from spanreplay.store.journal import get_writer

    writer = get_writer(Path(sys.argv[1]))
    text = "t" * 600
    writer.open_span(SpanRecord(trace_id="{trace}", span_id="1" * 16, attributes={{"a": text}}))
    parent = writer.process.process_id
    with writer._lock:  # as if another thread were writing at the moment of the fork
        child = os.fork()
        if child == 0:
            writer.open_span(SpanRecord(trace_id="{trace}", span_id="2" * 16, attributes={{"a": text}}))
            os._exit(0 if writer.process.forked_from == parent and writer.process.process_id != parent else 1)
    assert os.waitpid(child, 0)[1] == 0
    writer.open_span(SpanRecord(trace_id="{trace}", span_id="3" * 16))
    assert writer.process.process_id == parent
"""


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_forked_child_opens_its_own_file(store: Path) -> None:
    done = run_python(FORK.format(trace=TRACE), str(store))
    assert done.returncode == 0, done.stderr
    by_file = [[record for _, record in read_journal(path)] for path in journals(store)]
    spans = sorted([record["span"][0] for record in file if record["t"] == "open"] for file in by_file)
    assert spans == [["1", "3"], ["2"]]
    assert all(any(record["t"] == "blob" for record in file) for file in by_file)
    first = {file[0]["process"]: file[0] for file in by_file}
    (child,) = [line for line in first.values() if "forked_from" in line]
    assert child["forked_from"] in first


def test_disk_durability_syncs_each_record(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr("spanreplay.store.journal_file._sync_file", synced.append)
    writer = JournalWriter(store, durability="disk", process=current_process())
    writer.open_span(span(1))
    assert len(synced) == 2, "the process line and the span"
    lax = JournalWriter(store, process=current_process())
    lax.open_span(span(1))
    assert len(synced) == 2
    lax.sync()
    assert len(synced) == 3
    lax.sync()
    assert len(synced) == 3, "nothing was written since"


def test_a_sync_that_fails_is_a_drop(store: Path, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "broken")

    writer.open_span(span(1))
    monkeypatch.setattr("spanreplay.store.journal_file._sync_file", fail)
    writer.sync()
    assert writer.dropped == 1


# ---- bad weather -------------------------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_made_drops_and_says_so_twice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    writer = JournalWriter(tmp_path / "file" / "store", process=current_process())
    with caplog.at_level(logging.WARNING, "spanreplay.journal"):
        for number in range(50):
            writer.open_span(span(number))
        writer.sync()
        writer.close()
    assert writer.dropped == 50
    assert [record.getMessage().split()[0] for record in caplog.records] == ["1", "50"]  # at once, and at the end
    assert str(tmp_path / "file" / "store") in caplog.text
    assert not writer.seen(TRACE, f"{1:016x}")


def test_a_handler_that_writes_back_does_not_loop(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    writer = JournalWriter(tmp_path / "file" / "store", process=current_process())

    class Back(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            writer.write_log(LogRecord(time_ns=1, body=record.getMessage()))
            raise RuntimeError("a broken handler")

    logger = logging.getLogger("spanreplay.journal")
    handler = Back()
    logger.addHandler(handler)
    try:
        writer.open_span(span(1))
    finally:
        logger.removeHandler(handler)
    assert writer.dropped == 2


def test_a_full_disk_costs_only_what_did_not_fit(store: Path, writer: JournalWriter) -> None:
    writer.open_span(span(0))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, hard))
    try:
        for number in range(1, 40):
            writer.open_span(span(number, attributes={"a": "x" * 300}))
        full = writer.dropped
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    writer.open_span(span(100))
    writer.open_span(span(101))

    (journal,) = journals(store)
    reader = read_journal(journal)
    found = [record for _, record in reader]
    kept = [int(record["span"], 16) for record in found if record["t"] == "open"]
    assert full > 0
    assert len(kept) + full == 42
    assert kept[-2:] == [100, 101]
    assert reader.bad_lines == 1, "the stump of the record that fitted only in part"
    (drop,) = [record for record in found if record["t"] == "drop"]
    assert drop["n"] == full == writer.dropped
    assert sum(drop["why"].values()) == full


def test_content_that_did_not_fit_is_left_out_and_tried_again(store: Path, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    real = JournalFile.write

    def write(self: JournalFile, line: bytes) -> None:
        if json.loads(line)["t"] == "blob":
            raise OSError(errno.ENOSPC, "full")
        real(self, line)

    monkeypatch.setattr(JournalFile, "write", write)
    text = "x" * 600
    writer.open_span(span(1, attributes={"a": text, "b": 1}))
    monkeypatch.setattr(JournalFile, "write", real)
    writer.open_span(span(2, attributes={"a": text}))
    first, second = of_type(store, "open")
    assert first["attrs"] == {"b": 1}
    assert first["lost"] == 1
    assert second["attrs"] == {"a": {"$blob": digest_of(text.encode())}}
    assert len(of_type(store, "blob")) == 1
    assert of_type(store, "drop")[0]["why"] == {"ENOSPC": 1}
    assert writer.dropped == 1


def plain(writer: JournalWriter, number: int, attributes: dict[str, Any]) -> bool:
    place = plain_place(int(TRACE, 16), number, None, "chat", 1, 5, 1) + plain_end(9, 0)
    return writer.write_plain(place, '"r":"x"', attributes, None, Resource(), Scope(name="s"))


def test_a_plain_span_is_written_as_its_record_would_be(store: Path, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    attributes: dict[str, Any] = {"a": 1, "b": True, "c": "é" * 600, "d": ("stop",), "e": "x" * 700, "f": 0.5}
    writer.open_span(span(7))
    written: list[bytes] = []
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        written.append(data)
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    assert plain(writer, 1, attributes)
    assert len(written) == 1
    fields: dict[str, Any] = {"name": "chat", "kind": 1, "start_ns": 5, "end_ns": 9, "flags": 1, "scope": Scope(name="s")}
    writer.write_span(
        SpanRecord(trace_id=TRACE, span_id=f"{1:016x}", attributes={"r": "x", **attributes}, **fields),
        "recorder",
    )
    first, second = of_type(store, "span")
    assert first == second
    assert [blob["text"] for blob in of_type(store, "blob")][:2] == [attributes["c"], attributes["e"]]
    assert writer.seen(TRACE, f"{1:016x}")


def test_a_plain_span_that_does_not_fit_is_left_to_its_record(store: Path, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    writer.open_span(span(7))
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:300]))
    assert not plain(writer, 1, {"a": "x" * 600})
    monkeypatch.setattr(os, "write", real)
    assert writer.dropped == 0
    writer.open_span(span(2, attributes={"a": "x" * 600}))
    (journal,) = journals(store)
    reader = read_journal(journal)
    found = [record for _, record in reader]
    assert [record["t"] for record in found] == ["process", "open", "blob", "open"]
    assert found[3]["attrs"] == {"a": {"$blob": found[2]["d"]}}
    assert reader.bad_lines == 1, "the stump"


def test_content_of_a_plain_span_that_turns_out_odd_is_written(store: Path, writer: JournalWriter) -> None:
    assert not plain(writer, 1, {"a": "x" * 600, "b": {"odd": 1}})
    assert of_type(store, "span") == []
    writer.open_span(span(2, attributes={"a": "x" * 600}))
    assert len(of_type(store, "blob")) == 1


# ---- the reader --------------------------------------------------------------------------------------------------------


def test_the_reader_goes_on_where_it_stopped_and_leaves_a_torn_tail(store: Path, writer: JournalWriter) -> None:
    writer.open_span(span(1))
    (journal,) = journals(store)
    reader = read_journal(journal)
    assert [record["t"] for _, record in reader] == ["process", "open"]
    assert reader.offset == journal.stat().st_size
    writer.open_span(span(2))
    whole = journal.read_bytes()
    for cut in range(reader.offset, len(whole)):
        journal.write_bytes(whole[:cut])
        torn = read_journal(journal, reader.offset)
        assert list(torn) == []
        assert (torn.offset, torn.bad_lines) == (reader.offset, 0)
    journal.write_bytes(whole)
    assert [record["span"] for _, record in read_journal(journal, reader.offset)] == [f"{2:016x}"]


def test_the_reader_ends_where_the_file_ended_when_it_began(store: Path, writer: JournalWriter) -> None:
    writer.open_span(span(1))
    (journal,) = journals(store)
    found = 0
    for _, record in read_journal(journal):
        found += record["t"] == "open"
        writer.open_span(span(2))
    assert found == 1


def test_a_damaged_line_is_skipped_and_counted(store: Path, writer: JournalWriter) -> None:
    for number in range(3):
        writer.open_span(span(number))
    (journal,) = journals(store)
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b'"step"', b'"stop"')
    journal.write_bytes(b"".join(lines))
    reader = read_journal(journal)
    assert [record.get("span") for _, record in reader] == [None, f"{0:016x}", f"{2:016x}"]
    assert reader.bad_lines == 1
    assert reader.offset == journal.stat().st_size


def test_awkward_text_stays_as_it_is(store: Path) -> None:
    process = dataclasses.replace(current_process(), argv=("python", "\udcff"), host="höst/../x")
    writer = JournalWriter(store, process=process)
    pair = "\ud83d\ude00"  # two halves, not the one character they look like
    writer.open_span(
        span(1, name="a\0b\udfff", attributes={"lone": "\ud800", "pair": pair, "smile": "😀", "nul": "\0", "\ud800": 1, "$x": 2})
    )
    (journal,) = journals(store)
    assert journal.name.startswith("h-st----x-")
    blobs = {blob["d"]: blob for blob in of_type(store, "blob")}
    (opened,) = of_type(store, "open")
    attributes = [tuple(pair) for pair in opened["attrs"]["$map"]]
    values = {key if isinstance(key, str) else key["$blob"]: value for key, value in attributes}
    assert values["smile"] == "😀"
    assert values["$x"] == 2
    assert values["nul"] == "\0"
    lone, both = (digest_of(text.encode("utf-8", "surrogatepass")) for text in ("\ud800", pair))
    assert values[lone] == 1
    assert values["lone"] == {"$blob": lone}
    assert values["pair"] == {"$blob": both}
    assert "data" in blobs[lone]
    assert json.loads(json.dumps(opened)) == opened


def test_process_info_is_stable_within_a_process() -> None:
    assert current_process() is current_process()
    assert isinstance(current_process(), ProcessInfo)
    assert current_process().pid == os.getpid()


def test_a_fork_that_ran_no_hooks_is_noticed(store: Path, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.open_span(span(1))
    monkeypatch.setattr(os, "getpid", lambda: 4_000_000)
    writer.open_span(span(2))
    assert writer.process.pid == 4_000_000
    assert len(journals(store)) == 2
