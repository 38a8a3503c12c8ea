"""OTLP JSON, both ways."""

import base64
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from span_strategies import any_int, any_text, batches, clean_text, exact, int64, logs, spans, values
from spanreplay.spans import otlp_json, otlp_proto
from spanreplay.spans._anyvalue import MAX_DEPTH
from spanreplay.spans._fields import hex_id
from spanreplay.spans.errors import FormatError, Problem
from spanreplay.spans.record import LogRecord, Record, Resource, Scope, SpanRecord
from support.size import FULL

TRACE = "5b8efff798038103d269b633813fc60c"
SPAN = "eee19b7ec3c1b174"
EXAMPLES = 400 if FULL else 15
SPEC_EXAMPLE = Path(__file__).parents[3] / "shared/material/interop/opentelemetry-proto/trace.json"


def document(**span: Any) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": TRACE, "spanId": SPAN, **span}]}]}]}


def read(value: object) -> tuple[list[Record], list[Problem]]:
    problems: list[Problem] = []
    return list(otlp_json.decode(value, "f", problems.append)), problems


def one(**span: Any) -> SpanRecord:
    """The one span, which was read without a problem."""
    records, problems = read(document(**span))
    assert problems == []
    assert isinstance(records[0], SpanRecord)
    return records[0]


def attribute(value: Any) -> Any:
    return one(attributes=[{"key": "k", "value": value}]).attributes["k"]


# ---- Round trips ---------------------------------------------------------------------------------------------------


@settings(max_examples=EXAMPLES, deadline=None)
@given(batches(spans()))
def test_any_spans_come_back_equal_and_in_order(records: list[SpanRecord]) -> None:
    text = json.dumps(otlp_json.encode(records))
    back, problems = read(json.loads(text))
    assert exact(back) == exact(records)
    assert problems == []


@settings(max_examples=EXAMPLES, deadline=None)
@given(batches(logs()), st.lists(spans(), max_size=1))
def test_any_logs_come_back_equal_after_the_spans(records: list[LogRecord], before: list[SpanRecord]) -> None:
    back, problems = read(json.loads(json.dumps(otlp_json.encode([*records, *before]))))
    assert exact(back) == exact([*before, *records])
    assert problems == []


@settings(max_examples=EXAMPLES, deadline=None)
@given(batches(spans(clean_text, int64)))
def test_json_and_protobuf_say_the_same(records: list[SpanRecord]) -> None:
    assert exact(list(otlp_proto.decode(otlp_proto.encode(records)))) == exact(read(otlp_json.encode(records))[0])


@settings(max_examples=EXAMPLES, deadline=None)
@given(values(any_text, any_int))
def test_any_value_survives_a_write_as_strict_json(value: Any) -> None:
    span = SpanRecord(trace_id=TRACE, span_id=SPAN, attributes={"k": value})
    text = json.dumps(otlp_json.encode([span]), allow_nan=False)
    (back,) = otlp_json.decode(json.loads(text))
    assert exact(back.attributes["k"]) == exact(value)


def test_written_form_is_that_of_the_specification() -> None:
    span = SpanRecord(
        trace_id=TRACE,
        span_id=SPAN,
        name="chat",
        kind=3,
        start_ns=1,
        end_ns=2**60,
        attributes={"i": 2**60, "d": 1.0, "n": math.nan, "none": None, "empty": (), "map": {}, "b": b"\x00\xff", "t": True},
    )
    assert otlp_json.encode([span]) == {
        "resourceSpans": [
            {
                "resource": {},
                "scopeSpans": [
                    {
                        "scope": {},
                        "spans": [
                            {
                                "traceId": TRACE,
                                "spanId": SPAN,
                                "name": "chat",
                                "kind": 3,
                                "startTimeUnixNano": "1",
                                "endTimeUnixNano": str(2**60),
                                "attributes": [
                                    {"key": "i", "value": {"intValue": str(2**60)}},
                                    {"key": "d", "value": {"doubleValue": 1.0}},
                                    {"key": "n", "value": {"doubleValue": "NaN"}},
                                    {"key": "none", "value": {}},
                                    {"key": "empty", "value": {"arrayValue": {}}},
                                    {"key": "map", "value": {"kvlistValue": {}}},
                                    {"key": "b", "value": {"bytesValue": "AP8="}},
                                    {"key": "t", "value": {"boolValue": True}},
                                ],
                            }
                        ],
                    }
                ],
            }
        ]
    }


