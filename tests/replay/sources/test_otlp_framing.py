"""Every way in which OTLP lies in a file: what the Collector's file exporter writes, and what back ends put around it."""

import base64
import dataclasses
import gzip
import importlib
import io
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span, TracesData

from span_strategies import batches, clean_text, exact, int64, logs, spans
from spanreplay.replay.inputs.input_stream import Limits
from spanreplay.replay.inputs.report import ReadReport, UnreadableSource
from spanreplay.replay.inputs.source import open_source
from spanreplay.spans import otlp_json, otlp_proto
from spanreplay.spans.record import EventRecord, LogRecord, Record, Resource, Scope, SpanRecord
from support.size import FULL

zstd: Any = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
TRACE = "5b8efff798038103d269b633813fc60c"


def read(data: bytes, **options: Any) -> tuple[list[Record], ReadReport]:
    found = open_source("-", stdin=io.BytesIO(data), **options)
    return list(found.records), found.report


def span(number: int = 1, **fields: Any) -> SpanRecord:
    return SpanRecord(trace_id=TRACE, span_id=f"{number:016x}", start_ns=number, end_ns=number + 1, **fields)


def as_json(records: list[Record]) -> bytes:
    return json.dumps(otlp_json.encode(records)).encode()


def as_proto(records: list[Record]) -> bytes:
    spans_ = [record for record in records if isinstance(record, SpanRecord)]
    return otlp_proto.encode(spans_) if spans_ else otlp_proto.encode_logs([r for r in records if isinstance(r, LogRecord)])


