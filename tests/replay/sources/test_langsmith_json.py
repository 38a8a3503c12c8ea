"""Runs of LangSmith as its API and SDK give them."""

import io
import json
import random
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.replay.inputs.report import ReadReport, UnreadableSource
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.sources import langsmith_json
from spanreplay.spans.record import STATUS_ERROR, STATUS_OK, SpanRecord
from support.size import FULL

TRACE = "1b64098b-4ab7-43f6-afee-992304f198d8"
RUN = "809ed3a2-0172-4f4d-8a02-a64e9b7a0f8a"
RUN_ROW: dict[str, Any] = {
    "id": RUN,
    "trace_id": TRACE,
    "parent_run_id": TRACE,
    "dotted_order": f"20250611T140132598123Z{TRACE}.20250611T140132600000Z{RUN}",
    "name": "get_weather",
    "run_type": "tool",
    "start_time": "2025-06-11T14:01:32.600000",
    "end_time": "2025-06-11T14:01:33",
    "inputs": {"city": "Paris"},
    "outputs": {"output": {"celsius": 21}},
    "error": None,
    "session_id": "a27cf8a0-0000-4000-8000-000000000000",
    "tags": ["a", "b"],
    "extra": {
        "metadata": {"thread_id": "t1", "tool_call_id": "call_1", "list": [1]},
        "invocation_params": {},
        "runtime": {"sdk": "langsmith-py"},
    },
    "serialized": {"name": "get_weather", "kwargs": {}},
    "events": [{"name": "start", "time": "2025-06-11T14:01:32.600001"}, {"name": "new_token", "time": "x", "kwargs": {"token": "a"}}],
    "status": "success",
    "total_tokens": 0,
}


def spans_of(value: Any) -> tuple[list[SpanRecord], ReadReport]:
    opened = open_source("-", stdin=io.BytesIO((value if isinstance(value, str) else json.dumps(value)).encode()))
    assert opened.format == "langsmith-json"
    return [record for record in opened.records if isinstance(record, SpanRecord)], opened.report


@pytest.mark.parametrize(
    "form",
    [
        {"runs": [RUN_ROW], "cursors": {"next": None}},
        [RUN_ROW],
        RUN_ROW,
        json.dumps(RUN_ROW) + "\n",
        {**RUN_ROW, "inputs": json.dumps(RUN_ROW["inputs"]), "extra": json.dumps(RUN_ROW["extra"])},
    ],
    ids=["page", "array", "one", "line", "texts"],
)
def test_a_run_has_the_names_that_the_exporter_writes(form: Any) -> None:
    (span,), report = spans_of(form)
    assert (span.trace_id, span.span_id, span.parent_span_id) == (
        "1b64098b4ab743f6afee992304f198d8",
        "809ed3a201724f4d",
        "1b64098b4ab743f6",
    )
    assert (span.name, span.scope.name, span.status) == ("get_weather", "langsmith", STATUS_OK)
    assert (span.start_ns, span.end_ns) == (1749650492600000000, 1749650493000000000)
    assert {key: value for key, value in span.attributes.items() if not key.startswith("langsmith.run.")} == {
        "langsmith.span.kind": "tool",
        "langsmith.trace.name": "get_weather",
        "langsmith.trace.session_id": "a27cf8a0-0000-4000-8000-000000000000",
        "langsmith.metadata.thread_id": "t1",
        "langsmith.metadata.tool_call_id": "call_1",
        "langsmith.metadata.list": "[1]",
        "langsmith.span.tags": "a, b",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.serialized.name": "get_weather",
        "gen_ai.usage.total_tokens": 0,
        "gen_ai.prompt": '{"city": "Paris"}',
        "gen_ai.completion": '{"output": {"celsius": 21}}',
    }
    assert span.attributes["langsmith.run.id"] == RUN
    assert span.attributes["langsmith.run.extra.runtime"] == '{"sdk": "langsmith-py"}'
    assert [(event.name, event.time_ns, event.attributes) for event in span.events] == [
        ("start", 1749650492600001000, {}),
        ("new_token", 1749650492600000000, {"kwargs": '{"token": "a"}'}),
    ]
    assert [entry["code"] for entry in report.fidelity] == ["langsmith-kept", "time-us"]


def test_a_model_run_names_model_parameters_and_tools() -> None:
    extra = {
        "metadata": {"ls_model_name": "gpt-4o-mini", "ls_provider": "openai"},
        "invocation_params": {"model": "other", "temperature": 0.5, "tools": [{"name": "f"}]},
    }
    (span,), _ = spans_of([{**RUN_ROW, "run_type": "llm", "extra": extra, "prompt_tokens": 3, "completion_tokens": "4"}])
    assert {key: value for key, value in span.attributes.items() if key.startswith("gen_ai.") and "serialized" not in key} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.system": "openai",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.tool.definitions": '[{"name": "f"}]',
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.usage.total_tokens": 0,
        "gen_ai.prompt": '{"city": "Paris"}',
        "gen_ai.completion": '{"output": {"celsius": 21}}',
    }


