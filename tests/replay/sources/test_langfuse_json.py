"""Exports of Langfuse, in every form that people hold."""

import io
import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from span_strategies import exact
from spanreplay.replay.inputs.report import ReadReport, UnreadableSource
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.sources import langfuse_json
from spanreplay.spans import otlp_json
from spanreplay.spans.record import STATUS_ERROR, STATUS_UNSET, SpanRecord
from support.size import FULL

MATERIAL = Path(__file__).parents[4] / "shared/material/traces/langfuse"
TRACE = "0af7651916cd43dd8448eb211c80319c"
OBSERVATION: dict[str, Any] = {
    "id": "b7ad6b7169203331",
    "traceId": TRACE,
    "projectId": "p1",
    "type": "GENERATION",
    "parentObservationId": "00f067aa0ba902b7",
    "startTime": "2025-06-11T14:01:32.598Z",
    "endTime": "2025-06-11T14:01:33.600Z",
    "name": "chat",
    "level": "DEFAULT",
    "statusMessage": None,
    "model": "gpt-4o-mini",
    "modelParameters": {"temperature": 0},
    "usageDetails": {"input": 3, "output": 4},
    "costDetails": {},
    "promptName": "greeting",
    "promptVersion": 7,
    "input": [{"role": "user", "content": "hi"}],
    "output": "hello",
    "metadata": {
        "attributes": {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": "3"},
        "resourceAttributes": {"service.name": "app"},
        "scope": {"name": "lib", "version": "1.2", "attributes": {"k": "v"}},
        "team": "demo",
        "nested": {"a": [1]},
    },
}


def spans_of(value: Any, *, lines: bool = False) -> tuple[list[SpanRecord], ReadReport]:
    text = "\n".join(map(json.dumps, value)) if lines else json.dumps(value)
    opened = open_source("-", stdin=io.BytesIO(text.encode()))
    assert opened.format == "langfuse-json"
    records = list(opened.records)
    assert all(isinstance(record, SpanRecord) for record in records)
    return [record for record in records if isinstance(record, SpanRecord)], opened.report


def snake(observation: dict[str, Any]) -> dict[str, Any]:
    names = {
        "traceId": "trace_id",
        "projectId": "project_id",
        "parentObservationId": "parent_observation_id",
        "model": "provided_model_name",
    }
    words = {key: "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key) for key in observation}
    return {names.get(key, words[key]): value for key, value in observation.items()}


def test_an_observation_has_the_names_that_the_sdk_writes() -> None:
    (span,), _ = spans_of({"trace": {"id": TRACE}, "observations": [OBSERVATION]})
    assert (span.trace_id, span.span_id, span.parent_span_id) == (TRACE, "b7ad6b7169203331", "00f067aa0ba902b7")
    assert (span.name, span.start_ns, span.end_ns) == ("chat", 1749650492598000000, 1749650493600000000)
    assert (span.scope.name, span.scope.version, dict(span.scope.attributes)) == ("lib", "1.2", {"k": "v"})
    assert span.resource.attributes == {"service.name": "app"}
    assert span.status == STATUS_UNSET
    assert span.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": "3",
        "langfuse.observation.type": "generation",
        "langfuse.observation.level": "DEFAULT",
        "langfuse.observation.model.name": "gpt-4o-mini",
        "langfuse.observation.model.parameters": '{"temperature":0}',
        "langfuse.observation.usage_details": '{"input":3,"output":4}',
        "langfuse.observation.prompt.name": "greeting",
        "langfuse.observation.prompt.version": 7,
        "langfuse.observation.input": '[{"role":"user","content":"hi"}]',
        "langfuse.observation.output": "hello",
        "langfuse.observation.project_id": "p1",
        "langfuse.observation.metadata.team": "demo",
        "langfuse.observation.metadata.nested": '{"a":[1]}',
    }


def flattened(observation: dict[str, Any]) -> dict[str, Any]:
    metadata = {
        "attributes.gen_ai.operation.name": "chat",
        "attributes.gen_ai.usage.input_tokens": "3",
        "resourceAttributes.service.name": "app",
        "scope.name": "lib",
        "scope.version": "1.2",
        "scope.attributes.k": "v",
        "team": "demo",
        "nested": {"a": [1]},
    }
    return {**observation, "metadata": metadata}


@pytest.mark.parametrize(
    "form",
    [
        {"trace": {"id": TRACE, "observations": [OBSERVATION]}, "observations": [OBSERVATION]},
        {"trace": {"id": TRACE, "name": None}, "observations": [{**OBSERVATION, "metadata": json.dumps(OBSERVATION["metadata"])}]},
        [{"trace": {"id": TRACE}, "observations": [OBSERVATION]}],
        {"id": TRACE, "timestamp": None, "htmlPath": "", "observations": [OBSERVATION]},
        {"data": [OBSERVATION], "meta": {"cursor": "x"}},
        {"data": [{"id": TRACE, "observations": [OBSERVATION]}], "meta": {}},
        [OBSERVATION],
        OBSERVATION,
        [snake(OBSERVATION)],
        [flattened(OBSERVATION)],
    ],
    ids=[
        "download",
        "metadata as text",
        "array",
        "api trace",
        "api list",
        "api traces",
        "array of observations",
        "one",
        "blob",
        "flattened",
    ],
)
def test_every_form_gives_the_same_span(form: Any) -> None:
    (expected,), _ = spans_of({"trace": {"id": TRACE}, "observations": [OBSERVATION]})
    (span,), report = spans_of(form)
    trace_told = {key for key in span.attributes if key.startswith("langfuse.trace.")}
    assert {**span.attributes} == {**expected.attributes, **{key: span.attributes[key] for key in trace_told}}
    assert (span.span_id, span.resource, span.scope, span.start_ns) == (
        expected.span_id,
        expected.resource,
        expected.scope,
        expected.start_ns,
    )
    assert report.rejected == 0


def test_lines_of_a_blob_storage_export_keep_their_microseconds() -> None:
    rows = [{**snake(OBSERVATION), "id": f"{number:016x}", "start_time": f"2025-06-11 14:01:32.59812{number}"} for number in (1, 2)]
    found, report = spans_of(rows, lines=True)
    assert [span.start_ns % 1_000_000 for span in found] == [121_000, 122_000]
    assert "time-ms" not in [entry["code"] for entry in report.fidelity]


def test_what_a_trace_says_goes_to_its_first_span_and_its_session_to_all() -> None:
    trace = {
        "id": TRACE,
        "name": "run",
        "userId": "u",
        "sessionId": "s",
        "tags": ["a"],
        "public": True,
        "release": "r1",
        "environment": "prod",
        "input": "q",
        "scores": [{"value": 1}],
        "metadata": {"team": "demo", "why": {"x": 1}, "resourceAttributes": {"service.name": "app"}},
    }
    root = {**OBSERVATION, "id": "00f067aa0ba902b7", "parentObservationId": None, "startTime": "2025-06-11T14:01:32.000Z"}
    found, _ = spans_of({"trace": trace, "observations": [OBSERVATION, root]})
    child, first = found
    assert {key: value for key, value in first.attributes.items() if key.startswith("langfuse.trace.")} == {
        "langfuse.trace.name": "run",
        "langfuse.trace.tags": ("a",),
        "langfuse.trace.public": True,
        "langfuse.trace.input": "q",
        "langfuse.trace.scores": '[{"value":1}]',
        "langfuse.trace.metadata.why": '{"x":1}',
    }
    assert first.attributes["langfuse.environment"] == "prod"
    assert not [key for key in child.attributes if key.startswith("langfuse.trace.")]
    for span in found:
        assert (span.attributes["session.id"], span.attributes["user.id"], span.attributes["langfuse.release"]) == ("s", "u", "r1")


def test_an_error_is_the_status_and_an_event_lasts_no_time() -> None:
    error = {**OBSERVATION, "level": "ERROR", "statusMessage": "no"}
    event = {**OBSERVATION, "id": "1", "type": "EVENT", "endTime": None}
    open_one = {**OBSERVATION, "id": "2", "endTime": None}
    failed, instant, unended = spans_of([error, event, open_one])[0]
    assert (failed.status, failed.status_message) == (STATUS_ERROR, "no")
    assert instant.end_ns == instant.start_ns
    assert unended.end_ns is None


def test_ids_of_older_sdks_become_ids_of_opentelemetry_and_stay_as_attributes() -> None:
    uuid = "1b64098b-4ab7-43f6-afee-992304f198d8"
    top = {**OBSERVATION, "traceId": "my trace", "id": uuid, "parentObservationId": None}
    child = {**OBSERVATION, "traceId": "my trace", "id": "my-step", "parentObservationId": uuid}
    first, second = spans_of([top, child])[0]
    assert first.trace_id == second.trace_id
    assert second.parent_span_id == first.span_id
    assert first.attributes["langfuse.observation.id"] == uuid
    assert second.attributes["langfuse.observation.trace_id"] == "my trace"
    assert second.attributes["langfuse.observation.parent_observation_id"] == uuid


def codes(value: Any) -> list[Any]:
    return [entry["code"] for entry in spans_of(value)[1].fidelity]


def test_what_a_list_was_asked_for_without_is_told() -> None:
    core = {key: OBSERVATION[key] for key in ("id", "traceId", "startTime", "endTime", "projectId", "parentObservationId", "type")}
    assert codes([core]) == ["langfuse-kept", "time-ms", "io-left-out", "metadata-left-out"]
    cut = {**OBSERVATION, "metadata": {"long": "x" * 200}}
    assert codes([cut]) == ["langfuse-kept", "time-ms", "metadata-cut"]
    assert codes([OBSERVATION]) == ["langfuse-kept", "time-ms"]


def test_what_is_no_observation_is_left_out_with_its_place() -> None:
    found, report = spans_of({"trace": {"id": TRACE}, "observations": [OBSERVATION, {"id": "x"}, 7, {**OBSERVATION, "startTime": "noon"}]})
    assert len(found) == 1
    assert [(rejection.place, rejection.found) for rejection in report.rejections] == [
        ("line 1: observations[1]", "one without start_time"),
        ("line 1: observations[2]", "a value of another kind (int)"),
        ("line 1: observations[3]", "one with start time 'noon' and id 'b7ad6b7169203331'"),
    ]


def test_traces_without_their_observations_are_refused_with_the_reason() -> None:
    listed = {"data": [{"id": TRACE, "timestamp": "2025", "projectId": "p", "public": False, "userId": None, "observations": ["a", "b"]}]}
    with pytest.raises(UnreadableSource) as caught:
        spans_of(listed)
    assert caught.value.found == "a trace without its observations"


@pytest.mark.parametrize(
    "head",
    [
        b'{"traceId": "x", "spanId": "y"}',
        b'{"data": [{"traceID": "x", "spans": []}]}',
        b'[{"trace_id": "x", "run_type": "llm", "parent_run_id": null}]',
        b'{"info": {"trace_id": "tr-1"}, "data": {"spans": []}}',
        b'{"trace": {"resourceSpans": []}}',
        b'{"id": "x", "timestamp": 1, "name": "n"}',
    ],
)
def test_other_formats_are_left_to_others(head: bytes) -> None:
    assert not langfuse_json.handles(head)


# ---- properties --------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
PLAIN = st.dictionaries(TEXT.filter(lambda name: "." not in name), TEXT, max_size=3)
EPOCH_MS = st.integers(1_600_000_000_000, 1_900_000_000_000)


@st.composite
def trees(draw: st.DrawFn) -> list[SpanRecord]:
    """The spans of one trace, as an exporter of OpenTelemetry had them: times to the millisecond, texts as attributes."""
    made: list[SpanRecord] = []
    for number in range(1, draw(st.integers(1, 5)) + 1):
        start = draw(EPOCH_MS)
        made.append(
            SpanRecord(
                trace_id=TRACE,
                span_id=f"{number:016x}",
                parent_span_id=draw(st.sampled_from([None, *(span.span_id for span in made)])),
                name=draw(TEXT),
                start_ns=start * 1_000_000,
                end_ns=(start + draw(st.integers(0, 1000))) * 1_000_000,
                attributes=draw(PLAIN),
            )
        )
    return made


def iso(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds // 1_000_000 / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def exported(span: SpanRecord) -> dict[str, Any]:
    return {
        "id": span.span_id,
        "traceId": span.trace_id,
        "type": "SPAN",
        "parentObservationId": span.parent_span_id,
        "name": span.name,
        "startTime": iso(span.start_ns),
        "endTime": iso(span.end_ns or 0),
        "input": None,
        "metadata": {"attributes": dict(span.attributes)},
    }


@settings(max_examples=300 if FULL else 25, deadline=None)
@given(trees(), st.randoms(use_true_random=False), st.sampled_from(["download", "list", "lines"]), st.booleans())
def test_spans_come_back_in_whatever_order_they_were_written(tree: list[SpanRecord], chance: random.Random, form: str, twice: bool) -> None:
    rows = [exported(span) for span in tree]
    chance.shuffle(rows)
    value: Any = {"trace": {"id": TRACE}, "observations": rows} if form == "download" else {"data": rows, "meta": {}}
    found, _ = spans_of(rows if form == "lines" else value, lines=form == "lines")
    if twice:  # out as OTLP and in again
        found = [record for record in otlp_json.decode(otlp_json.encode(found)) if isinstance(record, SpanRecord)]
    back = {span.span_id: span for span in found}
    assert len(back) == len(tree)
    for span in tree:
        read = back[span.span_id]
        assert (read.parent_span_id, read.name, read.start_ns, read.end_ns) == (span.parent_span_id, span.name, span.start_ns, span.end_ns)
        assert {key: read.attributes[key] for key in span.attributes} == span.attributes


KEYS = st.sampled_from(
    [*OBSERVATION, "trace", "observations", "data", "meta", "trace_id", "attributes", "scope", "usage", "public", "tags"]
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from([TRACE, "1", "2025-01-01T00:00:00Z", "{", "[]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=25,
)


@settings(max_examples=1000 if FULL else 60, deadline=None)
@given(ANYTHING)
def test_whatever_the_input_is_nothing_is_raised(value: Any) -> None:
    report = ReadReport()
    stream = io.BytesIO(json.dumps({"observations": [value, OBSERVATION], "trace": value}).encode())
    records = list(langfuse_json.read(stream, "f", report))
    assert len(records) + report.rejected >= 1


# ---- real files --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not MATERIAL.is_dir(), reason="the folder with the traces of others is not here")
@pytest.mark.parametrize("path", sorted(MATERIAL.glob("*.trace.json")), ids=lambda path: path.name)
def test_real_downloads_keep_every_span_and_survive_otlp(path: Path) -> None:
    given_rows = json.loads(path.read_text(encoding="utf-8"))["observations"]
    opened = open_source(str(path))
    found = list(opened.records)
    assert [record.span_id for record in found] == [row["id"] for row in given_rows]
    assert opened.report.rejected == 0
    again = otlp_json.decode(json.loads(json.dumps(otlp_json.encode(found))))
    assert [exact(record) for record in again] == [exact(record) for record in found]
    for record, row in zip(found, given_rows, strict=True):
        for name in ("input", "output"):
            if row[name] is not None:
                kept = record.attributes[f"langfuse.observation.{name}"]
                assert kept == (
                    row[name] if isinstance(row[name], str) else json.dumps(row[name], ensure_ascii=False, separators=(",", ":"))
                )