def test_equal_neighbours_share_a_group_and_unequal_types_do_not() -> None:
    def span(number: int, value: Any, scope: str) -> SpanRecord:
        resource = Resource(attributes={"v": value})
        return SpanRecord(trace_id=TRACE, span_id=f"{number:016x}", resource=resource, scope=Scope(name=scope))

    records = [span(1, 1, "a"), span(2, 1, "a"), span(3, 1, "b"), span(4, True, "b"), span(5, 1.0, "b"), span(6, 1, "a")]
    groups = otlp_json.encode(records)["resourceSpans"]
    assert [[len(scoped["spans"]) for scoped in group["scopeSpans"]] for group in groups] == [[2, 1], [1], [1], [1]]


def test_unwritable_values_become_text_and_are_told() -> None:
    deep: Any = "bottom"
    for _ in range(MAX_DEPTH + 5):
        deep = (deep,)
    problems: list[Problem] = []
    span = SpanRecord(trace_id=TRACE, span_id=SPAN, attributes={"deep": deep, "huge": 10**5000})
    text = json.dumps(otlp_json.encode([span], problems.append))
    assert [(p.code, p.span_id) for p in problems] == [("depth-as-text", SPAN), ("int-as-text", SPAN)]
    assert list(otlp_json.decode(json.loads(text)))[0].attributes["huge"] == hex(10**5000)  # noqa: RUF015


# ---- What is accepted ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written",
    [
        TRACE,
        TRACE.upper(),
        f"0x{TRACE}",
        base64.b64encode(bytes.fromhex(TRACE)).decode(),
        base64.urlsafe_b64encode(bytes.fromhex(TRACE)).decode().rstrip("="),
        base64.b64encode(TRACE.encode()).decode(),
        base64.b64encode(TRACE.upper().encode()).decode(),
    ],
)
def test_every_writing_of_a_trace_id_is_the_same_id(written: str) -> None:
    assert one(traceId=written).trace_id == TRACE


@pytest.mark.parametrize(
    "written",
    [
        SPAN,
        SPAN.upper(),
        f"0x{SPAN}",
        base64.b64encode(bytes.fromhex(SPAN)).decode(),
        base64.b64encode(SPAN.encode()).decode(),
    ],
)
def test_every_writing_of_a_span_id_is_the_same_id(written: str) -> None:
    span = one(spanId=written, parentSpanId=written)
    assert (span.span_id, span.parent_span_id) == (SPAN, SPAN)


def test_short_trace_id_is_padded_on_the_left() -> None:
    assert one(traceId=SPAN).trace_id == "0" * 16 + SPAN
    assert one(traceId=base64.b64encode(SPAN.encode()).decode()).trace_id == "0" * 16 + SPAN


@pytest.mark.parametrize("parent", [None, "", "0" * 16, "AAAAAAAAAAA="])
def test_no_parent(parent: str | None) -> None:
    assert one(parentSpanId=parent).parent_span_id is None
    assert one().parent_span_id is None


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(3, 3), ("SPAN_KIND_CLIENT", 3), ("CLIENT", 3), ("client", 3), ("SpanKind.CLIENT", 3), ("3", 3), (99, 99), (None, 0)],
)
def test_kinds(kind: Any, expected: int) -> None:
    assert one(kind=kind).kind == expected


