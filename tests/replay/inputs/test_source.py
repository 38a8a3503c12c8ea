"""Opening what others recorded: recognised by content, bad input counted or refused with its place, and nothing else ever raised."""

import dataclasses
import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.replay.inputs import input_stream
from spanreplay.replay.inputs.format import registry
from spanreplay.replay.inputs.input_stream import HEAD_BYTES, HEADS, Limits
from spanreplay.replay.inputs.json_stream import key_paths
from spanreplay.replay.inputs.report import KEPT_REJECTIONS, ReadReport, UnreadableSource
from spanreplay.replay.inputs.source import Opened, open_source
from spanreplay.spans import otlp_json, otlp_proto
from spanreplay.spans.record import LogRecord, Record, SpanRecord
from support.size import FULL

FIXTURES = Path(__file__).parents[2] / "fixtures/otlp"
NAMES = sorted(path.name for path in FIXTURES.iterdir())
MATERIAL = Path(__file__).parents[4] / "shared/material"
TRACE = "5b8efff798038103d269b633813fc60c"


def from_bytes(data: bytes, **options: Any) -> Opened:
    return open_source("-", stdin=io.BytesIO(data), **options)


def read(data: bytes, **options: Any) -> tuple[list[Record], ReadReport]:
    opened = from_bytes(data, **options)
    return list(opened.records), opened.report


def read_file(path: Path) -> tuple[list[Record], ReadReport]:
    opened = open_source(str(path))
    return list(opened.records), opened.report


def refused(data: bytes, **options: Any) -> UnreadableSource:
    with pytest.raises(UnreadableSource) as caught:
        read(data, **options)
    assert not caught.value.unexpected
    return caught.value


def span(number: int = 1, **fields: Any) -> SpanRecord:
    return SpanRecord(trace_id=TRACE, span_id=f"{number:016x}", start_ns=number, end_ns=number + 1, **fields)


def packed_text(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def line(*records: Record) -> bytes:
    return json.dumps(otlp_json.encode(records)).encode() + b"\n"


# ---- Files, folders, standard input ----------------------------------------------------------------------------------


def test_a_file_is_recognised_by_its_content_not_its_name(tmp_path: Path) -> None:
    path = tmp_path / "trace.pb"
    path.write_bytes(line(span()))
    opened = open_source(str(path))
    assert (opened.format, list(opened.records)) == ("otlp-json", [span()])
    assert (opened.report.spans, opened.report.logs, opened.report.rejected, opened.report.fidelity) == (1, 0, 0, [])


def test_gzip_is_unpacked_whatever_is_inside(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(packed_text(line(span(1))) + packed_text(line(span(2))))
    assert read_file(path)[0] == [span(1), span(2)]
    path.write_bytes(packed_text(otlp_proto.encode([span(1)])))
    opened = open_source(str(path))
    assert (opened.format, list(opened.records)) == ("otlp-proto", [span(1)])


def test_a_folder_gives_all_its_readable_files_in_order_and_names_the_others(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_bytes(line(span(2)))
    (tmp_path / "a.bin").write_bytes(otlp_proto.encode([span(1)]))
    (tmp_path / "notes.txt").write_text("not a trace")
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / ".hidden.json").write_bytes(line(span(9)))
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.jsonl").write_bytes(line(span(3)))
    opened = open_source(str(tmp_path))
    assert opened.format == "otlp-json+otlp-proto"
    assert list(opened.records) == [span(1), span(2), span(3)]
    assert [(Path(error.file).name, error.found) for error in opened.report.unreadable] == [
        ("dangling", "nothing of that name"),
        ("empty.json", "an empty file"),
        ("notes.txt", "something that begins with 'not a trace'"),
    ]


def test_a_damaged_file_does_not_cost_the_rest_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'{"resourceSpans": [{"scopeSpans": 5}]}')
    (tmp_path / "b.json").write_bytes(line(span(2)))
    records, report = read_file(tmp_path)
    assert records == [span(2)]
    assert [Path(error.file).name for error in report.unreadable] == ["a.json"]


@pytest.mark.parametrize("content", [None, b"", b"not a trace", b'{"resourceSpans": [{"scopeSpans": 5}]}'])
def test_a_folder_with_no_readable_file_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(UnreadableSource) as caught:
        read_file(tmp_path)
    assert caught.value.file == str(tmp_path)
    assert caught.value.found.startswith("no file in it" if content is None else "1 file, none readable (")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match=r"nowhere: expected a file or folder, found nothing of that name$"):
        open_source(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("target", ["a\0b", "x" * 5000, ""])
def test_impossible_names_are_refused(target: str) -> None:
    with pytest.raises(UnreadableSource):
        list(open_source(target).records)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(line(span()))
    path.chmod(0)
    with pytest.raises(UnreadableSource, match="no permission"):
        open_source(str(path))


def test_no_permission_is_told_without_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(line(span()))

    def refuse(self: Path, mode: str) -> BinaryIO:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UnreadableSource, match=r"a\.json: expected a file that may be read, found no permission to read it$"):
        open_source(str(path))


