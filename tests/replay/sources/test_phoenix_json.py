"""Spans of Arize Phoenix as JSON: its REST API in both forms, and a span a line."""

import io
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.replay.inputs.report import ReadReport, UnreadableSource
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.sources import phoenix_json
from spanreplay.spans.record import STATUS_ERROR, SpanRecord
from support.size import FULL

FIXTURES = Path(__file__).parents[2] / "fixtures/phoenix"
TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN: dict[str, Any] = {
    "id": "U3Bhbjox",
    "name": "ask",
    "context": {"trace_id": TRACE, "span_id": "b7ad6b7169203331"},
    "span_kind": "LLM",
    "parent_id": "00f067aa0ba902b7",
    "start_time": "2026-11-29T17:02:28.348598+00:00",
    "end_time": "2026-11-29T17:02:29.348598+00:00",
    "status_code": "ERROR",
    "status_message": "no",
    "attributes": {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "hi",
        "llm.token_count.prompt": 3,
        "metadata.team.name": "demo",
        "metadata.n": 1,
        "tag.tags": ["a", "b"],
    },
    "events": [{"name": "exception", "timestamp": "2026-11-29T17:02:28.500000+00:00", "attributes": {"exception.type": "ValueError"}}],
}
FLAT = {
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "hi",
    "llm.token_count.prompt": 3,
    "tag.tags": ("a", "b"),
    "metadata": '{"team":{"name":"demo"},"n":1}',
    "openinference.span.kind": "LLM",
}
TREE = {
    "llm": {"input_messages": [{"message": {"role": "user", "content": "hi"}}], "token_count": {"prompt": 3}},
    "metadata": {"team": {"name": "demo"}, "n": 1},
    "tag": {"tags": ["a", "b"]},
    "openinference": {"span": {"kind": "LLM"}},
}


def spans_of(value: Any) -> tuple[list[SpanRecord], ReadReport]:
    opened = open_source("-", stdin=io.BytesIO((value if isinstance(value, str) else json.dumps(value)).encode()))
    assert opened.format == "phoenix-json"
    return [record for record in opened.records if isinstance(record, SpanRecord)], opened.report


@pytest.mark.parametrize(
    "form",
    [
        {"data": [SPAN], "next_cursor": None},
        [SPAN],
        SPAN,
        {**SPAN, "attributes": TREE, "conversation": None},
        json.dumps({**SPAN, "attributes": TREE}) + "\n" + json.dumps({**SPAN, "context": {**SPAN["context"], "span_id": "1"}}),
    ],
    ids=["page", "array", "one", "tree", "lines"],
)
def test_every_form(form: Any) -> None:
    found, report = spans_of(form)
    span = found[0]
    assert (span.trace_id, span.span_id, span.parent_span_id) == (TRACE, "b7ad6b7169203331", "00f067aa0ba902b7")
    assert (span.name, span.start_ns, span.end_ns) == ("ask", 1795971748348598000, 1795971749348598000)
    assert (span.status, span.status_message) == (STATUS_ERROR, "no")
    assert {key: value for key, value in span.attributes.items() if not key.startswith("phoenix.")} == FLAT
    assert [(event.name, event.time_ns, event.attributes) for event in span.events] == [
        ("exception", 1795971748500000000, {"exception.type": "ValueError"})
    ]
    assert [entry["code"] for entry in report.fidelity] == ["phoenix-kept", "time-us"]


def test_a_kind_that_is_none_is_not_invented() -> None:
    (span,), _ = spans_of([{**SPAN, "span_kind": "UNKNOWN"}])
    assert "openinference.span.kind" not in span.attributes


def test_otlp_spans_without_anything_around_them() -> None:
    row = {
        "trace_id": TRACE,
        "span_id": "b7ad6b7169203331",
        "start_time_unix_nano": 5,
        "end_time_unix_nano": 6,
        "name": "ask",
        "attributes": [{"key": "metadata.team", "value": {"string_value": "demo"}}],
        "status": {"code": 2},
    }
    (span,), report = spans_of({"data": [row], "next_cursor": None})
    assert (span.name, span.start_ns, span.attributes) == ("ask", 5, {"metadata": '{"team":"demo"}'})
    assert "phoenix-kept" in [entry["code"] for entry in report.fidelity]


def test_older_ids_become_ids_of_opentelemetry() -> None:
    uuid = "1b64098b-4ab7-43f6-afee-992304f198d8"
    (span,), _ = spans_of([{**SPAN, "context": {"trace_id": uuid, "span_id": uuid}}])
    assert (span.trace_id, span.span_id) == ("1b64098b4ab743f6afee992304f198d8", "1b64098b4ab743f6")
    assert span.attributes["phoenix.span_id"] == uuid