@pytest.mark.parametrize("code", [2, "STATUS_CODE_ERROR", "ERROR"])
def test_status(code: Any) -> None:
    span = one(status={"code": code, "message": "no"})
    assert (span.status, span.status_message) == (2, "no")


@pytest.mark.parametrize("time", [1700000000000000001, "1700000000000000001"])
def test_times(time: Any) -> None:
    span = one(startTimeUnixNano=time, endTimeUnixNano=time)
    assert (span.start_ns, span.end_ns) == (1700000000000000001, 1700000000000000001)


@pytest.mark.parametrize("end", [None, 0, "0", ""])
def test_open_span_has_no_end(end: Any) -> None:
    assert one(endTimeUnixNano=end).end_ns is None


def test_floating_point_time_is_kept_and_told() -> None:
    records, problems = read(document(startTimeUnixNano=1.7e18))
    assert isinstance(records[0], SpanRecord)
    assert records[0].start_ns == 1_700_000_000_000_000_000
    assert [(p.code, p.where, p.span_id) for p in problems] == [
        ("time-float", "f: resourceSpans[0].scopeSpans[0].spans[0].startTimeUnixNano", SPAN)
    ]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({}, None),
        (None, None),
        ({"stringValue": None}, None),
        ({"unheardOf": None}, None),
        ({"string_value": "a"}, "a"),
        ({"stringValue": ""}, ""),
        ({"boolValue": False}, False),
        ({"bool_value": "true"}, True),
        ({"intValue": "-5"}, -5),
        ({"int_value": 5}, 5),
        ({"intValue": str(2**70)}, 2**70),
        ({"intValue": 2**70}, 2**70),
        ({"intValue": 7.0}, 7),
        ({"doubleValue": 1}, 1.0),
        ({"double_value": "Infinity"}, math.inf),
        ({"doubleValue": "-Infinity"}, -math.inf),
        ({"doubleValue": "NaN"}, math.nan),
        ({"doubleValue": "1.5"}, 1.5),
        ({"bytesValue": "-_8="}, b"\xfb\xff"),
        ({"bytes_value": ""}, b""),
        ({"arrayValue": {}}, ()),
        ({"array_value": {"values": [{"intValue": "1"}, {}]}}, (1, None)),
        ({"kvlistValue": {}}, {}),
        ({"kvlist_value": {"values": [{"key": "a", "value": {"arrayValue": {"values": []}}}]}}, {"a": ()}),
    ],
)
def test_attribute_values(written: Any, expected: Any) -> None:
    assert exact(attribute(written)) == exact(expected)


SNAKE = {
    "trace_id": TRACE,
    "span_id": SPAN,
    "parent_span_id": "1" * 16,
    "start_time_unix_nano": "5",
    "end_time_unix_nano": "6",
    "dropped_attributes_count": 1,
    "trace_state": "a=b",
    "events": [{"time_unix_nano": "7", "name": "e", "dropped_attributes_count": 2}],
    "links": [{"trace_id": TRACE, "span_id": SPAN, "trace_state": "c=d"}],
}


@pytest.mark.parametrize(
    "wrap",
    [
        lambda spans: {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]},
        lambda spans: {"resource_spans": [{"scope_spans": [{"spans": spans}]}]},
        lambda spans: {"batches": [{"instrumentationLibrarySpans": [{"spans": spans}]}]},
        lambda spans: {"batches": [{"instrumentation_library_spans": [{"spans": spans}]}]},
        lambda spans: {"trace": {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}},
        lambda spans: {"result": {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}},
        lambda spans: {"data": [{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}]},
        lambda spans: [{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}],
        lambda spans: [{"resource": {}, "scopeSpans": [{"spans": spans}]}],
        lambda spans: {"resourceSpans": {"scopeSpans": {"spans": spans}}, "unheardOf": 1},
    ],
)
def test_containers_and_snake_case(wrap: Any) -> None:
    records, problems = read(wrap([SNAKE]))
    assert problems == []
    (span,) = records
    assert isinstance(span, SpanRecord)
    assert (span.trace_id, span.parent_span_id, span.start_ns, span.end_ns) == (TRACE, "1" * 16, 5, 6)
    assert (span.dropped_attributes, span.trace_state) == (1, "a=b")
    assert (span.events[0].time_ns, span.events[0].dropped_attributes, span.links[0].trace_state) == (7, 2, "c=d")