def length(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big")


def lines(messages: list[bytes]) -> bytes:
    return b"".join(message + b"\n" for message in messages)


def framed(messages: list[bytes]) -> bytes:
    return b"".join(length(message) + message for message in messages)


def packed_each(messages: list[bytes]) -> bytes:
    return framed([zstd.compress(message) for message in messages])


Layout = tuple[Callable[[list[Record]], bytes], Callable[[list[bytes]], bytes], Callable[[bytes], bytes]]
TIMED_LOGS = logs(clean_text, int64).map(lambda log: dataclasses.replace(log, time_ns=log.time_ns or 1))
"""In protobuf a log record without its time is no more than bytes that may be a span as well."""
LAYOUTS: dict[str, Layout] = {
    "json": (as_json, lines, bytes),
    "json, no line end": (as_json, b"\n".join, bytes),
    "json, crlf and blank lines": (as_json, lambda messages: b"\xef\xbb\xbf" + b"\r\n\r\n".join(messages), bytes),
    "json, gzip": (as_json, lines, gzip.compress),
    "json, zstd as a whole": (as_json, lines, zstd.compress),
    "json, zstd, a frame a line": (as_json, lambda messages: b"".join(zstd.compress(line + b"\n") for line in messages), bytes),
    "json, zstd each": (as_json, packed_each, bytes),
    "json, gzip in zstd": (as_json, lines, lambda data: zstd.compress(gzip.compress(data))),
    "json, zstd each in gzip": (as_json, packed_each, gzip.compress),
    "proto": (as_proto, framed, bytes),
    "proto, gzip": (as_proto, framed, gzip.compress),
    "proto, zstd as a whole": (as_proto, framed, zstd.compress),
    "proto, zstd each": (as_proto, packed_each, bytes),
}


@settings(max_examples=600 if FULL else 24, deadline=None)
@given(
    st.sampled_from(sorted(LAYOUTS)),
    st.lists(batches(spans(clean_text, int64)).filter(bool) | st.lists(TIMED_LOGS, min_size=1, max_size=2), min_size=1, max_size=3),
)
def test_the_same_records_in_every_framing(name: str, batches_: list[list[Record]]) -> None:
    encode, join, pack = LAYOUTS[name]
    records, report = read(pack(join([encode(batch) for batch in batches_])))
    assert exact(records) == exact([record for batch in batches_ for record in batch])
    assert report.rejected == 0


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_cut_keeps_what_is_whole_and_is_told(name: str) -> None:
    encode, join, pack = LAYOUTS[name]
    whole = [span(number, name=f"{number:x}" * 40) for number in range(1, 40)]
    data = pack(join([encode([record]) for record in whole]))
    for share in (0.5, 0.97):
        cut = data[: int(len(data) * share)]
        if name.endswith("zstd as a whole"):
            # One block is all of a small file.
            with pytest.raises(UnreadableSource, match="packed byte"):
                read(cut)
            continue
        records, report = read(cut)
        assert records == whole[: len(records)]
        assert records or "gzip" in name
        assert 1 <= report.rejected <= 3


def test_messages_of_a_packed_file_are_read_one_by_one() -> None:
    data = packed_each([as_json([span(number, name="x" * 1000 + str(number))]) for number in range(1, 3000)])
    stream = io.BytesIO(data)
    found = open_source("-", stdin=stream)
    next(found.records)
    assert stream.tell() < len(data) // 2
    found.records.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("pack", [zstd.compress, lambda data: framed([zstd.compress(data)])])
def test_a_bomb_of_zstd_stops_at_the_limit(pack: Callable[[bytes], bytes]) -> None:
    data = as_json([span(1)]) + b"\n" + b" " * 3_000_000 + b"\n"
    records, report = read(pack(data), limits=Limits(document=1 << 20, unpacked=1 << 20))
    assert len(records) <= 1
    assert report.rejected >= 1


def test_damaged_packed_data_costs_what_is_behind_it() -> None:
    messages = [zstd.compress(as_json([span(number)])) for number in (1, 2, 3)]
    messages[1] = messages[1][:10] + b"\xff" * 10 + messages[1][20:]
    records, report = read(framed(messages))
    assert records == [span(1)]
    assert report.rejections[-1].place.startswith("packed byte ")


# ---- What back ends put around it -----------------------------------------------------------------------------------------


def in_base64(document: Any, encode: Callable[[str], str]) -> Any:
    if isinstance(document, list):
        return [in_base64(item, encode) for item in document]
    if isinstance(document, dict):
        return {
            key: encode(value) if key in ("traceId", "spanId", "parentSpanId") and isinstance(value, str) else in_base64(value, encode)
            for key, value in document.items()
        }
    return document


IDS: dict[str, Callable[[str], str]] = {
    "hex": str,
    "upper case": str.upper,
    "0x": lambda digits: f"0x{digits}",
    "base64": lambda digits: base64.b64encode(bytes.fromhex(digits)).decode(),
    "base64 without padding": lambda digits: base64.b64encode(bytes.fromhex(digits)).decode().rstrip("="),
    "url-safe base64": lambda digits: base64.urlsafe_b64encode(bytes.fromhex(digits)).decode(),
    "base64 of the hex": lambda digits: base64.b64encode(digits.encode()).decode(),
    "base64 of upper-case hex": lambda digits: base64.b64encode(digits.upper().encode()).decode(),
    "short": lambda digits: digits[16:] if digits.startswith("0" * 16) and digits[16:].strip("0") else digits,
}


@settings(max_examples=500 if FULL else 40, deadline=None)
@given(st.sampled_from(sorted(IDS)), spans(), st.booleans())
def test_every_writing_of_an_id_is_that_id(writing: str, record: SpanRecord, short: bool) -> None:
    trace = "0" * 16 + record.trace_id[16:] if short and record.trace_id[16:].strip("0") else record.trace_id
    wanted = SpanRecord(trace_id=trace, span_id=record.span_id, parent_span_id=record.parent_span_id)
    document = in_base64(otlp_json.encode([wanted]), IDS[writing])
    assert read(json.dumps(document).encode())[0] == [wanted]


@pytest.mark.parametrize("wrong", ["xyz", "a" * 31, "a" * 33, "AAAAAAAAAAAAAAAAAAAAAA", 5, ["a"], "=" * 24, "ü" * 32])
def test_what_is_no_id_is_told_with_its_place(wrong: Any) -> None:
    document = otlp_json.encode([span(1), span(2)])
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] = wrong
    records, report = read(json.dumps(document).encode())
    assert records == [span(2)]
    assert report.rejections[0].place == "line 1: resourceSpans[0].scopeSpans[0].spans[0].traceId"


WRAPPINGS: dict[str, Callable[[Any], Any]] = {
    "none": lambda document: document,
    "jaeger v3": lambda document: {"result": document},
    "tempo v1": lambda document: {"batches": document["resourceSpans"]},
    "tempo v2": lambda document: {"trace": document, "metrics": {"inspectedBytes": "5"}},
    "snake_case": lambda document: {"resource_spans": document["resourceSpans"]},
    "array": lambda document: [document],
    "groups": lambda document: document["resourceSpans"],
}


@settings(max_examples=300 if FULL else 14, deadline=None)
@given(st.sampled_from(sorted(WRAPPINGS)), batches(spans()).filter(bool), st.booleans())
def test_the_same_records_in_every_wrapping(wrapping: str, records: list[SpanRecord], twice: bool) -> None:
    text = json.dumps(WRAPPINGS[wrapping](otlp_json.encode(records)), indent=1 if twice else None).encode()
    found, report = read(text + b"\n" + text if twice else text)
    if wrapping == "jaeger v3":  # it sorts events by name, which is undone
        records = [dataclasses.replace(record, events=tuple(sorted(record.events, key=lambda event: event.time_ns))) for record in records]
    assert exact(found) == exact(records * (2 if twice else 1))
    assert report.rejected == 0