def test_the_dotted_order_says_where_a_run_is_if_nothing_else_does() -> None:
    row = {key: value for key, value in RUN_ROW.items() if key not in ("trace_id", "parent_run_id")}
    (span,), _ = spans_of([row])
    assert (span.trace_id, span.parent_span_id) == ("1b64098b4ab743f6afee992304f198d8", "1b64098b4ab743f6")


def test_runs_inside_runs_are_read_and_the_last_listed_first_comes_last() -> None:
    root = {
        **RUN_ROW,
        "id": TRACE,
        "parent_run_id": None,
        "dotted_order": f"20250611T140132598123Z{TRACE}",
        "run_type": "chain",
        "name": "root",
    }
    nested, _ = spans_of([{**root, "child_runs": [{**RUN_ROW, "child_runs": []}]}])
    listed, _ = spans_of({"runs": [RUN_ROW, root]})
    assert [span.name for span in nested] == [span.name for span in listed] == ["root", "get_weather"]
    assert nested[1].parent_span_id == nested[0].span_id


def test_a_failed_run() -> None:
    (span,), _ = spans_of([{**RUN_ROW, "error": "ValueError('no')Traceback …", "outputs": None, "end_time": None}])
    assert (span.status, span.status_message, span.end_ns) == (STATUS_ERROR, "ValueError('no')Traceback …", None)
    assert "gen_ai.completion" not in span.attributes


def test_runs_of_one_moment_keep_spans_of_their_own() -> None:
    other = RUN[:-1] + "b"
    found, _ = spans_of([RUN_ROW, {**RUN_ROW, "id": other}, {**RUN_ROW, "id": TRACE[:-1] + "0", "parent_run_id": other}])
    assert len({span.span_id for span in found}) == 3
    assert found[2].parent_span_id == found[1].span_id


def test_what_was_left_out_of_a_list_is_told() -> None:
    row = {key: value for key, value in RUN_ROW.items() if key not in ("inputs", "outputs")}
    assert [entry["code"] for entry in spans_of([row])[1].fidelity] == ["langsmith-kept", "time-us", "io-left-out"]


def test_what_is_no_run_is_left_out_with_its_place() -> None:
    found, report = spans_of({"runs": [RUN_ROW, {"run_type": "llm"}, 7]})
    assert len(found) == 1
    assert {(rejection.place, rejection.found) for rejection in report.rejections} == {
        ("line 1: runs[1]", "one without id, start_time"),
        ("line 1: runs[2]", "a value of another kind (int)"),
    }
    with pytest.raises(UnreadableSource):
        spans_of([{**RUN_ROW, "start_time": "soon"}])


@pytest.mark.parametrize(
    "head", [b'[{"trace_id": "x", "parent_observation_id": null}]', b'{"runs": [{"id": "x", "steps": []}]}', b'{"run_type": 1}']
)
def test_other_formats_are_left_to_others(head: bytes) -> None:
    assert not langsmith_json.handles(head)


# ---- properties --------------------------------------------------------------------------------------------------

MOMENTS = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1))
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


@settings(max_examples=300 if FULL else 25, deadline=None)
@given(
    st.lists(st.tuples(st.uuids(version=4), MOMENTS, TEXT, st.integers(0, 9)), min_size=1, max_size=5, unique_by=lambda row: row[0]),
    st.randoms(use_true_random=False),
)
def test_the_tree_and_the_order_come_back(drawn: list[tuple[uuid.UUID, datetime, str, int]], chance: random.Random) -> None:
    top = drawn[0][0]
    rows, parents = [], {}
    for number, (ident, moment, name, pick) in enumerate(drawn):
        parent = drawn[pick % number][0] if number else None
        parents[ident] = parent
        row = {**RUN_ROW, "id": str(ident), "trace_id": str(top), "parent_run_id": str(parent) if parent else None, "name": name}
        rows.append({**row, "start_time": moment.isoformat(), "dotted_order": moment.strftime("%Y%m%dT%H%M%S%fZ") + str(ident)})
    chance.shuffle(rows)
    found, _ = spans_of({"runs": rows})
    assert [span.start_ns for span in found] == sorted(span.start_ns for span in found)
    ids = {ident: span.span_id for span in found for ident, *_ in drawn if span.attributes["langsmith.run.id"] == str(ident)}
    for span in found:
        ident = uuid.UUID(str(span.attributes["langsmith.run.id"]))
        parent = parents[ident]
        assert span.parent_span_id == (ids[parent] if parent else None)
        moment = next(moment for one, moment, *_ in drawn if one == ident)
        assert span.start_ns == (moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


KEYS = st.sampled_from([*RUN_ROW, "runs", "child_runs", "metadata", "invocation_params", "tools", "time", "data"])
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from([TRACE, RUN, RUN_ROW["start_time"], "{", "llm"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=25,
)


@settings(max_examples=1000 if FULL else 60, deadline=None)
@given(ANYTHING)
def test_whatever_the_input_is_nothing_is_raised(value: Any) -> None:
    rows = [{**RUN_ROW, name: value} for name in ("extra", "events", "inputs", "tags", "serialized", "dotted_order", "id", "error")]
    for document in ({"runs": [value, *rows]}, value):
        list(langsmith_json.read(io.BytesIO(json.dumps(document).encode()), "f", ReadReport()))
