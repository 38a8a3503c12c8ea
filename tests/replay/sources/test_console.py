"""What the Python SDK's console exporters print, alone and in the middle of logs."""

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from plain_spans import exact_but_losses, plain_spans, time_text
from spanreplay.replay.inputs.report import ReadReport, UnreadableSource
from spanreplay.replay.inputs.source import Opened, open_source
from spanreplay.replay.sources import console
from spanreplay.spans.record import LogRecord, Record, Resource, SpanRecord
from support.size import FULL

FIXTURES = Path(__file__).parents[2] / "fixtures/console"
SPANS = ["d100000000000002", "d100000000000003", "d100000000000001"]


def opened(text: str | bytes) -> Opened:
    return open_source("-", stdin=io.BytesIO(text.encode() if isinstance(text, str) else text))


def read(text: str | bytes) -> tuple[list[Record], ReadReport]:
    found = opened(text)
    assert found.format == "console"
    return list(found.records), found.report


def file(name: str) -> str:
    return (FIXTURES / name).read_text()


@pytest.mark.parametrize(
    ("head", "is_it"),
    [
        (
            b'{\n    "name": "x",\n    "context": {\n        "trace_id": "0x51a9",\n        "span_id": "0x1"},\n    "start_time": "2025',
            True,
        ),
        (b'INFO started\n{\n    "name": "x",\n    "context": {\n        "trace_id": "0x51a9",\n', True),
        (b'[INFO] started\n{\n    "name": "x",\n    "context": {\n        "trace_id": "0x51a9",\n', True),
        (b'a  | {\na  |     "name": "x",\na  |     "context": {\na  |         "trace_id": "0x51a9",\n', True),
        (b'{"name": "x", "context": {"trace_id": "0x51a9", "span_id": "0x1", "trace_state": "[]"}, "start_time": ""', True),
        (b'{"level": "info"}\n{"name": "x", "context": {"trace_id": "0x51a9", "span_id": "0x1"}, "start_time": 1}', True),
        (b'[{"name": "x", "context": {"trace_id": "0x51a9", "span_id": "0x1"}, "start_time": ""', False),
        (b'{"spans": [{"name": "x", "context": {"trace_id": "0x51a9", "span_id": "0x1"}, "start_time": ""', False),
        (b'{"log": "\\"context\\": {\\"trace_id\\": \\"0x51a9\\","}', False),
        (b'{"level": "info", "trace_id": "0x51a9", "span_id": "0x1"}', False),
        (b"INFO trace_id=0x51a9 span_id=0x1", False),
    ],
)
def test_handles(head: bytes, is_it: bool) -> None:
    assert console.handles(head) is is_it


def test_what_the_exporter_of_the_sdk_prints() -> None:
    records, report = read(file("spans.txt"))
    chat, tool, agent = records
    assert isinstance(chat, SpanRecord)
    assert isinstance(tool, SpanRecord)
    assert isinstance(agent, SpanRecord)
    assert (chat.trace_id, chat.span_id, chat.parent_span_id) == ("51a9c2b7d4e8f0031122334455667788", SPANS[0], SPANS[2])
    assert (chat.kind, chat.status, chat.status_message) == (3, 2, "cut off")
    assert (chat.start_ns, chat.end_ns) == (1764000000001000000, 1764000000401000000)
    assert chat.attributes["gen_ai.response.finish_reasons"] == ("tool_calls",)
    assert json.loads(str(chat.attributes["gen_ai.input.messages"]))[0]["parts"][0]["content"] == "Wie warm ist es in Zürich?\n{"
    assert [(event.name, event.time_ns, event.attributes) for event in chat.events] == [("first token", 1764000000200000000, {"index": 1})]
    (link,) = chat.links
    assert (link.trace_id[-2:], link.span_id, link.trace_state, link.attributes) == (
        "99",
        "00000000000000d2",
        "vendor=1,b=2",
        {"why": "retry"},
    )
    assert chat.resource == Resource(
        attributes={"service.name": "weather", "service.version": "2.0"}, schema_url="https://opentelemetry.io/schemas/1.40.0"
    )
    assert (tool.attributes["gen_ai.tool.call.arguments"], agent.parent_span_id, agent.status) == ('{"city":"Zürich"}', None, 1)
    assert {entry["code"]: entry["spans"] for entry in report.fidelity} == {"scope-lost": 3, "time-us": 3}
    assert all("OTLP" in str(entry["advice"]) for entry in report.fidelity)


@pytest.mark.parametrize("name", ["composed.txt", "lines.jsonl"])
def test_the_same_spans_whatever_is_before_each_line(name: str) -> None:
    assert read(file(name))[0] == read(file("spans.txt"))[0]


