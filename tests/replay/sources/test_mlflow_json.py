"""Traces of MLflow, as its current and its older versions write them."""

import base64
import io
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from span_strategies import exact
from spanreplay.replay.inputs.report import ReadReport, UnreadableSource
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.sources import mlflow_json
from spanreplay.spans.record import STATUS_ERROR, STATUS_OK, STATUS_UNSET, EventRecord, LinkRecord, SpanRecord
from support.size import FULL

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
PARENT = "00f067aa0ba902b7"
ATTRIBUTES = {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": '{"city": "Paris"}', "mlflow.traceRequestId": f'"tr-{TRACE}"'}
INFO: dict[str, Any] = {
    "trace_id": f"tr-{TRACE}",
    "state": "OK",
    "execution_duration_ms": 7,
    "trace_location": {"type": "MLFLOW_EXPERIMENT"},
    "trace_metadata": {"mlflow.trace.session": "s", "mlflow.trace.user": "u", "mlflow.source.name": "app.py"},
    "tags": {"team": "demo"},
    "assessments": [],
}
EVENT = {"name": "exception", "time_unix_nano": 12, "attributes": {"exception.type": "ValueError"}}
NEW: dict[str, Any] = {
    "trace_id": base64.b64encode(bytes.fromhex(TRACE)).decode(),
    "span_id": base64.b64encode(bytes.fromhex(SPAN)).decode(),
    "parent_span_id": base64.b64encode(bytes.fromhex(PARENT)).decode(),
    "name": "get_weather",
    "start_time_unix_nano": 1749650492598123456,
    "end_time_unix_nano": 1749650493598123457,
    "events": [EVENT],
    "status": {"code": "STATUS_CODE_ERROR", "message": "no"},
    "attributes": ATTRIBUTES,
    "links": [{"trace_id": f"tr-{TRACE}", "span_id": PARENT, "attributes": {"why": "retry"}}],
}
V350 = {**NEW, "trace_id": f"tr-{TRACE}", "span_id": SPAN, "parent_span_id": PARENT, "status": {"code": "ERROR", "message": "no"}}
V2: dict[str, Any] = {
    "name": "get_weather",
    "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{SPAN}"},
    "parent_id": f"0x{PARENT}",
    "start_time": 1749650492598123456,
    "end_time": 1749650493598123457,
    "status_code": "ERROR",
    "status_message": "no",
    "attributes": ATTRIBUTES,
    "events": [{**EVENT, "timestamp": 12}],
    "links": NEW["links"],
}
EXPECTED = SpanRecord(
    trace_id=TRACE,
    span_id=SPAN,
    parent_span_id=PARENT,
    name="get_weather",
    start_ns=1749650492598123456,
    end_ns=1749650493598123457,
    status=STATUS_ERROR,
    status_message="no",
    attributes=ATTRIBUTES,
    events=(EventRecord(name="exception", time_ns=12, attributes={"exception.type": "ValueError"}),),
    links=(LinkRecord(trace_id=TRACE, span_id=PARENT, attributes={"why": "retry"}),),
)


def spans_of(value: Any) -> tuple[list[SpanRecord], ReadReport]:
    opened = open_source("-", stdin=io.BytesIO((value if isinstance(value, str) else json.dumps(value)).encode()))
    assert opened.format == "mlflow-json"
    return [record for record in opened.records if isinstance(record, SpanRecord)], opened.report


def trace(*spans: Any, **info: Any) -> dict[str, Any]:
    return {"info": {**INFO, **info}, "data": {"spans": list(spans)}}


@pytest.mark.parametrize("span", [NEW, V350, V2], ids=["base64", "3.5.0", "2.x"])
def test_a_span_of_every_version(span: dict[str, Any]) -> None:
    (found,), report = spans_of(trace(span))
    assert found == EXPECTED
    assert [entry["code"] for entry in report.fidelity] == ["mlflow-kept"]


@pytest.mark.parametrize(
    "form",
    [
        trace(NEW),
        [trace(NEW)],
        {"traces": [trace(NEW)], "next_page_token": None},
        {"spans": [NEW]},
        json.dumps(trace(NEW)) + "\n" + json.dumps(trace(NEW)).replace("\n", ""),
        json.dumps(trace(NEW), indent=2),
    ],
    ids=["trace", "array", "search", "artifact", "lines", "pretty"],
)
def test_every_form(form: Any) -> None:
    found, _ = spans_of(form)
    assert found
    assert all(span == EXPECTED for span in found)


