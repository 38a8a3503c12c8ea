"""Grafana's data frames of a trace."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from spanreplay.replay.inputs.report import ReadReport, UnreadableSource
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.spans.record import KIND_CLIENT, STATUS_ERROR, STATUS_OK, Scope, SpanRecord

FIXTURES = Path(__file__).parents[2] / "fixtures/grafana_frames"
ROW: dict[str, Any] = {"traceID": "a1", "spanID": "b1", "operationName": "x", "startTime": 1_000.5, "duration": 1}


def read(document: Any) -> tuple[list[SpanRecord], ReadReport]:
    found = open_source("-", stdin=io.BytesIO(json.dumps(document).encode()))
    assert found.format == "grafana-frames"
    return [record for record in found.records if isinstance(record, SpanRecord)], found.report


def framed(*rows: dict[str, Any]) -> dict[str, Any]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {
        "schema": {"fields": [{"name": name} for name in names]},
        "data": {"values": [[row.get(name) for row in rows] for name in names]},
    }


def one(**more: Any) -> SpanRecord:
    ((span,), _) = read(framed({**ROW, **more}))
    return span


@pytest.mark.parametrize("name", ["answer.json", "panel.json", "frame.json"])
def test_a_trace_in_any_of_its_forms(name: str) -> None:
    (agent, chat, tool), report = read(json.loads((FIXTURES / name).read_text()))
    assert agent.parent_span_id is None
    assert chat.parent_span_id == tool.parent_span_id == agent.span_id
    assert (chat.start_ns, chat.end_ns) == (1_795_972_548_700_500_000, 1_795_972_549_300_750_000)
    assert (chat.kind, chat.status, chat.trace_state) == (KIND_CLIENT, STATUS_OK, "a=b")
    assert (chat.scope, chat.resource.attributes) == (Scope(name="weather", version="1"), {"service.name": "agent", "process.pid": 7})
    assert (chat.attributes["gen_ai.request.temperature"], chat.attributes["gen_ai.request.stream"]) == (0.5, True)
    ((event,), (link,)) = chat.events, chat.links
    assert (event.name, event.time_ns, event.attributes) == ("first token", 1_795_972_548_710_750_000, {"n": 1})
    assert (link.trace_id, link.span_id) == ("a" * 32, "b" * 16)
    assert (tool.status, tool.status_message) == (STATUS_ERROR, "no service")
    (run,) = build_runs([agent, chat, tool])
    assert [(step.kind, step.outcome) for step in run.steps] == [("model_call", "ok"), ("tool_call", "error")]
    lost = {entry["code"]: entry for entry in report.fidelity}
    assert "floating point" in str(lost["time-us"]["detail"])
    assert "/api/v2/traces/ID" in str(lost["time-us"]["advice"])


def test_frames_without_spans_and_what_is_no_frame_are_passed_over() -> None:
    other = {"schema": {"fields": [{"name": "time"}]}, "data": {"values": [[1, 2]]}}
    spans, _ = read({"results": {"A": {"frames": [framed(ROW), other, None, {"fields": [7, {"name": "spanID", "values": 3}]}]}}})
    assert len(spans) == 1


@pytest.mark.parametrize("code", ["ok", "OK", 1])
def test_status_in_either_form(code: Any) -> None:
    assert one(statusCode=code).status == STATUS_OK
    assert one(statusCode=[code]).status == one(statusCode=7).status == 0


@pytest.mark.parametrize(
    "fault",
    [{"startTime": None}, {"startTime": "7"}, {"startTime": -1}, {"duration": 1e300}, {"spanID": 7}, {"traceID": "x"}, {"startTime": True}],
)
def test_a_row_that_is_no_span_is_left_out_and_named(fault: dict[str, Any]) -> None:
    spans, report = read(framed(ROW, {**ROW, "spanID": "b2", **fault}))
    assert len(spans) == 1
    assert "rejected" in {entry["code"] for entry in report.fidelity}


@pytest.mark.parametrize("odd", [None, 7, "x", "[", [None, 7, {}, {"key": 7}], {"a": 1}])
def test_odd_columns_cost_only_themselves(odd: Any) -> None:
    span = one(tags=odd, serviceTags=odd, logs=odd, references=odd, kind=odd, statusMessage=odd, serviceName=odd)
    assert span.name == "x"


def test_columns_of_different_lengths() -> None:
    frame = framed(ROW, {**ROW, "spanID": "b2"})
    frame["data"]["values"][2] = ["x"]
    spans, _ = read(frame)
    assert [span.name for span in spans] == ["x", ""]


def test_a_file_of_nothing_else_is_refused() -> None:
    with pytest.raises(UnreadableSource):
        list(open_source("-", stdin=io.BytesIO(json.dumps(framed({**ROW, "startTime": None})).encode())).records)