def test_instrumentation_library_is_the_scope() -> None:
    library = {"instrumentationLibrary": {"name": "lib", "version": "1"}, "spans": [{"traceId": TRACE, "spanId": SPAN}]}
    (span,), _ = read({"resourceSpans": [{"instrumentationLibrarySpans": [library], "schemaUrl": "s"}]})
    assert (span.scope.name, span.scope.version, span.resource.schema_url) == ("lib", "1", "s")


def test_log_records() -> None:
    log = {
        "timeUnixNano": "3",
        "observedTimeUnixNano": 4,
        "severityNumber": "SEVERITY_NUMBER_ERROR2",
        "severityText": "ERR",
        "eventName": "gen_ai.client.inference.operation.details",
        "body": {"kvlistValue": {"values": [{"key": "a", "value": {"intValue": "1"}}]}},
        "traceId": TRACE.upper(),
        "spanId": "",
    }
    (record,), problems = read({"resourceLogs": [{"scopeLogs": [{"logRecords": [log]}]}]})
    assert problems == []
    assert isinstance(record, LogRecord)
    assert (record.time_ns, record.observed_ns, record.severity, record.severity_text) == (3, 4, 18, "ERR")
    assert (record.trace_id, record.span_id, record.body) == (TRACE, None, {"a": 1})


def test_lone_surrogates_survive() -> None:
    span = SpanRecord(trace_id=TRACE, span_id=SPAN, attributes={"\ud800": "a\udfffb"})
    assert list(otlp_json.decode(json.loads(json.dumps(otlp_json.encode([span]))))) == [span]


def test_key_given_twice_keeps_the_last_value_and_is_told() -> None:
    pairs = [{"key": "k", "value": {"intValue": "1"}}, {"key": "k", "value": {"intValue": "2"}}]
    records, problems = read(document(attributes=pairs))
    assert records[0].attributes == {"k": 2}
    assert [(p.code, p.where) for p in problems] == [("duplicate-key", "f: resourceSpans[0].scopeSpans[0].spans[0].attributes[1].key")]


def test_metrics_are_passed_over_and_told() -> None:
    records, problems = read({"resourceMetrics": [{}], **document()})
    assert len(records) == 1
    assert [p.code for p in problems] == ["signal-skipped"]


def test_example_of_the_specification() -> None:
    if not SPEC_EXAMPLE.exists():
        pytest.skip("needs ../shared/material, which is not part of the project")
    (span,), problems = read(json.loads(SPEC_EXAMPLE.read_bytes()))
    assert problems == []
    assert isinstance(span, SpanRecord)
    assert (span.trace_id, span.span_id, span.parent_span_id) == (TRACE, SPAN, "eee19b7ec3c1b173")
    assert (span.kind, span.start_ns, span.scope.attributes) == (2, 1544712660000000000, {"my.scope.attribute": "some scope attribute"})


