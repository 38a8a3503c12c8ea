"""Bedrock: requests, the event stream as botocore reads it, streams that are broken."""

import json
from pathlib import Path

import pytest
from botocore.eventstream import EventStreamBuffer  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.instrumentation import _eventstream
from spanreplay.instrumentation.provider import recognise
from spanreplay.instrumentation.providers.bedrock_converse import PROVIDER
from spanreplay.semconv import attributes as names

FIXTURES = Path(__file__).parents[2] / "fixtures" / "providers" / "bedrock_converse"


def test_request() -> None:
    found = recognise("POST", "/model/m-1/converse-stream", "application/json", (FIXTURES / "request.json").read_bytes())
    assert found is not None
    view = PROVIDER.request(found[1])
    assert (view.model, view.stream) == ("m-1", True)
    told = view.attributes
    assert json.loads(str(told[names.GEN_AI_SYSTEM_INSTRUCTIONS])) == [
        {"type": "text", "content": "Answer in one sentence."},
        {"type": "generic", "generic_type": "unknown", "value": {"cachePoint": {"type": "default"}}},
    ]
    assert json.loads(str(told[names.GEN_AI_INPUT_MESSAGES])) == [
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "What is in this picture?"},
                {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "aGVsbG8="},
                {"type": "uri", "mime_type": "application/pdf", "modality": "document", "uri": "s3://maps/a.pdf", "name": "map"},
            ],
        },
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Look closer.", "signature": "c2lnbmVk"},
                {"type": "tool_call", "id": "call_1", "name": "look", "arguments": {"at": [1, 2]}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "type": "tool_call_response",
                    "id": "call_1",
                    "response": [{"type": "json", "content": {"seen": "a cat"}}, {"type": "text", "content": "and a dog"}],
                    "status": "success",
                }
            ],
        },
    ]
    assert json.loads(str(told[names.GEN_AI_TOOL_DEFINITIONS]))[0] == {
        "type": "function",
        "name": "look",
        "description": "Looks closer.",
        "parameters": {"type": "object", "properties": {"at": {"type": "array"}}},
    }
    assert told[names.GEN_AI_REQUEST_TOP_K] == 40
    assert told[names.GEN_AI_REQUEST_STOP_SEQUENCES] == ("END",)


HEADERS = st.dictionaries(
    st.text("abc:-", min_size=1, max_size=20), st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=4
)


@settings(max_examples=30, deadline=None)
@given(messages=st.lists(st.tuples(HEADERS, st.binary(max_size=50)), max_size=4))
def test_what_is_written_is_what_botocore_reads(messages: list[tuple[dict[str, str], bytes]]) -> None:
    stream = b"".join(_eventstream.encode(headers, payload) for headers, payload in messages)
    reader = EventStreamBuffer()
    reader.add_data(stream)
    assert [(event.headers, event.payload) for event in reader] == messages
    assert list(_eventstream.messages(stream)) == messages


@settings(max_examples=60, deadline=None)
@given(place=st.integers(0, 10_000), change=st.integers(1, 255), cut=st.integers(0, 10_000))
def test_a_changed_byte_is_found_and_nothing_raises(place: int, change: int, cut: int) -> None:
    stream = b"".join(_eventstream.event("contentBlockDelta", b'{"delta": {"text": "abc"}}') for _ in range(3))
    place %= len(stream)
    broken = stream[:place] + bytes([stream[place] ^ change]) + stream[place + 1 :]
    found = list(_eventstream.messages(broken))
    assert None in found or len(found) < 3
    part = stream[: cut % len(stream)]
    assert None not in _eventstream.messages(part)
    assert _eventstream.last_name(part) in ("", "contentBlockDelta")


@pytest.mark.parametrize("kind", [0, 1, 2, 3, 4, 5, 6, 8, 9])
def test_headers_of_every_type_are_passed(kind: int) -> None:
    sizes = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 6: 5, 8: 8, 9: 16}
    value = b"\x00\x03abc" if kind == 6 else bytes(sizes[kind])
    head = b"\x01x" + bytes([kind]) + value + b"\x01y\x07\x00\x02ok"
    assert _eventstream._headers(head) == {"y": "ok"}
