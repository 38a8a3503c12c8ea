from typing import Any

import pytest

from spanreplay.replay.reading.messages import messages
from spanreplay.replay.reading.shown_haystack import shown_of_haystack, tokens_of_haystack

ASKS = (
    "ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[ReasoningContent(reasoning_text='Hm.', extra={}), "
    "TextContent(text='I look.'), "
    "ToolCall(tool_name='add', arguments={'a': [1, 2.5], 'b': None}, id='c1', extra=None)], _name=None, "
    "_meta={'finish_reason': 'tool_calls', 'usage': {'prompt_tokens': 7, 'completion_tokens': 2}})"
)
TOLD = (
    "ChatMessage(_role=<ChatRole.TOOL: 'tool'>, _content=[ToolCallResult(result='it\\'s (3', origin=ToolCall(tool_name='add', "
    "arguments={}, id='c1', extra=None), error=True)], _name=None, _meta={})"
)
CALL = {"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a": [1, 2.5], "b": None}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            ASKS,
            {
                "role": "assistant",
                "parts": [{"type": "reasoning", "content": "Hm."}, {"type": "text", "content": "I look."}, CALL],
                "finish_reason": "tool_calls",
            },
        ),
        (TOLD, {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "it's (3", "is_error": True}]}),
        (
            "ChatMessage(content='q', role=<ChatRole.USER: 'user'>, name='me', meta={})",
            {"role": "user", "parts": [{"type": "text", "content": "q"}], "name": "me"},
        ),
        (
            "ChatMessage(_role=<ChatRole.USER: 'user'>, _content=[ImageContent(base64_image='aGk...', mime_type='image/png')], _meta={})",
            {"role": "user", "parts": [{"type": "ImageContent", "base64_image": "aGk...", "mime_type": "image/png"}]},
        ),
    ],
)
def test_a_message_is_read_from_what_python_shows_of_it(text: str, message: dict[str, Any]) -> None:
    assert shown_of_haystack(text) == message
    assert messages([text], "user") == [message]


@pytest.mark.parametrize(
    "text", ["ChatMessage(", "ChatMessage(role='user')", "ChatMessage(I said so)", "Hello", ASKS[:-1], f"{ASKS} {ASKS}"]
)
def test_anything_else_is_what_was_said(text: str) -> None:
    assert shown_of_haystack(text) == {}
    assert messages([text], "user") == [{"role": "user", "parts": [{"type": "text", "content": text}]}]


def test_the_tokens_of_an_agent_are_those_it_counts_else_those_of_its_own_messages() -> None:
    assert tokens_of_haystack(None, {"token_usage": {"prompt_tokens": 3, "completion_tokens": 1}}) == {
        "input_tokens": 3,
        "output_tokens": 1,
    }
    assert tokens_of_haystack({"messages": []}, {"messages": [ASKS, TOLD]}) == {"input_tokens": 7, "output_tokens": 2}
    assert tokens_of_haystack({"messages": [ASKS]}, {"messages": [ASKS, TOLD]}) == {}
    assert tokens_of_haystack(None, "text") == {}
