"""Zipkin's JSON: what exporters of OpenTelemetry put into it, and what Zipkin has of its own."""

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plain_spans import plain_spans
from span_strategies import exact
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.sources import zipkin_json
from spanreplay.spans.record import LinkRecord, Resource, Scope, SpanRecord
from support.size import FULL

FIXTURES = Path(__file__).parents[2] / "fixtures/zipkin_json"
TRACE = "81a9c2b7d4e8f0031122334455667788"


def read(document: Any) -> tuple[list[SpanRecord], ReadReport]:
    found = open_source("-", stdin=io.BytesIO(json.dumps(document).encode()))
    assert found.format == "zipkin-json"
    return [record for record in found.records if isinstance(record, SpanRecord)], found.report


def read_file(name: str) -> tuple[list[SpanRecord], ReadReport]:
    return read(json.loads((FIXTURES / name).read_text()))


def one(**fields: Any) -> SpanRecord:
    ((record,), _) = read([{"traceId": TRACE, "id": "b1", "timestamp": 5, "duration": 2, **fields}])
    return record


def codes(report: ReadReport) -> dict[Any, Any]:
    return {entry["code"]: entry["spans"] for entry in report.fidelity}


@pytest.mark.parametrize(
    ("head", "is_it"),
    [
        (b'[{"traceId": "a", "id": "b", "name": "x", "timestamp": 1, "duration": 2', True),
        (b'[[{"traceId": "a", "id": "b", "localEndpoint": {"serviceName": "x"}', True),
        (b'[{"traceId": "a", "id": "b", "timestamp": 1, "tags": {"k": "v"}}', True),
        (b'{"traceId": "a", "id": "b", "timestamp": 1, "duration": 2}\n', True),
        (b'[{"traceId": "a", "id": "b"}]', False),
        (b'[{"id": "b", "traceId": "a", "type": "SPAN", "name": "x", "startTime": "2025", "duration": 2', False),
        (b'[{"id": "b", "traceId": "a", "timestamp": "2025", "tags": ["x"]', False),
        (b'[{"traceId": "a", "spanId": "b", "startTime": 1, "duration": 2', False),
    ],
)
def test_handles(head: bytes, is_it: bool) -> None:
    assert zipkin_json.handles(head) is is_it


def test_what_the_exporter_of_the_python_sdk_writes() -> None:
    (chat, tool, agent), report = read_file("spans.json")
    assert (chat.trace_id, chat.span_id, chat.parent_span_id) == (TRACE, "f100000000000002", agent.span_id)
    assert (chat.kind, chat.status, chat.status_message, agent.status) == (3, 2, "cut off", 1)
    assert (chat.start_ns, chat.end_ns) == (1764000000001000000, 1764000000401000000)
    assert chat.attributes["gen_ai.usage.input_tokens"] == "12"
    assert chat.attributes["gen_ai.response.finish_reasons"] == '["tool_calls"]'
    assert [(event.name, event.attributes) for event in chat.events] == [("first token", {"index": 1})]
    assert chat.scope == Scope(name="weather.agent", version="1.4")
    assert chat.resource == Resource(attributes={"service.name": "weather", "service.version": "2.0"})
    assert tool.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_forecast",
        "gen_ai.tool.call.arguments": '{"city":"Zürich"}',
        "deployment": "test",
    }
    told = codes(report)
    assert {name: told[name] for name in ("time-us", "values-text", "scope-attributes-lost", "tags-cut")} == {
        "time-us": 3,
        "values-text": 3,
        "scope-attributes-lost": 3,
        "tags-cut": 1,
    }
    assert all(entry["advice"] for entry in report.fidelity if entry["code"] in ("time-us", "values-text", "tags-cut"))


