"""Answers of Jaeger's third API, as a real one gave them (2.13): before and after somebody has looked at the trace."""

import io
import json
from typing import Any

from spanreplay.replay.inputs.source import open_source


def answer(**changes: Any) -> bytes:
    span = {
        "traceId": "ab" * 16,
        "spanId": "01" * 8,
        "name": "chat m",
        "kind": 3,
        "startTimeUnixNano": "1700000000000000001",
        "endTimeUnixNano": "1700000000000000009",
        "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}],
        "status": {},
        **changes,
    }
    return json.dumps({"result": {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [span]}]}]}}).encode()


def read(body: bytes) -> tuple[Any, dict[str, str | int]]:
    opened = open_source("-", stdin=io.BytesIO(body))
    (span,) = opened.records
    return span, {str(entry["code"]): entry["spans"] for entry in opened.report.fidelity}


def test_nothing_but_schema_urls_is_lost() -> None:
    span, told = read(answer())
    assert span.attributes == {"gen_ai.operation.name": "chat"}
    assert told == {"schema-urls-lost": 1}


def test_what_jaeger_adjusted_is_put_right() -> None:
    warning = {"key": "@jaeger@warnings", "value": {"arrayValue": {"values": [{"stringValue": "clock skew adjustment disabled"}]}}}
    attributes = [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}, warning]
    events = [{"name": "answer", "timeUnixNano": "5"}, {"name": "question", "timeUnixNano": "4"}]
    span, told = read(answer(attributes=attributes, events=events))
    assert span.attributes == {"gen_ai.operation.name": "chat"}
    assert [event.name for event in span.events] == ["question", "answer"]
    assert told == {"schema-urls-lost": 1, "backend-attributes": 1, "events-sorted": 1}


def test_the_same_in_a_file_of_the_collector_is_as_it_was_recorded() -> None:
    body = json.loads(answer(events=[{"name": "b", "timeUnixNano": "5"}, {"name": "a", "timeUnixNano": "4"}]))["result"]
    span, told = read(json.dumps(body).encode())
    assert [event.name for event in span.events] == ["b", "a"]
    assert told == {}