def test_what_a_trace_says_goes_to_its_root_span() -> None:
    root = {**NEW, "parent_span_id": None, "span_id": NEW["parent_span_id"]}
    found, _ = spans_of(trace(NEW, root))
    assert found[0] == EXPECTED
    assert {key: value for key, value in found[1].attributes.items() if key not in ATTRIBUTES} == {
        "session.id": "s",
        "user.id": "u",
        "mlflow.traceTag.team": "demo",
        "mlflow.traceMetadata.mlflow.source.name": "app.py",
        "mlflow.traceInfo.trace_id": f"tr-{TRACE}",
        "mlflow.traceInfo.state": "OK",
        "mlflow.traceInfo.execution_duration_ms": 7,
        "mlflow.traceInfo.trace_location": '{"type":"MLFLOW_EXPERIMENT"}',
    }


def test_ids_within_a_location_of_databricks() -> None:
    (found,), _ = spans_of(trace({**V350, "trace_id": f"trace:/catalog.schema/{TRACE}"}))
    assert found.trace_id == TRACE


def test_spans_that_cannot_be_read_and_traces_without_spans_are_told() -> None:
    found, report = spans_of([trace(NEW, {"name": "x"}, 7), trace()])
    assert len(found) == 1
    assert [(rejection.place, rejection.found[:20]) for rejection in report.rejections] == [
        ("line 1: [0]: spans[1]", '{"name": "x"} …'),
        ("line 1: [0]: spans[2]", "7 …"),
        ("line 1: [1]", "one without; search "),
    ]
    with pytest.raises(UnreadableSource):
        spans_of([trace()])


@pytest.mark.parametrize(
    "head",
    [
        b'{"data": {"spans": []}}',
        b'{"data": [{"traceID": "x", "spans": [{"spanID": "y"}], "processes": {}}]}',
        b'{"spans": [{"name": "x", "attributes": {"gen_ai.system": "y"}}]}',
        b'{"info": {}, "data": []}',
    ],
)
def test_other_formats_are_left_to_others(head: bytes) -> None:
    assert not mlflow_json.handles(head)


# ---- properties --------------------------------------------------------------------------------------------------

IDS = st.binary(min_size=8, max_size=8).filter(any)
NS = st.integers(1, 2**62)
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)


@st.composite
def written(draw: st.DrawFn) -> tuple[SpanRecord, dict[str, Any]]:
    """A span, and what MLflow writes of it."""
    span, parent = draw(IDS), draw(st.none() | IDS)
    start, end = draw(NS), draw(st.none() | NS)
    status = draw(st.sampled_from([STATUS_UNSET, STATUS_OK, STATUS_ERROR]))
    attributes = {name: json.dumps(value) for name, value in draw(st.dictionaries(TEXT, TEXT | st.integers(), max_size=3)).items()}
    record = SpanRecord(
        trace_id=TRACE,
        span_id=span.hex(),
        parent_span_id=parent.hex() if parent else None,
        name=draw(TEXT),
        start_ns=start,
        end_ns=end,
        status=status,
        status_message=draw(TEXT),
        attributes=attributes,
    )
    row = {
        "trace_id": NEW["trace_id"],
        "span_id": base64.b64encode(span).decode(),
        "parent_span_id": base64.b64encode(parent).decode() if parent else None,
        "name": record.name,
        "start_time_unix_nano": start,
        "end_time_unix_nano": end,
        "status": {"code": ["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"][status], "message": record.status_message},
        "attributes": attributes,
        "events": [],
        "links": [],
    }
    return record, row


@settings(max_examples=300 if FULL else 25, deadline=None)
@given(st.lists(written(), min_size=1, max_size=4, unique_by=lambda pair: pair[0].span_id), st.randoms(use_true_random=False))
def test_spans_come_back_whole(pairs: list[tuple[SpanRecord, dict[str, Any]]], chance: random.Random) -> None:
    rows = [row for _, row in pairs]
    chance.shuffle(rows)
    found, _ = spans_of({"info": {"trace_id": f"tr-{TRACE}"}, "data": {"spans": rows}})
    told = {"mlflow.traceInfo.trace_id": f"tr-{TRACE}"}
    back = {span.span_id: span for span in found}
    for record, _ in pairs:
        read = back[record.span_id]
        wanted = {**told, **record.attributes} if record.parent_span_id is None else record.attributes
        assert read.attributes == wanted
        assert exact(read)[1:8] == exact(record)[1:8]


KEYS = st.sampled_from([*NEW, *V2, "info", "data", "spans", "traces", "tags", "trace_metadata", "code", "message", "time_unix_nano"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from([TRACE, SPAN, "tr-", "", "{}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=25,
)


@settings(max_examples=1000 if FULL else 60, deadline=None)
@given(ANYTHING)
def test_whatever_the_input_is_nothing_is_raised(value: Any) -> None:
    report = ReadReport()
    for document in ({"info": value, "data": {"spans": [value, NEW]}}, {"info": INFO, "data": value}, value):
        list(mlflow_json.read(io.BytesIO(json.dumps(document).encode()), "f", report))