def test_traces_of_zipkin_and_of_the_collector() -> None:
    (client, server, inside, beside, other), report = read_file("traces.json")
    assert client.trace_id == "000000000000000081a9c2b7d4e8f003"
    assert (client.span_id, client.kind) == ("00000000000000a1", 3)
    assert client.attributes["peer.service"] == "api"
    assert (server.parent_span_id, server.kind, server.status, server.status_message) == (client.span_id, 2, 2, "no such page")
    assert server.span_id not in (client.span_id, None)
    assert (inside.parent_span_id, beside.parent_span_id, beside.end_ns) == (server.span_id, client.span_id, None)
    assert [event.name for event in inside.events] == ["wait"]
    assert (other.kind, other.status, other.status_message, other.trace_state, other.scope.name) == (1, 2, "bad", "a=b", "lib")
    assert other.attributes == {"k": "v"}
    assert [(event.name, event.attributes, event.dropped_attributes) for event in other.events] == [
        ("made", {"n": 1}, 3),
        ("said", {"a": True}, 0),
        ("a|b", {}, 0),
    ]
    assert other.links == (
        LinkRecord(
            trace_id="00000000000000010000000000000009",
            span_id="00000000000000c9",
            trace_state="x=y",
            attributes={"why": "re|try", "n": (1,)},
            dropped_attributes=2,
        ),
    )
    assert codes(report)["id-shared"] == 1


def test_a_server_alone_keeps_the_shared_id() -> None:
    assert one(shared=True, kind="SERVER").span_id == "00000000000000b1"


@pytest.mark.parametrize(
    ("tags", "wanted"),
    [
        ({"error": "boom"}, (2, "boom")),
        ({"error": ""}, (2, "")),
        ({"error": "true"}, (2, "")),
        ({"error": "false"}, (0, "")),
        ({"otel.status_code": "OK", "error": "mine"}, (1, "")),
        ({"otel.status_code": "ERROR"}, (2, "")),
        ({"otel.status_code": "ERROR", "error": "boom"}, (2, "boom")),
        ({"otel.status_code": "ERROR", "error": "false"}, (2, "false")),
    ],
)
def test_status(tags: dict[str, str], wanted: tuple[int, str]) -> None:
    record = one(tags=tags)
    assert (record.status, record.status_message) == wanted


@pytest.mark.parametrize("text", ["[1,2,3]", "null", '"x"', "{broken", "0", "", '{"a": 1}', "NaN"])
def test_arguments_are_kept_as_given(text: str) -> None:
    assert one(tags={"gen_ai.tool.call.arguments": text}).attributes == {"gen_ai.tool.call.arguments": text}


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"id": ""}, ".id"),
        ({"traceId": "no id"}, ".traceId"),
        ({"timestamp": -1}, ".timestamp"),
        ({"timestamp": "x"}, ".timestamp"),
        ({"duration": 2**63}, ".duration"),
        ({"parentId": [1]}, ".parentId"),
        ({"name": 5}, ".name"),
    ],
)
def test_a_span_that_cannot_be_read_costs_only_itself(change: dict[str, Any], place: str) -> None:
    good = {"traceId": TRACE, "id": "b1", "timestamp": 5, "duration": 2}
    records, report = read([good, {**good, **change}, 7])
    assert len(records) == 1
    assert [r.place for r in report.rejections] == [f"line 1: [1]{place}", "line 1: [2]"]


def test_malformed_parts_are_left_out_and_counted() -> None:
    record = one(tags=[1], annotations=[5, {"value": "x"}, {"timestamp": 1, "value": "kept"}, {"timestamp": -1, "value": "y"}])
    assert (record.attributes, record.dropped_attributes) == ({}, 0)
    assert ([event.name for event in record.events], record.dropped_events) == (["kept"], 0)


def test_a_cut_array_keeps_its_whole_spans() -> None:
    text = (FIXTURES / "spans.json").read_bytes()
    found = open_source("-", stdin=io.BytesIO(text[:-200]))
    assert list(found.records) == read_file("spans.json")[0][:2]
    assert found.report.rejected == 1


# ---- There and back --------------------------------------------------------------------------------------------------------


def text_of(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, tuple | dict) or value is None else str(value)


