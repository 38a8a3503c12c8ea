from typing import Any

from spanreplay.replay.reading.messages import messages, output_view
from spanreplay.replay.shapes import pydantic_ai

REQUEST: dict[str, Any] = {
    "kind": "request",
    "instructions": "be brief",
    "timestamp": "2026-01-01T00:00:00Z",
    "parts": [
        {"part_kind": "system-prompt", "content": "be kind", "timestamp": "2026-01-01T00:00:00Z", "dynamic_ref": None},
        {
            "part_kind": "user-prompt",
            "content": ["look", {"kind": "image-url", "url": "u", "media_type": "image/png", "force_download": False}],
        },
        {
            "part_kind": "tool-return",
            "tool_name": "add",
            "tool_call_id": "c1",
            "content": {"sum": 2},
            "outcome": "success",
            "metadata": None,
        },
        {"part_kind": "retry-prompt", "tool_name": "add", "tool_call_id": "c2", "content": "again"},
        {"part_kind": "retry-prompt", "tool_name": None, "content": "say JSON"},
    ],
}
RESPONSE: dict[str, Any] = {
    "kind": "response",
    "model_name": "m",
    "finish_reason": "tool_call",
    "parts": [
        {"part_kind": "thinking", "content": "hm", "signature": "s", "id": None},
        {"part_kind": "text", "content": "I add."},
        {"part_kind": "tool-call", "tool_name": "add", "args": '{"a":1}', "tool_call_id": "c1"},
    ],
}


def test_a_dumped_request_is_a_message_for_each_role() -> None:
    assert messages([REQUEST], "user") == [
        {"role": "system", "parts": [{"type": "text", "content": "be brief"}, {"type": "text", "content": "be kind"}]},
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "look"},
                {"type": "uri", "modality": "image", "mime_type": "image/png", "uri": "u", "force_download": False},
            ],
        },
        {
            "role": "tool",
            "parts": [
                {"type": "tool_call_response", "id": "c1", "name": "add", "response": {"sum": 2}, "outcome": "success"},
                {"type": "tool_call_response", "id": "c2", "name": "add", "response": "again"},
            ],
        },
        {"role": "user", "parts": [{"type": "text", "content": "say JSON"}]},
    ]


def test_a_dumped_response_is_an_answer() -> None:
    said = {
        "role": "assistant",
        "parts": [
            {"type": "reasoning", "content": "hm", "signature": "s"},
            {"type": "text", "content": "I add."},
            {"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a": 1}},
        ],
        "finish_reason": "tool_call",
    }
    assert output_view(RESPONSE) == {"messages": [said], "finish": "tool_call"}
    assert messages([RESPONSE], "user") == [said]


def test_media_of_older_spans_are_parts_of_the_conventions() -> None:
    given = {
        "role": "user",
        "parts": [
            {"type": "text", "content": "look"},
            {"type": "image-url", "url": "https://example.com/a.png"},
            {"type": "document-url", "url": "https://example.com/a.pdf"},
            {"type": "binary", "media_type": "audio/wav", "content": "AA=="},
            {"type": "image-url"},
        ],
    }
    assert messages([given], "user") == [
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "look"},
                {"type": "uri", "modality": "image", "uri": "https://example.com/a.png"},
                {"type": "uri", "uri": "https://example.com/a.pdf"},
                {"type": "blob", "mime_type": "audio/wav", "modality": "audio", "content": "AA=="},
                {"type": "uri", "modality": "image"},
            ],
        }
    ]


def test_other_messages_are_not_its() -> None:
    assert not pydantic_ai.reads({"role": "user", "parts": [{"type": "text", "content": "x"}]})
    assert not pydantic_ai.reads({"kind": "request", "parts": ["x"]})