# ---- What is malformed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("span", "field", "expected", "found"),
    [
        ({"traceId": ""}, ".traceId", "an id of 32 hex digits", "an empty id"),
        ({"traceId": None}, ".traceId", "an id of 32 hex digits", "an empty id"),
        ({"traceId": "0" * 32}, ".traceId", "an id of 32 hex digits", "an id of zeros"),
        ({"traceId": "live-trace-1"}, ".traceId", "an id of 32 hex digits", "the text 'live-trace-1'"),
        ({"traceId": 7}, ".traceId", "an id of 32 hex digits", "the number 7"),
        ({"spanId": ""}, ".spanId", "an id of 16 hex digits", "an empty id"),
        ({"spanId": "ab cdef0123456789"}, ".spanId", "an id of 16 hex digits", "the text 'ab cdef0123456789'"),
        ({"parentSpanId": "x"}, ".parentSpanId", "an id of 16 hex digits", "the text 'x'"),
        ({"startTimeUnixNano": "soon"}, ".startTimeUnixNano", "nanoseconds since 1970", "the text 'soon'"),
        ({"startTimeUnixNano": -1}, ".startTimeUnixNano", "nanoseconds since 1970", "the number -1"),
        ({"endTimeUnixNano": str(2**64)}, ".endTimeUnixNano", "nanoseconds since 1970", f"the text '{2**64}'"),
        ({"endTimeUnixNano": math.nan}, ".endTimeUnixNano", "nanoseconds since 1970", "the number nan"),
        ({"kind": "SIDEWAYS"}, ".kind", "a number, or a name such as SPAN_KIND_CLIENT", "the text 'SIDEWAYS'"),
        ({"kind": True}, ".kind", "a number, or a name such as SPAN_KIND_CLIENT", "true"),
        ({"status": 2}, ".status", "an object", "the number 2"),
        ({"attributes": {"a": 1}}, ".attributes", "an array of attributes", "an object with a"),
        ({"events": "none"}, ".events", "an array", "the text 'none'"),
        ({"name": 5}, ".name", "a text", "the number 5"),
        ({"flags": -1}, ".flags", "a number of 32 bits", "the number -1"),
    ],
)
def test_malformed_span_is_left_out_with_its_place(span: dict[str, Any], field: str, expected: str, found: str) -> None:
    good = {"traceId": TRACE, "spanId": SPAN}
    records, problems = read({"resourceSpans": [{}, {"scopeSpans": [{"spans": [good, {**good, **span}, good]}]}]})
    assert len(records) == 2
    (problem,) = problems
    assert (problem.code, problem.where) == ("rejected", f"f: resourceSpans[1].scopeSpans[0].spans[1]{field}")
    assert (problem.expected, problem.found) == (expected, found)


@pytest.mark.parametrize(
    ("pair", "place"),
    [
        (5, ""),
        ({"key": 5, "value": {}}, ".key"),
        ({"key": "k", "value": "bare"}, ".value"),
        ({"key": "k", "value": {"stringValue": 5}}, ".value.stringValue"),
        ({"key": "k", "value": {"intValue": "1_000"}}, ".value.intValue"),
        ({"key": "k", "value": {"intValue": "9" * 5000}}, ".value.intValue"),
        ({"key": "k", "value": {"intValue": True}}, ".value.intValue"),
        ({"key": "k", "value": {"boolValue": 1}}, ".value.boolValue"),
        ({"key": "k", "value": {"doubleValue": "x"}}, ".value.doubleValue"),
        ({"key": "k", "value": {"doubleValue": 10**400}}, ".value.doubleValue"),
        ({"key": "k", "value": {"bytesValue": "\ud800"}}, ".value.bytesValue"),
        ({"key": "k", "value": {"arrayValue": {"values": [{}, {"intValue": []}]}}}, ".value.arrayValue.values[1].intValue"),
        ({"key": "k", "value": {"kvlistValue": {"values": [{"key": "a", "value": 1}]}}}, ".value.kvlistValue.values[0].value"),
        ({"key": "k", "value": {"unheardOf": 1}}, ".value"),
    ],
)
def test_malformed_attribute_is_left_out_and_told_by_name(pair: Any, place: str) -> None:
    records, problems = read(document(attributes=[{"key": "a", "value": {"stringValue": "b"}}, pair], droppedAttributesCount=2))
    (span,) = records
    assert (span.attributes, span.dropped_attributes) == ({"a": "b"}, 2), "the count is of what was dropped where it was recorded"
    named = isinstance(pair, dict) and isinstance(pair.get("key"), str)
    assert problems[0].found.endswith(" in attribute 'k'") == named
    assert [(p.code, p.where) for p in problems] == [
        ("attribute-dropped", f"f: resourceSpans[0].scopeSpans[0].spans[0].attributes[1]{place}")
    ]