def test_in_the_middle_of_a_log_cut_at_its_end() -> None:
    records, report = read(file("log.txt"))
    whole = read(file("spans.txt"))[0]
    assert isinstance(records[0], LogRecord)
    assert (records[0].event_name, records[0].span_id, records[0].body) == (
        "gen_ai.choice",
        SPANS[0],
        {"role": "assistant", "content": "let me look"},
    )
    assert records[1:] == whole[:2]
    line = file("log.txt").splitlines().index("KeyError: 'x'") + 2
    assert [(r.place, r.expected, r.found) for r in report.rejections] == [(f"line {line}", "a whole span", "one that is cut")]


def test_a_span_cut_in_the_middle_does_not_cost_the_next_one() -> None:
    lines = file("spans.txt").splitlines(keepends=True)
    end = lines.index("}\n")
    records, report = read("".join([*lines[: end - 8], *lines[end + 1 :]]))
    assert [record.span_id for record in records] == SPANS[1:]
    assert [r.place for r in report.rejections] == ["line 1"]


def test_any_cut_keeps_the_whole_spans_before_it() -> None:
    text = file("spans.txt").encode()
    whole = read(text)[0]
    for end in range(400, len(text), 50 if FULL else 499):
        count = text[:end].count(b"\n}\n") + text[:end].endswith(b"\n}")
        if not count:
            with pytest.raises(UnreadableSource):
                read(text[:end])
            continue
        records, report = read(text[:end])
        assert records == whole[:count]
        assert report.rejected == (b'"name":' in text[:end].rpartition(b"\n}")[2])


def test_objects_that_are_no_spans_are_part_of_the_log() -> None:
    text = '{\n    "trace_id": "of something else"\n}\n' + file("spans.txt") + '{\n  "config": {\n  }\n}\n{"trace_id": 5}\nfunction() {\n'
    records, report = read(text)
    assert ([record.span_id for record in records], report.rejected) == (SPANS, 0)


def test_lines_are_read_one_by_one() -> None:
    stream = io.BytesIO(file("spans.txt").encode() * 100)
    found = open_source("-", stdin=stream)
    next(found.records)
    assert stream.tell() < len(stream.getvalue()) // 2
    found.records.close()  # type: ignore[attr-defined]


def test_what_the_installed_sdk_prints_today() -> None:
    out = io.StringIO()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
    tracer = provider.get_tracer("agent")
    with tracer.start_as_current_span("outer") as outer, tracer.start_as_current_span("inner", attributes={"a": [1.5, 2.5], "b": True}):
        inside = outer.get_span_context()
    inner, found = read(out.getvalue())[0]
    assert isinstance(inner, SpanRecord)
    assert isinstance(found, SpanRecord)
    assert (found.trace_id, found.span_id) == (f"{inside.trace_id:032x}", f"{inside.span_id:016x}")
    assert (inner.name, inner.parent_span_id, inner.attributes) == ("inner", found.span_id, {"a": (1.5, 2.5), "b": True})


# ---- There and back --------------------------------------------------------------------------------------------------------


def to_json(span: SpanRecord, indent: int | None) -> str:
    """As ``ReadableSpan.to_json`` of SDK 1.45 writes it."""

    def context(trace_id: str, span_id: str, state: str) -> dict[str, str]:
        entries = [f"{{key={key}, value={value}}}" for key, _, value in (entry.partition("=") for entry in state.split(",") if entry)]
        return {"trace_id": f"0x{trace_id}", "span_id": f"0x{span_id}", "trace_state": str(entries)}

    document: dict[str, Any] = {
        "name": span.name,
        "context": context(span.trace_id, span.span_id, span.trace_state),
        "kind": f"SpanKind.{('INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER')[span.kind - 1]}",
        "parent_id": span.parent_span_id and f"0x{span.parent_span_id}",
        "start_time": time_text(span.start_ns),
        "end_time": None if span.end_ns is None else time_text(span.end_ns),
        "status": {"status_code": ("UNSET", "OK", "ERROR")[span.status]}
        | ({"description": span.status_message} if span.status_message else {}),
        "attributes": span.attributes,
        "events": [{"name": e.name, "timestamp": time_text(e.time_ns), "attributes": e.attributes} for e in span.events],
        "links": [{"context": context(k.trace_id, k.span_id, k.trace_state), "attributes": k.attributes} for k in span.links],
        "resource": {"attributes": span.resource.attributes, "schema_url": span.resource.schema_url},
    }
    return json.dumps(document, indent=indent)


@settings(max_examples=300 if FULL else 40, deadline=None)
@given(st.lists(plain_spans(), min_size=1, max_size=3), st.sampled_from([None, 1, 4]), st.sampled_from(["", "INFO: {}\n", "agent-1  | "]))
def test_printed_and_read_back_only_the_told_losses_differ(records: list[SpanRecord], indent: int | None, noise: str) -> None:
    texts = [to_json(record, indent) for record in records]
    if noise.endswith("\n"):
        text = noise + noise.join(f"{text}\n" for text in texts)
    else:
        text = "".join(f"{noise}{line}\n" for text in texts for line in text.splitlines())
    found, report = read(text)
    assert report.rejected == 0
    exact_but_losses(found, [dataclasses.replace(record, flags=0) for record in records], scope=False, unit=1000)
