from typing import Any

import pytest

from spanreplay.replay.reading.messages import input_view, output_view
from spanreplay.replay.shapes import anthropic

CALLS: dict[str, Any] = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "I add."},
        {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}},
        {"type": "tool_use", "id": "toolu_2", "name": "add", "input": {}},
    ],
}
RESULTS: dict[str, Any] = {
    "role": "user",
    "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "2"}]},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no", "is_error": True},
        {"type": "text", "text": "go on"},
    ],
}
SAID = [
    {
        "role": "assistant",
        "parts": [
            {"type": "reasoning", "content": "hm", "signature": "sig"},
            {"type": "text", "content": "I add."},
            {"type": "tool_call", "id": "toolu_1", "name": "add", "arguments": {"a": 1}},
            {"type": "tool_call", "id": "toolu_2", "name": "add", "arguments": {}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"type": "tool_call_response", "id": "toolu_1", "response": [{"type": "text", "text": "2"}]},
            {"type": "tool_call_response", "id": "toolu_2", "response": "no", "is_error": True},
            {"type": "text", "content": "go on"},
        ],
    },
]


@pytest.mark.parametrize("system", ["be brief", [{"type": "text", "text": "be brief"}]])
def test_a_request_has_its_system_and_its_blocks(system: Any) -> None:
    tool = {"name": "add", "description": "adds", "input_schema": {"type": "object"}}
    view = input_view({"model": "claude", "max_tokens": 9, "system": system, "messages": [CALLS, RESULTS], "tools": [tool]})
    assert view["messages"] == SAID
    assert view["system"] == [{"type": "text", "content": "be brief"}]
    assert view["tools"] == [{"type": "function", "name": "add", "description": "adds", "parameters": {"type": "object"}}]
    assert view["params"] == {"max_tokens": 9}


def test_blocks_among_other_messages_are_read() -> None:
    assert input_view([{"role": "user", "content": "hi"}, CALLS, RESULTS])["messages"] == [
        {"role": "user", "parts": [{"type": "text", "content": "hi"}]},
        *SAID,
    ]


def test_a_response_is_a_message() -> None:
    view = output_view({"id": "msg_1", "type": "message", **CALLS, "stop_reason": "tool_use"})
    assert view == {"messages": [{**SAID[0], "finish_reason": "tool_call"}], "finish": "tool_use"}


def test_what_is_not_of_this_api_is_none() -> None:
    plain = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    assert not anthropic.reads(plain)
    assert anthropic.asked({"model": "m", "messages": [plain]}) is None
    assert anthropic.asked({"model": "m", "system": "s", "messages": "no"}) is None
    assert anthropic.answered({"content": "text", "stop_reason": "x"}) is None
    assert anthropic.answered({"content": [{"type": "text"}]}) is None
    assert anthropic.answered({"content": [1], "stop_reason": "x"}) is None