def test_a_named_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"
    writer = subprocess.Popen([sys.executable, "-c", code, pipe, line(span()).decode()])
    assert read_file(pipe)[0] == [span()]
    assert writer.wait(10) == 0


def test_a_read_error_keeps_what_came_before() -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            if not data:
                raise OSError(5, "Input/output error")
            return data

    data = b"".join(line(span(n, name="x" * 100)) for n in range(1, 1000))
    opened = open_source("-", stdin=Broken(data))
    records = list(opened.records)
    assert len(records) > 100
    assert opened.report.rejections[0].found == "Input/output error"


class Pipe(io.RawIOBase):
    """Bytes that come once and in small pieces, as through a pipe; it counts them."""

    def __init__(self, data: bytes) -> None:
        self.data, self.given = data, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        part = self.data[self.given : self.given + min(size, 5000)]
        self.given += len(part)
        return part


@pytest.mark.parametrize("pack", [bytes, packed_text], ids=["plain", "packed"])
def test_a_format_that_shows_late_is_recognised_and_read_from_its_beginning(pack: Any) -> None:
    big = span(attributes={"k": "v" * 3_000_000})
    late = json.dumps([{"attributes": {"k": "v" * 3_000_000}, "trace_id": TRACE, "span_id": f"{1:016x}", "name": "", "start_time": 1}])
    for data, form in ((late.encode(), "span-list"), (line(big, span(2)), "otlp-json"), (otlp_proto.encode([big, span(2)]), "otlp-proto")):
        opened = open_source("-", stdin=Pipe(pack(data)))  # type: ignore[arg-type]
        assert opened.format == form
        assert next(iter(opened.records)).attributes == big.attributes


