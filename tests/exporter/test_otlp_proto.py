"""OTLP protobuf, both ways."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData, ResourceMetrics, ScopeMetrics
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from span_strategies import any_int, any_text, batches, clean_text, exact, int64, logs, spans
from spanreplay.spans import otlp_json, otlp_proto
from spanreplay.spans._proto_writer import MAX_DEPTH
from spanreplay.spans.errors import FormatError, Problem
from spanreplay.spans.record import LogRecord, Record, Resource, Scope, SpanRecord
from support.size import FULL

TRACE = "5b8efff798038103d269b633813fc60c"
SPAN = "eee19b7ec3c1b174"
EXAMPLES = 400 if FULL else 15


def read(data: bytes) -> tuple[list[Record], list[Problem]]:
    problems: list[Problem] = []
    return list(otlp_proto.decode(data, "f", problems.append)), problems


def span(number: int = 1, **fields: Any) -> SpanRecord:
    return SpanRecord(trace_id=TRACE, span_id=f"{number:016x}", name=f"span {number}", start_ns=number, end_ns=number + 1, **fields)


@settings(max_examples=EXAMPLES, deadline=None)
@given(batches(spans(clean_text, int64)))
def test_any_spans_come_back_equal_and_in_order(records: list[SpanRecord]) -> None:
    problems: list[Problem] = []
    data = otlp_proto.encode(records, problems.append)
    assert exact(read(data)[0]) == exact(records)
    assert problems == []


@settings(max_examples=EXAMPLES, deadline=None)
@given(batches(logs(clean_text, int64).filter(lambda log: log.time_ns > 0)))
def test_any_logs_come_back_equal_and_in_order(records: list[LogRecord]) -> None:
    problems: list[Problem] = []
    data = otlp_proto.encode_logs(records, problems.append)
    assert exact(read(data)[0]) == exact(records)
    assert problems == []


@settings(max_examples=EXAMPLES, deadline=None)
@given(batches(spans(any_text, any_int)))
def test_what_protobuf_cannot_hold_never_stops_the_rest(records: list[SpanRecord]) -> None:
    back, problems = read(otlp_proto.encode(records))
    assert [record.span_id for record in back] == [record.span_id for record in records]
    assert problems == [] or {p.code for p in problems} == {"duplicate-key"}


def test_a_lone_surrogate_becomes_the_replacement_character_and_is_told() -> None:
    problems: list[Problem] = []
    record = span(attributes={"k": "a\ud800b", "pair": "\ud83d\ude00"}, status_message="\udfff")
    (back,) = otlp_proto.decode(otlp_proto.encode([record], problems.append))
    assert isinstance(back, SpanRecord)
    assert (back.attributes, back.status_message) == ({"k": "a\ufffdb", "pair": "\U0001f600"}, "\ufffd")
    assert [(p.code, p.where) for p in problems] == [
        ("text-replaced", f"span {record.span_id}.attributes.k"),
        ("text-replaced", f"span {record.span_id}.attributes.pair"),
        ("text-replaced", f"span {record.span_id}.status.message"),
    ]


def test_an_int_beyond_64_bits_becomes_text_and_is_told() -> None:
    problems: list[Problem] = []
    (back,) = otlp_proto.decode(otlp_proto.encode([span(attributes={"n": 2**63, "ok": -(2**63)})], problems.append))
    assert back.attributes == {"n": str(2**63), "ok": -(2**63)}
    assert [p.code for p in problems] == ["int-as-text"]


def test_nesting_no_reader_takes_becomes_json_text() -> None:
    def nested(levels: int) -> Any:
        value: Any = "bottom"
        for _ in range(levels):
            value = {"k": value}
        return value

    problems: list[Problem] = []
    data = otlp_proto.encode([span(attributes={"ok": nested(MAX_DEPTH), "deep": nested(MAX_DEPTH + 2)})], problems.append)
    TracesData.FromString(data)
    (back,), _ = read(data)
    value: Any = back.attributes["deep"]
    for _ in range(MAX_DEPTH):
        value = value["k"]
    assert back.attributes["ok"] == nested(MAX_DEPTH)
    assert json.loads(value) == {
        "kvlistValue": {"values": [{"key": "k", "value": {"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "bottom"}}]}}}]}
    }
    assert [p.code for p in problems] == ["depth-as-text"]


def test_a_span_whose_id_is_no_id_is_left_out_and_told() -> None:
    problems: list[Problem] = []
    bad = SpanRecord(trace_id="live-trace-1", span_id=SPAN)
    too_big = SpanRecord(trace_id=TRACE, span_id=SPAN, start_ns=2**64)
    back, _ = read(otlp_proto.encode([span(1), bad, too_big, span(2)], problems.append))
    assert [record.span_id for record in back] == [span(1).span_id, span(2).span_id]
    assert [(p.code, p.where) for p in problems] == [("rejected", f"span {SPAN} trace_id"), ("rejected", f"span {SPAN}")]


def test_the_sdk_exporter_writes_what_we_read() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("lib", "1.0", schema_url="https://example/schema", attributes={"s": 1})
    with tracer.start_as_current_span("parent", attributes={"list": (1, 2), "f": 0.5}) as parent:
        parent.add_event("e", {"a": True}, timestamp=7)
        with tracer.start_as_current_span("child"):
            pass
    finished = exporter.get_finished_spans()
    request = encode_spans(finished)
    assert isinstance(request, ExportTraceServiceRequest)
    (child, root), problems = read(request.SerializeToString())
    assert problems == []
    assert isinstance(root, SpanRecord)
    assert isinstance(child, SpanRecord)
    assert (child.parent_span_id, root.parent_span_id, child.trace_id) == (root.span_id, None, root.trace_id)
    assert exact(root.attributes) == exact({"list": (1, 2), "f": 0.5})
    assert (root.events[0].name, root.events[0].time_ns, root.events[0].attributes) == ("e", 7, {"a": True})
    assert (root.scope.name, root.scope.version, root.scope.schema_url, root.scope.attributes) == (
        "lib",
        "1.0",
        "https://example/schema",
        {"s": 1},
    )
    assert root.resource.attributes["telemetry.sdk.language"] == "python"
    assert (root.start_ns, root.end_ns) == (finished[1].start_time, finished[1].end_time)


def test_logs_are_told_from_spans_even_without_a_time() -> None:
    observed = LogRecord(time_ns=0, observed_ns=5, severity=9, body="x")
    assert read(otlp_proto.encode_logs([observed]))[0] == [observed]
    assert read(otlp_proto.encode_logs([LogRecord(time_ns=0, body="only a body", trace_id=TRACE, span_id=SPAN)]))[0] != []


def test_metrics_are_passed_over_and_told() -> None:
    metrics = MetricsData(resource_metrics=[ResourceMetrics(scope_metrics=[ScopeMetrics(metrics=[Metric(name="m", unit="1")])])])
    metrics.resource_metrics[0].scope_metrics[0].metrics[0].sum.data_points.add(as_int=1)
    records, problems = read(metrics.SerializeToString())
    assert records == []
    assert [p.code for p in problems] == ["signal-skipped"]


def test_field_1000_holds_the_scope_groups_of_old_files() -> None:
    data = otlp_proto.encode([span()])
    group = TracesData.FromString(data).resource_spans[0]
    scoped = group.scope_spans[0].SerializeToString()
    del group.scope_spans[:]
    old = group.SerializeToString() + b"\xc2\x3e" + bytes([len(scoped)]) + scoped
    assert read(b"\x0a" + bytes([len(old)]) + old)[0] == [span()]


def test_a_cut_message_keeps_its_whole_spans() -> None:
    records = [span(n, resource=Resource(attributes={"service.name": "s"}), scope=Scope(name="lib")) for n in range(1, 4)]
    data = otlp_proto.encode(records)
    back, problems = read(data[:-5])
    assert back == records[:2]
    assert [(p.code, p.where) for p in problems] == [("rejected", "f: resource_spans[0].scope_spans[0].spans[2]")]
    assert problems[0].found == "the end of the data"


def test_a_damaged_span_costs_only_itself() -> None:
    data = otlp_proto.encode([span(1), span(2), span(3)])
    records, problems = read(data.replace(b"\x2a\x06span 2", b"\x2a\x7fspan 2"))
    assert records == [span(1), span(3)]
    assert [(p.code, p.where) for p in problems] == [("rejected", "f: resource_spans[0].scope_spans[0].spans[1]")]


def test_a_text_that_is_no_utf8_does_not_cost_its_span() -> None:
    data = otlp_proto.encode([span(1), span(2), span(3)])
    records, problems = read(data.replace(b"span 2", b"span \xff"))
    assert records == [span(1), dataclasses.replace(span(2), name="span \ufffd"), span(3)]
    assert [(p.code, p.where, p.span_id) for p in problems] == [
        ("text-replaced", "f: resource_spans[0].scope_spans[0].spans[1]", f"{2:016x}")
    ]


def test_an_empty_id_is_left_out_with_its_place() -> None:
    data = TracesData()
    target = data.resource_spans.add().scope_spans.add().spans
    target.add(trace_id=bytes.fromhex(TRACE), span_id=b"", name="no id", start_time_unix_nano=1)
    target.add(trace_id=bytes(16), span_id=bytes.fromhex(SPAN), start_time_unix_nano=1)
    good = target.add(trace_id=bytes.fromhex(TRACE), span_id=bytes.fromhex(SPAN), start_time_unix_nano=1)
    good.links.add(trace_id=b"short")
    good.events.add(time_unix_nano=2**64 - 1)
    (kept,), problems = read(data.SerializeToString())
    assert isinstance(kept, SpanRecord)
    assert (kept.links, kept.events, kept.dropped_links, kept.dropped_events) == ((), (), 0, 0)
    assert [(p.code, p.where.rpartition("spans[")[2], p.found) for p in problems] == [
        ("rejected", "0].span_id", "an empty id"),
        ("rejected", "1].trace_id", "an id of zeros"),
        ("event-dropped", "2].events[0].time_unix_nano", f"the number {2**64 - 1}"),
        ("link-dropped", "2].links[0].trace_id", "5 bytes"),
    ]


@pytest.mark.parametrize("data", [b"hello world", b"\x08\x01", b"\xff" * 40, b"\x00"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError) as caught:
        read(data)
    assert caught.value.where.startswith("f: byte ")


def test_an_empty_message_holds_nothing() -> None:
    assert read(b"") == ([], [])


@settings(max_examples=EXAMPLES * 4, deadline=None)
@given(st.data())
def test_any_bytes_give_records_or_a_format_error(data: st.DataObject) -> None:
    whole = bytearray(otlp_proto.encode([span(1, attributes={"k": ("a", 1, {"b": b"c"})}), span(2, status=2)]))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        records = list(otlp_proto.decode(bytes(whole)))
    except FormatError:
        return
    otlp_json.encode(records)


@settings(max_examples=EXAMPLES * 2, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_give_records_or_a_format_error(data: bytes) -> None:
    try:
        list(otlp_proto.decode(data))
    except FormatError:
        return
