"""The OTLP protobuf source: raw messages and messages behind their length."""

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from span_strategies import batches, clean_text, int64, spans
from spanreplay.replay.inputs.input_stream import HEAD_BYTES, InputStream, Limits
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.replay.sources import otlp_proto as source
from spanreplay.spans import otlp_proto
from spanreplay.spans.errors import FormatError
from spanreplay.spans.record import LogRecord, Record, Resource, SpanRecord

TRACE = "5b8efff798038103d269b633813fc60c"


def span(number: int = 1, **fields: Any) -> SpanRecord:
    return SpanRecord(trace_id=TRACE, span_id=f"{number:016x}", start_ns=number, end_ns=number + 1, **fields)


def framed(*messages: bytes) -> bytes:
    return b"".join(len(message).to_bytes(4, "big") + message for message in messages)


def read(data: bytes) -> tuple[list[Record], ReadReport]:
    report = ReadReport()
    return list(source.read(io.BytesIO(data), "f", report)), report


LOG = LogRecord(time_ns=5, body="x")


@settings(max_examples=15, deadline=None)
@given(batches(spans(clean_text, int64)).filter(bool))
def test_handles_every_message_we_write_raw_and_framed(records: list[SpanRecord]) -> None:
    data = otlp_proto.encode(records)
    assert source.handles(data[:HEAD_BYTES])
    assert source.handles(framed(data)[:HEAD_BYTES])
    assert source.handles(framed(b"", data, data)[:HEAD_BYTES])
    assert len(read(framed(data, data))[0]) == 2 * len(records)


@pytest.mark.parametrize("end", [60, 200, 5000])
def test_handles_a_head_cut_anywhere(end: int) -> None:
    resource = Resource(attributes={"service.name": "x"})
    data = otlp_proto.encode([span(n, resource=resource, attributes={"k": "v" * 50}) for n in range(1, 100)])
    assert source.handles(data[:end])
    assert source.handles(framed(data)[:end])


@settings(max_examples=300, deadline=None)
@given(
    st.text(st.characters(exclude_categories=["C"]), max_size=80).map(str.encode)
    | st.text(st.sampled_from('\n\r\t {}[]":ab0'), max_size=40).map(str.encode)
)
def test_text_is_never_taken_for_a_message(head: bytes) -> None:
    assert not source.handles(head)


@pytest.mark.parametrize(
    "head",
    [b"", b"\x0a", b"\x0a\x00", b"\x00" * 64, b"\x00\x00\x00\x05hello", b"\x1f\x8b\x08\x00", b"SQLite format 3\x00"],
)
def test_does_not_handle(head: bytes) -> None:
    assert not source.handles(head)


def test_framed_traces_and_logs() -> None:
    records, report = read(framed(otlp_proto.encode([span(1)]), otlp_proto.encode_logs([LOG]), b"", otlp_proto.encode([span(2)])))
    assert records == [span(1), LOG, span(2)]
    assert report.rejected == 0


def test_a_cut_last_message_keeps_its_whole_spans_and_is_told() -> None:
    data = framed(otlp_proto.encode([span(1)]), otlp_proto.encode([span(2), span(3)]))
    records, report = read(data[:-3])
    assert records == [span(1), span(2)]
    at = len(framed(otlp_proto.encode([span(1)])))
    assert [r.place for r in report.rejections] == [f"byte {at}: resource_spans[0].scope_spans[0].spans[1]", f"byte {at}"]
    assert read(framed(otlp_proto.encode([span(1)])) + b"\x00\x00")[1].rejections[0].found == "2 bytes at the end of the file"


def test_a_damaged_message_costs_only_itself() -> None:
    records, report = read(framed(otlp_proto.encode([span(1)]), b"rubbish", otlp_proto.encode([span(2)])))
    assert records == [span(1), span(2)]
    assert report.rejections[0].place.startswith(f"byte {len(framed(otlp_proto.encode([span(1)])))}: byte ")


def test_messages_beyond_the_limit_are_refused() -> None:
    report = ReadReport()
    data = otlp_proto.encode([span(n) for n in range(1, 50)])
    with pytest.raises(FormatError, match="at most 100 bytes"):
        list(source.read(InputStream(io.BytesIO(data), Limits(document=100)), "f", report))
    assert list(source.read(InputStream(io.BytesIO(framed(data)), Limits(document=100)), "f", report)) == []
    assert report.rejections[0].expected == "a message of at most 100 bytes"


def _field(number: int, wire: int, payload: bytes) -> bytes:
    return _varint(number << 3 | wire) + payload


def _varint(value: int) -> bytes:
    made = b""
    while value > 0x7F:
        made += bytes([value & 0x7F | 0x80])
        value >>= 7
    return made + bytes([value])


UNKNOWN = _field(500, 0, _varint(2**63 + 5)) + _field(501, 1, b"12345678") + _field(502, 2, b"\x03abc") + _field(503, 5, b"1234")


def test_fields_of_a_later_version_are_passed_over() -> None:
    data = otlp_proto.encode([span(1, name="a"), span(2, name="b")])
    assert data[:1] == b"\x0a"
    size, at = data[1] & 0x7F | data[2] << 7 if data[1] & 0x80 else data[1], 3 if data[1] & 0x80 else 2
    group = data[at : at + size]
    for changed in (UNKNOWN + group, group + UNKNOWN):
        message = _field(1, 2, _varint(len(changed)) + changed)
        for whole in (message + UNKNOWN, framed(UNKNOWN + message), framed(message, UNKNOWN + message + UNKNOWN)):
            assert source.handles(whole[:HEAD_BYTES])
            found, report = read(whole)
            assert {record.name for record in found if isinstance(record, SpanRecord)} == {"a", "b"}
            assert not report.fidelity


@pytest.mark.parametrize("number", [4, 15])
def test_a_message_of_another_kind_is_not_handled(number: int) -> None:
    data = otlp_proto.encode([span(1)])
    assert not source.handles(framed(_field(number, 0, b"\x01") + data)[:HEAD_BYTES])