def test_more_is_looked_at_only_where_less_was_not_enough() -> None:
    ordinary, never = Pipe(line(span()) * 10_000), Pipe(b"[" + b"5, " * (HEADS[-1] // 2) + b"5]")
    open_source("-", stdin=ordinary)  # type: ignore[arg-type]
    assert ordinary.given < 2 * HEAD_BYTES
    with pytest.raises(UnreadableSource, match="byte 0: expected a trace"):
        open_source("-", stdin=never)  # type: ignore[arg-type]
    assert never.given < HEADS[-1] + HEAD_BYTES < len(never.data)


def test_keys_without_number_or_end_are_looked_at_no_further_than_tells_formats_apart() -> None:
    many = "{" + ",".join(f'"k{n}": {{"a": 1}}' for n in range(100_000)) + "}"
    assert len(key_paths(many.encode())) < 20_000
    long = json.dumps({"k" * 1_000_000: {f"{n}": 1 for n in range(1000)}})
    assert sum(map(len, key_paths(long.encode()))) < 1_000_000
    deep = '{"a":' * 1000
    assert len(key_paths(deep.encode(), depth=5)) == 5


def test_an_opened_source_left_unread_holds_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(line(span()))
    open_source(str(path))  # an open file would be a ResourceWarning, which fails the test


def test_standard_input_stays_open_and_may_be_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO(line(span()))
    assert list(open_source("-", stdin=stream).records) == [span()]
    assert not stream.closed
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UnreadableSource, match="no standard input"):
        open_source("-")


def test_every_source_has_a_name_of_its_own_and_claims_nothing_at_random() -> None:
    assert len({source.NAME for source in registry()}) == len(registry()) >= 2
    for source in registry():
        assert not any(source.handles(head) for head in (b"x", b"{}", b"[]", b"\x00", b"\n\n"))


# ---- What is in the fixtures -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_exactly_one_source_knows_each_fixture(name: str) -> None:
    data = (FIXTURES / name).read_bytes()
    for form in (data, otlp_proto.encode([r for r in read(data)[0] if isinstance(r, SpanRecord)])):
        assert sum(source.handles(form[:HEAD_BYTES]) for source in registry()) == 1


KEPT = {
    "array.json": (3, 0, 0),
    "bad-lines.jsonl": (2, 0, 3),
    "concatenated.json": (3, 0, 0),
    "cut-line.jsonl": (2, 0, 1),
    "cut.json": (2, 0, 1),
    "empty-ids.json": (2, 0, 2),
    "grafana.json": (1, 0, 0),
    "jaeger-v3.json": (3, 0, 0),
    "lines-crlf-bom.jsonl": (3, 1, 0),
    "lines.jsonl": (3, 1, 0),
    "odd-values.json": (1, 0, 0),
    "rotated-in-the-middle.jsonl": (2, 0, 1),
    "spans.json": (3, 0, 0),
    "tempo.json": (3, 0, 0),
}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_of_each_fixture(name: str) -> None:
    records, report = read_file(FIXTURES / name)
    assert (report.spans, report.logs, report.rejected) == KEPT[name]
    assert len(records) == report.kept
    assert {record.trace_id for record in records} == {TRACE}


@pytest.mark.parametrize("name", ["array.json", "concatenated.json", "lines.jsonl", "lines-crlf-bom.jsonl", "jaeger-v3.json"])
def test_the_same_spans_in_every_layout(name: str) -> None:
    wanted = {record.span_id: record for record in read_file(FIXTURES / "spans.json")[0]}
    for record in read_file(FIXTURES / name)[0]:
        if isinstance(record, SpanRecord):
            assert record == wanted[record.span_id]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "bad-lines.jsonl",
            [
                ("line 4", "a JSON document", "expecting value (column 1)"),
                ("line 5", "an object with resourceSpans or resourceLogs", "an object with hello"),
                ("line 6", "a JSON document", "expecting value (column 44)"),
            ],
        ),
        ("cut-line.jsonl", [("line 2", "a whole JSON document", "one that is cut")]),
        ("rotated-in-the-middle.jsonl", [("line 1", "a whole JSON document", "one that is cut")]),
        (
            "empty-ids.json",
            [
                ("line 1: resourceSpans[0].scopeSpans[0].spans[1].spanId", "an id of 16 hex digits", "an empty id"),
                ("line 1: resourceSpans[0].scopeSpans[0].spans[2].traceId", "an id of 32 hex digits", "an empty id"),
            ],
        ),
    ],
)
def test_what_is_left_out_is_told_with_its_place(name: str, told: list[tuple[str, str, str]]) -> None:
    _, report = read_file(FIXTURES / name)
    assert [(r.place, r.expected, r.found) for r in report.rejections] == told
    assert report.fidelity[0] == {"code": "rejected", "detail": "could not be read and was left out", "spans": len(told), "advice": ""}
    assert [item["code"] for item in report.fidelity[1:]] == (["document-cut"] if told[0][2] == "one that is cut" else [])


def same_but_for_the_schema(record: Record, other: Record) -> bool:
    """Whether the two are equal, apart from what is written behind the spans of a scope."""
    return dataclasses.replace(record, scope=dataclasses.replace(record.scope, schema_url=other.scope.schema_url)) == other


def test_a_cut_document_keeps_only_whole_spans() -> None:
    kept = {record.span_id for record in read_file(FIXTURES / "cut.json")[0]}
    assert kept == {"a000000000000001", "a000000000000002"}
    whole = {record.span_id: record for record in read_file(FIXTURES / "spans.json")[0]}
    assert all(same_but_for_the_schema(record, whole[str(record.span_id)]) for record in read_file(FIXTURES / "cut.json")[0])


