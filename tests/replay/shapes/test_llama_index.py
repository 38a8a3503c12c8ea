from typing import Any

import pytest

from spanreplay.replay.reading.messages import messages, output_view

CALL = {"id": "c1", "function": {"name": "add", "arguments": '{"a": 1}'}, "type": "function"}
CALLED = {"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a": 1}}


@pytest.mark.parametrize(
    ("given", "role", "parts"),
    [
        ({"role": "user", "blocks": [{"text": "hi"}]}, "user", [{"type": "text", "content": "hi"}]),
        ({"role": "user", "blocks": [{"block_type": "text", "text": ""}]}, "user", [{"type": "text", "content": ""}]),
        ({"role": "assistant", "blocks": [{"text": ""}], "additional_kwargs": {"tool_calls": [CALL]}}, "assistant", [CALLED]),
        (
            {
                "role": "assistant",
                "blocks": [{"block_type": "tool_call", "tool_call_id": "c1", "tool_name": "add", "tool_kwargs": {"a": 1}}],
            },
            "assistant",
            [CALLED],
        ),
        (
            {"role": "tool", "blocks": [{"text": "2"}], "additional_kwargs": {"tool_call_id": "c1"}},
            "tool",
            [{"type": "tool_call_response", "id": "c1", "response": "2"}],
        ),
        (
            {"role": "assistant", "blocks": [{"block_type": "thinking", "content": "so"}]},
            "assistant",
            [{"type": "reasoning", "content": "so"}],
        ),
        (
            {"role": "user", "blocks": [{"block_type": "image", "url": "http://x/y.png", "image_mimetype": "image/png"}]},
            "user",
            [{"type": "uri", "mime_type": "image/png", "modality": "image", "uri": "http://x/y.png"}],
        ),
        ({"role": "user", "blocks": [{"block_type": "cache", "x": 1}]}, "user", [{"type": "cache", "x": 1}]),
    ],
)
def test_messages(given: dict[str, Any], role: str, parts: list[Any]) -> None:
    assert messages([given], "user") == [{"role": role, "parts": parts}]


def test_what_ran_before_the_answer_of_an_agent_is_not_asked_for_by_it() -> None:
    ran = [{"tool_name": "add", "tool_kwargs": {"a": 1}, "tool_id": "c1"}]
    found = output_view({"response": {"role": "assistant", "blocks": [{"text": "2"}]}, "current_agent_name": "sums", "tool_calls": ran})
    assert found == {"messages": [{"role": "assistant", "parts": [{"type": "text", "content": "2"}]}], "finish": None}


def test_why_it_stopped_is_said_of_the_last_turn_of_a_state() -> None:
    state = [
        {"role": "assistant", "parts": [CALLED], "finish_reason": "tool_call"},
        {"role": "tool", "parts": []},
        {"role": "assistant", "parts": [], "finish_reason": "stop"},
        {"role": "assistant", "parts": [], "finish_reason": "length"},
    ]
    assert (output_view({"messages": state}) or {})["finish"] == "stop"