def as_zipkin(span: SpanRecord) -> dict[str, Any]:
    """As the specification puts a span into Zipkin's form, without a limit on tags."""
    tags = {key: text_of(value) for key, value in span.attributes.items()}
    tags |= {"otel.scope.name": span.scope.name, "otel.scope.version": span.scope.version}
    if span.status:
        tags["otel.status_code"] = ("", "OK", "ERROR")[span.status]
    if span.status == 2:
        tags["error"] = span.status_message
    kind = (None, "SERVER", "CLIENT", "PRODUCER", "CONSUMER")[span.kind - 1]
    return {
        "traceId": span.trace_id,
        "id": span.span_id,
        **({"parentId": span.parent_span_id} if span.parent_span_id else {}),
        "name": span.name,
        "timestamp": span.start_ns // 1000,
        **({"duration": span.end_ns // 1000 - span.start_ns // 1000} if span.end_ns is not None else {}),
        "kind": kind,
        "localEndpoint": {"serviceName": "s"},
        "tags": tags,
        "annotations": [{"timestamp": e.time_ns // 1000, "value": json.dumps({e.name: e.attributes})} for e in span.events],
    }


def of_zipkin(span: SpanRecord) -> SpanRecord:
    """The span with all that the form loses lost."""
    return dataclasses.replace(
        span,
        kind=0 if span.kind == 1 else span.kind,
        start_ns=span.start_ns // 1000 * 1000,
        end_ns=None if span.end_ns is None else span.end_ns // 1000 * 1000,
        status_message="" if span.status != 2 or span.status_message == "true" else span.status_message,
        attributes={key: text_of(value) for key, value in span.attributes.items()},
        events=tuple(dataclasses.replace(e, time_ns=e.time_ns // 1000 * 1000) for e in span.events),
        links=(),
        resource=Resource(attributes={"service.name": "s"}),
        trace_state="",
        flags=0,
    )


TAKEN = ("otel.", "w3c.tracestate", "error", "span.kind", "service.", "telemetry.", "otlp.link.")
"""How tags begin that may be what is no attribute of the span, or one of its resource: nothing tells who gave them their name."""


def untaken(span: SpanRecord) -> SpanRecord:
    return dataclasses.replace(span, attributes={key: value for key, value in span.attributes.items() if not key.startswith(TAKEN)})


def test_what_becomes_of_attributes_by_the_names_of_zipkin() -> None:
    taken: dict[str, tuple[str, dict[str, Any]]] = {
        "otel.scope.name": ("lib", {"scope": Scope(name="lib")}),
        "otel.library.name": ("lib", {"scope": Scope(name="lib")}),
        "otel.scope.version": ("1.0", {"scope": Scope(version="1.0")}),
        "otel.library.version": ("1.0", {"scope": Scope(version="1.0")}),
        "otel.status_code": ("OK", {"status": 1}),
        "otel.status_description": ("why", {"status_message": "why"}),
        "otel.trace_state": ("a=b", {"trace_state": "a=b"}),
        "w3c.tracestate": ("a=b", {"trace_state": "a=b"}),
        "otel.dropped_attributes_count": ("3", {"dropped_attributes": 3}),
        "otel.dropped_events_count": ("3", {"dropped_events": 3}),
        "otel.dropped_links_count": ("3", {"dropped_links": 3}),
        "error": ("why", {"status": 2, "status_message": "why"}),
        "span.kind": ("internal", {"kind": 1}),
        "service.version": ("2.0", {"resource": Resource(attributes={"service.version": "2.0"})}),
        "telemetry.sdk.name": ("x", {"resource": Resource(attributes={"telemetry.sdk.name": "x"})}),
    }
    for name, (text, fields) in taken.items():
        assert one(tags={name: text}) == dataclasses.replace(one(), **fields), name
    left = {"otel.status_code": "fine", "otel.dropped_events_count": "many", "span.kind": "kindly", "error": "false", "otlp.link.0": "none"}
    assert one(tags=left) == dataclasses.replace(one(), attributes=left)


@settings(max_examples=300 if FULL else 40, deadline=None)
@given(st.lists(plain_spans(), min_size=1, max_size=3), st.sampled_from(["spans", "traces", "lines"]))
def test_written_and_read_back_only_the_told_losses_differ(records: list[SpanRecord], layout: str) -> None:
    records = [untaken(record) for record in records]
    spans = [as_zipkin(record) for record in records]
    text = (
        "\n".join(map(json.dumps, spans)) if layout == "lines" else json.dumps(spans if layout == "spans" else [[span] for span in spans])
    )
    found = open_source("-", stdin=io.BytesIO(text.encode()))
    assert found.format == "zipkin-json"
    assert exact(list(found.records)) == exact([of_zipkin(record) for record in records])
    assert found.report.rejected == 0