def test_any_cut_of_a_document_keeps_only_whole_spans() -> None:
    data = (FIXTURES / "spans.json").read_bytes()
    whole = {record.span_id: record for record in read(data)[0]}
    most = 0
    for end in [*range(200, len(data) - 25, 7 if FULL else 131), len(data) - 25]:
        try:
            records, report = read(data[:end])
        except UnreadableSource:
            continue
        assert report.rejected == 1
        assert all(same_but_for_the_schema(record, whole[str(record.span_id)]) for record in records)
        assert len(records) >= most
        most = len(records)
    assert most == 3


def test_floating_point_times_are_in_the_fidelity_list() -> None:
    _, report = read_file(FIXTURES / "grafana.json")
    assert [(item["code"], item["spans"]) for item in report.fidelity] == [("time-float", 1), ("grafana-download", 1)]
    assert all(item["advice"] for item in report.fidelity)


def test_odd_values_are_kept_as_they_are() -> None:
    (record,), report = read_file(FIXTURES / "odd-values.json")
    attributes = record.attributes
    assert repr(attributes["nan"]) == "nan"
    assert attributes["inf"] == float("inf")
    assert (attributes["big"], attributes["half"], attributes["same"], attributes["none"]) == (2**70, "a\ud800b", "last", None)
    assert [item["code"] for item in report.fidelity] == ["duplicate-key"]


# ---- Bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "place", "found"),
    [
        (b"", "byte 0", "an empty file"),
        (b"\x00\x01\x02\xff", "byte 0", "bytes that begin with 00 01 02 ff"),
        (b"hello", "byte 0", "something that begins with 'hello'"),
        (b'{"hello": "world"}', "byte 0", 'something that begins with \'{"hello": "world"}\''),
        (b'{"resourceSpans": [', "line 1", "one that is cut"),
        (b'{"resourceSpans": nope}', "line 1", "expecting value (column 19)"),
        (b'{"resourceSpans": 5}', "line 1: resourceSpans", "the number 5"),
        (b'{"resourceSpans": [7]}', "line 1: resourceSpans[0]", "the number 7"),
        (b'{"resourceSpans": ' + b"[" * 100_000, "line 1", "nesting too deep to read"),
        (b'{"resourceSpans": ' + b"9" * 5000 + b"}", "line 1", "a number of thousands of digits"),
        (b"\xff\xfe{\x00", "byte 0", "UTF-16 text"),
        (packed_text(b"hello"), "byte 0", "something that begins with 'hello'"),
        (packed_text(b""), "byte 0", "an empty file"),
        (packed_text(b'{"resourceSpans": []}')[:12], "packed byte 12", "the end of the file"),
        (b"\x1f\x8b rubbish", "packed byte 10", "Unknown compression method"),
        (b"\x00\x00\x00\x05hello", "byte 0", "bytes that begin with 00 00 00 05 68 65 6c 6c"),
    ],
)
def test_unreadable_input_says_where_and_what(data: bytes, place: str, found: str) -> None:
    error = refused(data)
    assert (error.file, error.place) == ("standard input", place)
    assert error.found == found


def test_an_input_without_records_is_no_error() -> None:
    assert read(b'{"resourceSpans": []}')[0] == []


def test_an_input_of_only_empty_ids_is_refused() -> None:
    error = refused(line(SpanRecord(trace_id="", span_id="")))
    assert error.place == "line 1: resourceSpans[0].scopeSpans[0].spans[0].traceId"


def test_deep_nesting_costs_only_its_line() -> None:
    deep = b'{"resourceSpans": ' + b"[" * 50_000 + b"]" * 50_000 + b"}\n"
    records, report = read(line(span(1)) + deep + line(span(2)))
    assert records == [span(1), span(2)]
    assert [(r.place, r.found) for r in report.rejections] == [("line 2", "nesting too deep to read")]


def test_a_line_of_ten_megabytes_is_read() -> None:
    big = span(1, attributes={"gen_ai.input.messages": "x" * 10_000_000})
    assert read(line(big) + line(span(2)))[0] == [big, span(2)]