def test_a_part_of_a_trace_is_told_with_what_to_do() -> None:
    document = {"trace": otlp_json.encode([span(1, flags=1), span(2, flags=1)]), "status": "PARTIAL", "message": "trace exceeds max size"}
    records, report = read(json.dumps(document).encode() + b"\n" + as_json([span(3)]))
    assert len(records) == 3
    ((code, detail, number, advice),) = [tuple(entry.values()) for entry in report.fidelity]
    assert (code, number) == ("trace-partial", 2)
    assert "a part only (trace exceeds max size)" in str(detail)
    assert "max_bytes_per_trace" in str(advice)


@pytest.mark.parametrize("status", [b"", b"\x18\x00", b"\x18\x01"])
def test_answers_of_tempo_in_protobuf(status: bytes) -> None:
    """``TraceByIDResponse``: trace = 1, metrics = 2, status = 3, message = 4."""
    records = [span(number, flags=1, resource=Resource(attributes={"service.name": "x"}), scope=Scope(name="y")) for number in (1, 2)]
    trace = otlp_proto.encode(records)
    data = b"\x0a" + bytes([len(trace) & 127 | 128, len(trace) >> 7]) + trace + b"\x12\x02\x08\x05" + status + b"\x22\x03why"
    found, report = read(data)
    assert found == records
    partial = {entry["code"]: (entry["spans"], entry["detail"]) for entry in report.fidelity}
    assert partial == ({"trace-partial": (2, "comes from a trace of which Tempo gave a part only (why)")} if status == b"\x18\x01" else {})


@pytest.mark.parametrize("name", ["trace", "batches"])
def test_what_tempos_blocks_have_no_place_for_is_told(name: str) -> None:
    document = otlp_json.encode([span(1), span(2, flags=1)])
    _, report = read(json.dumps({name: document if name == "trace" else document["resourceSpans"]}).encode())
    assert [(entry["code"], entry["spans"]) for entry in report.fidelity] == [("flags-lost", 1)]


def test_an_answer_without_a_trace_says_what_the_back_end_said() -> None:
    with pytest.raises(UnreadableSource, match="line 1: error: expected a trace, found an answer that says 'No traces found'"):
        read(b'{"error":{"httpCode":404,"message":"No traces found"}}')


def test_what_grafana_downloads() -> None:
    """Numbers of JavaScript, kinds in words, old names, and in older versions events without a name."""
    document = otlp_json.encode([span(1, kind=3, status=2, events=(EventRecord(name="", time_ns=5),))])
    scoped = document["resourceSpans"][0].pop("scopeSpans")[0]
    one = scoped["spans"][0]
    one |= {"startTimeUnixNano": 1764000000000123400, "endTimeUnixNano": 1.7640000000001234e18, "kind": "SPAN_KIND_CLIENT"}
    old = {"instrumentationLibrary": {"name": "lib", "version": "1"}, "spans": scoped["spans"]}
    document["resourceSpans"][0] |= {"instrumentationLibrarySpans": [old]}
    records, report = read(json.dumps({"batches": document["resourceSpans"]}).encode())
    (record,) = records
    assert isinstance(record, SpanRecord)
    assert (record.kind, record.status, record.scope.name) == (3, 2, "lib")
    assert (record.start_ns, record.end_ns) == (1764000000000123400, int(1.7640000000001234e18))
    told = {entry["code"]: entry["spans"] for entry in report.fidelity}
    assert told == {"time-float": 1, "grafana-download": 1, "event-names-lost": 1}
    assert all(entry["advice"] for entry in report.fidelity)


# ---- Texts cut in the middle of a character ---------------------------------------------------------------------------------


def test_a_text_cut_within_a_character_does_not_cost_its_span() -> None:
    message = TracesData()
    group = message.resource_spans.add()
    group.resource.attributes.add(key="where").value.string_value = "Zürich"
    scoped = group.scope_spans.add()
    scoped.spans.append(Span(trace_id=bytes.fromhex(TRACE), span_id=b"\1" * 8, name="chat", start_time_unix_nano=5))
    scoped.spans[0].attributes.add(key="gen_ai.input.messages").value.string_value = "x" * 2046 + "€"
    inside = scoped.spans[0].attributes.add(key="map").value.kvlist_value.values.add(key="k")
    inside.value.string_value = "Köln"
    data = message.SerializeToString()
    # Tempo cuts at bytes: here one byte is taken for another of the same length, so that no length changes.
    data = data.replace("x€".encode(), b"x\xe2\x82\x41").replace("Zürich".encode(), b"Z\xc3\x41rich").replace("Köln".encode(), b"K\xc3Aln")
    records, report = read(data)
    (record,) = records
    assert record.attributes == {"gen_ai.input.messages": "x" * 2046 + "\ufffdA", "map": {"k": "K\ufffdAln"}}
    assert record.resource.attributes == {"where": "Z\ufffdArich"}
    assert {entry["code"]: entry["spans"] for entry in report.fidelity if entry["code"] == "text-replaced"} == {"text-replaced": 2}
    assert report.rejected == 0