def test_malformed_event_or_link_is_left_out_and_told() -> None:
    link = {"traceId": TRACE, "spanId": SPAN}
    records, problems = read(document(events=[{"name": "e"}, {"timeUnixNano": "x"}], links=[{**link, "spanId": ""}, link]))
    (span,) = records
    assert isinstance(span, SpanRecord)
    assert ([e.name for e in span.events], span.dropped_events, len(span.links), span.dropped_links) == (["e"], 0, 1, 0)
    assert [p.code for p in problems] == ["event-dropped", "link-dropped"]
    assert problems[0].where.endswith("spans[0].events[1].timeUnixNano")


def test_deep_nesting_is_left_out() -> None:
    value: Any = {"stringValue": "bottom"}
    for _ in range(MAX_DEPTH + 1):
        value = {"arrayValue": {"values": [value]}}
    records, problems = read(document(attributes=[{"key": "k", "value": value}]))
    assert records[0].attributes == {}
    assert problems[0].expected == f"at most {MAX_DEPTH} levels of nesting"


def test_malformed_resource_costs_no_span() -> None:
    group = {"resource": {"attributes": 5}, "scopeSpans": [{"scope": 7, "spans": [{"traceId": TRACE, "spanId": SPAN}]}]}
    records, problems = read({"resourceSpans": [group]})
    assert (len(records), records[0].resource, records[0].scope) == (1, Resource(), Scope())
    assert [p.where for p in problems] == ["f: resourceSpans[0].resource.attributes", "f: resourceSpans[0].scopeSpans[0].scope"]


@pytest.mark.parametrize("value", [5, None, "x", {"data": 5}, {"spans": []}, {"trace": {"id": 1}}])
def test_other_documents_are_refused(value: object) -> None:
    with pytest.raises(FormatError) as caught:
        read(value)
    assert caught.value.where.startswith("f")
    assert caught.value.expected == "an object with resourceSpans or resourceLogs"


def test_other_document_in_an_array_is_left_out() -> None:
    records, problems = read([{"spans": []}, document()])
    assert len(records) == 1
    assert (problems[0].code, problems[0].where) == ("rejected", "f: [0]")


def test_empty_export_is_no_error() -> None:
    assert read({}) == ([], [])
    assert read({"resourceSpans": None}) == ([], [])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.sampled_from([TRACE, SPAN]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "resourceSpans resourceLogs resource scope scopeSpans scopeLogs spans logRecords traceId spanId attributes key value "
                "stringValue intValue doubleValue arrayValue kvlistValue values events links status body trace data".split()
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=EXAMPLES * 3, deadline=None)
@given(JSON)
def test_any_json_gives_records_or_a_format_error(value: Any) -> None:
    for wrapped in (value, document(**value) if isinstance(value, dict) else value):
        try:
            for record in otlp_json.decode(wrapped, "f"):
                otlp_json.encode([record])
        except FormatError:
            continue


@pytest.mark.parametrize("first", range(0, 256, 5))
def test_an_id_in_base64_is_read_whatever_it_begins_with(first: int) -> None:
    """``0x`` is the beginning of hex, and of one in 4096 ids in base64."""
    for size in (8, 16):
        raw = bytes([0xD3, 0x10 | first % 16, first, *range(1, size - 2)])
        text = base64.b64encode(raw).decode()
        assert hex_id(text, size, "id") == raw.hex()
    assert hex_id("0xab", 8, "id") == "00000000000000ab"