def test_a_line_beyond_the_limit_costs_only_itself() -> None:
    limits = Limits(document=2000)
    records, report = read(line(span(1)) + line(span(2, name="x" * 9000)) + line(span(3)), limits=limits)
    assert records == [span(1), span(3)]
    assert [(r.place, r.expected) for r in report.rejections] == [("line 2", "a document of at most 2000 bytes")]


def test_a_pretty_printed_document_beyond_the_limit_is_refused() -> None:
    text = json.dumps(otlp_json.encode([span(n) for n in range(1, 50)]), indent=1).encode()
    assert refused(text, limits=Limits(document=2000)).expected == "a document of at most 2000 bytes"


def test_a_decompression_bomb_stops_at_the_limit_and_keeps_what_came_before() -> None:
    bomb = packed_text(line(span(1)) + b"\n" * 500_000)
    records, report = read(bomb, limits=Limits(unpacked=100_000))
    assert records == [span(1)]
    assert report.rejections[0].expected == "packed data that grows less than 300 times"
    refused(packed_text(b'{"resourceSpans": "' + b" " * 500_000), limits=Limits(unpacked=100_000))


def test_a_cut_gzip_keeps_its_whole_lines() -> None:
    packed = packed_text(b"".join(line(span(n, name=os.urandom(50).hex())) for n in range(1, 200)))
    records, report = read(packed[: len(packed) // 2])
    assert 50 < len(records) < 150
    assert [r.found for r in report.rejections] == ["one that is cut", "the end of the file"]


def test_packed_data_in_packed_data_is_unpacked_within_the_same_limits() -> None:
    assert read(packed_text(packed_text(line(span()))))[0] == [span()]
    refused(packed_text(packed_text(packed_text(packed_text(line(span()))))))
    bomb = packed_text(packed_text(b'{"resourceSpans": "' + b" " * 30_000_000))
    assert len(bomb) < 1000
    refused(bomb, limits=Limits(unpacked=100_000))
    twice = packed_text(packed_text(b"".join(line(span(n, name=os.urandom(50).hex())) for n in range(1, 200))))
    records, report = read(twice[: len(twice) // 2])
    assert 50 < len(records) < 150
    assert report.rejections[-1].found == "the end of the file"


def test_bytes_after_the_gzip_data_are_told() -> None:
    records, report = read(packed_text(line(span(1))) + b"rubbish")
    assert records == [span(1)]
    assert report.rejections[0].expected == "whole packed data"


def test_bytes_that_are_no_utf8_are_replaced_and_told() -> None:
    data = line(span(1, name="abc")).replace(b"abc", b"a\xffc")
    records, report = read(data + line(span(2)))
    assert isinstance(records[0], SpanRecord)
    assert records[0].name == "a\ufffdc"
    assert [item["code"] for item in report.fidelity] == ["text-replaced"]


def test_only_the_first_rejections_are_kept_and_all_are_counted() -> None:
    _, report = read(line(span()) + b"nope\n" * (KEPT_REJECTIONS + 50))
    assert (len(report.rejections), report.rejected) == (KEPT_REJECTIONS, KEPT_REJECTIONS + 50)
    assert report.warnings()[0] == "left out: standard input: line 2: expected a JSON document, found expecting value (column 1)"
    assert report.warnings()[KEPT_REJECTIONS:] == ["left out: 50 more"]


def test_warnings_name_unread_files_and_what_differs(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes((FIXTURES / "grafana.json").read_bytes())
    (tmp_path / "b.txt").write_text("notes")
    first, second, third = read_file(tmp_path)[1].warnings()
    assert "b.txt: byte 0: expected a trace" in first
    assert second.startswith(
        "1 record: has times written as floating point numbers, exact to about 256 ns only; write 64-bit numbers as text"
    )
    assert third.startswith("1 record: comes from Grafana's download")


def test_one_span_with_two_faults_of_a_kind_counts_once() -> None:
    pairs = [{"key": "k", "value": {}}] * 3
    spans = [{"traceId": TRACE, "spanId": f"{1:016x}", "attributes": pairs}]
    text = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    assert [item["spans"] for item in read(text.encode())[1].fidelity] == [1]


def test_lines_are_read_one_by_one() -> None:
    """The first record is there before the second half of the input has been asked for."""
    data = b"".join(line(span(n, name="x" * 1000)) for n in range(1, 1000))
    stream = io.BytesIO(data)
    opened = open_source("-", stdin=stream)
    assert next(opened.records) == span(1, name="x" * 1000)
    assert stream.tell() < len(data) // 2
    opened.records.close()  # type: ignore[attr-defined]


def test_a_fault_of_a_reader_is_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(stream: BinaryIO, where: str, report: ReadReport) -> Iterator[Record]:
        yield span()
        raise KeyError("oops")

    source = next(source for source in registry() if source.NAME == "otlp-json")
    monkeypatch.setattr(source, "read", broken)
    opened = from_bytes(line(span()))
    with pytest.raises(UnreadableSource, match="KeyError") as caught:
        list(opened.records)
    assert caught.value.unexpected


# ---- zstd --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"\x28\xb5\x2f\xfd" + bytes(20), b"\x00\x00\x00\x14\x28\xb5\x2f\xfd" + bytes(16)])
def test_zstd_without_its_package_names_the_install_line(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_stream, "_ZSTD_MODULES", ())
    assert "pip install backports.zstd" in refused(data).found


# ---- Any bytes ---------------------------------------------------------------------------------------------------------


def seeds() -> dict[str, bytes]:
    found = {name: (FIXTURES / name).read_bytes() for name in NAMES}
    spans = [record for record in read_file(FIXTURES / "spans.json")[0] if isinstance(record, SpanRecord)]
    logs = [record for record in read_file(FIXTURES / "lines.jsonl")[0] if isinstance(record, LogRecord)]
    message = otlp_proto.encode(spans)
    found["spans.pb"] = message
    found["spans.framed"] = b"".join(len(part).to_bytes(4, "big") + part for part in (message, otlp_proto.encode_logs(logs), message))
    found["lines.jsonl.gz"] = packed_text(found["lines.jsonl"])
    found["spans.pb.gz"] = packed_text(message)
    return found


SEEDS = seeds()
TOKENS = [
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b"\\",
    b"\n",
    b"\x00",
    b"\xff",
    b"null",
    b"1e999",
    b"-",
    b'"traceId":',
    b"\\ud800",
    b"[[[[[[",
    b"9" * 30,
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(SEEDS[draw(st.sampled_from(sorted(SEEDS)))])
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        match draw(st.sampled_from(["flip", "cut", "drop", "insert", "copy"])):
            case "flip":
                data[at : at + 1] = bytes([draw(st.integers(0, 255))])
            case "cut":
                del data[at:]
            case "drop":
                del data[at : at + draw(st.integers(1, 40))]
            case "insert":
                data[at:at] = draw(st.sampled_from(TOKENS))
            case _:
                data[at:at] = data[at : at + draw(st.integers(1, 200))]
    return bytes(data)


def read_or_refuse(data: bytes) -> list[Record]:
    try:
        return read(data)[0]
    except UnreadableSource as error:
        refusal = error
    assert not refusal.unexpected
    assert str(refusal).isprintable()
    return []


@settings(max_examples=20_000 if FULL else 250, deadline=None)
@given(mutated())
def test_damaged_input_gives_records_or_unreadable_source(data: bytes) -> None:
    records = read_or_refuse(data)
    json.dumps(otlp_json.encode(records))
    otlp_proto.encode([record for record in records if isinstance(record, SpanRecord)])


@settings(max_examples=2000 if FULL else 100, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_records_or_unreadable_source(data: bytes) -> None:
    read_or_refuse(data)


# ---- Real traces -------------------------------------------------------------------------------------------------------


def real_files() -> list[Path]:
    names = ("opentelemetry-proto/trace", "jaeger/example_trace", "jaeger/link_attributes_trace", "jaeger/otlp2jaeger-in")
    return [MATERIAL / "interop" / f"{name}.json" for name in names]


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_real_otlp_files(path: Path) -> None:
    if not path.exists():
        pytest.skip("needs ../shared/material, which is not part of the project")
    records, report = read_file(path)
    assert records
    assert (report.rejected, report.fidelity) == (0, [])
    assert read(line(*records))[0] == records