def test_what_is_no_span_is_left_out_with_its_place() -> None:
    found, report = spans_of({"data": [SPAN, {"span_kind": "LLM"}, 7]})
    assert len(found) == 1
    assert [(rejection.place, rejection.found) for rejection in report.rejections] == [
        ("line 1: data[1]", "one without trace_id, span_id, start_time"),
        ("line 1: data[2]", "a value of another kind (int)"),
    ]
    with pytest.raises(UnreadableSource):
        spans_of([{**SPAN, "start_time": "soon"}])


@pytest.mark.parametrize(
    "head",
    [
        b'{"name": "x", "context": {"trace_id": "0x1", "span_id": "0x2", "trace_state": "[]"}, "kind": "SpanKind.INTERNAL"}',
        b'{"data": {"spans": [{"trace_id": "x", "span_id": "y", "start_time_unix_nano": 1}]}, "info": {}}',
        b'[{"trace_id": "x", "span_id": "y", "span_kind": "LLM"}]',
    ],
)
def test_other_formats_are_left_to_others(head: bytes) -> None:
    assert not phoenix_json.handles(head)


def test_a_data_frame_as_json() -> None:
    flat = {f"context.{key}": value for key, value in SPAN["context"].items()} | {
        f"attributes.{key}": v for key, v in SPAN["attributes"].items()
    }
    row = {key: value for key, value in SPAN.items() if key not in ("context", "attributes")} | flat
    (span,), report = spans_of([{**row, "start_time": 1795971748348, "end_time": 1795971749348}])
    assert (span.trace_id, span.start_ns, span.end_ns) == (TRACE, 1795971748348000000, 1795971749348000000)
    assert span.attributes["metadata"] == FLAT["metadata"]
    assert "time-ms" in [entry["code"] for entry in report.fidelity]


def test_a_file_that_phoenix_wrote() -> None:
    (run,) = build_runs(open_source(str(FIXTURES / "trace.jsonl")).records)
    assert [step.kind for step in run.steps] == ["model_call", "tool_call", "tool_call", "model_call", "tool_call", "model_call"]
    assert run.session_id == "session-1"


# ---- properties --------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6).filter(lambda text: "." not in text)
LEAVES = st.booleans() | st.integers(-(2**53), 2**53) | TEXT | st.lists(TEXT, min_size=1, max_size=2)
TREES = st.recursive(
    st.dictionaries(TEXT, LEAVES, min_size=1, max_size=3),
    lambda inner: st.dictionaries(TEXT, inner | st.lists(inner, min_size=1, max_size=2), min_size=1, max_size=3),
    max_leaves=6,
)


def leaves(tree: Any, path: str = "") -> dict[str, Any]:
    """The definition of flattening that the source has to meet."""
    if isinstance(tree, dict):
        return {key: value for name, inner in tree.items() for key, value in leaves(inner, f"{path}.{name}" if path else name).items()}
    if isinstance(tree, list) and any(isinstance(item, dict) for item in tree):
        return {key: value for number, inner in enumerate(tree) for key, value in leaves(inner, f"{path}.{number}").items()}
    return {path: tree}


MOMENTS = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))


@settings(max_examples=300 if FULL else 25, deadline=None)
@given(st.lists(st.tuples(MOMENTS, TREES), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_attributes_and_times_come_back(drawn: list[tuple[datetime, Any]], chance: random.Random) -> None:
    rows = [
        {**SPAN, "context": {"trace_id": TRACE, "span_id": f"{number + 1:016x}"}, "start_time": moment.isoformat(), "attributes": tree}
        for number, (moment, tree) in enumerate(drawn)
    ]
    chance.shuffle(rows)
    back = {span.span_id: span for span in spans_of({"data": rows})[0]}
    for number, (moment, tree) in enumerate(drawn):
        span = back[f"{number + 1:016x}"]
        assert span.start_ns == (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
        wanted = {**leaves(tree), "openinference.span.kind": "LLM", "phoenix.id": "U3Bhbjox"}
        assert {key: list(value) if isinstance(value, tuple) else value for key, value in span.attributes.items()} == wanted


KEYS = st.sampled_from([*SPAN, "data", "trace_id", "span_id", "start_time_unix_nano", "metadata", "tool.parameters", "a.b", "llm"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([TRACE, "1", SPAN["start_time"], "[", "{}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=25,
)


@settings(max_examples=1000 if FULL else 60, deadline=None)
@given(ANYTHING)
def test_whatever_the_input_is_nothing_is_raised(value: Any) -> None:
    for document in ({"data": [value, {**SPAN, "attributes": value, "events": value}]}, value):
        list(phoenix_json.read(io.BytesIO(json.dumps(document).encode()), "f", ReadReport()))
