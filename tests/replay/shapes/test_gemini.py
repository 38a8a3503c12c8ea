from typing import Any

import pytest

from spanreplay.replay.reading.messages import input_view, messages, output_view
from spanreplay.replay.shapes import gemini

SNAKE: dict[str, Any] = {
    "model": "gemini-2.5-flash",
    "config": {
        "http_options": {"headers": {"x": "y"}},
        "system_instruction": "Be brief.",
        "tools": [
            {"function_declarations": [{"name": "add", "description": "adds", "parameters_json_schema": {"type": "object"}}]},
            {"google_search": {}},
        ],
        "temperature": 0.5,
    },
    "contents": [
        {"parts": [{"text": "1+1?"}, {"inline_data": {"mime_type": "image/png", "data": "AA=="}}], "role": "user"},
        {
            "parts": [
                {"text": "hm", "thought": True},
                {"function_call": {"id": "c1", "args": {"a": 1}, "name": "add"}, "thought_signature": "S"},
            ],
            "role": "model",
        },
        {"parts": [{"function_response": {"id": "c1", "name": "add", "response": {"result": 2}}}], "role": "user"},
    ],
}
CAMEL: dict[str, Any] = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "tools": [
        {"functionDeclarations": [{"name": "add", "description": "adds", "parameters": {"type": "object"}}]},
        {"googleSearch": {}},
    ],
    "generationConfig": {"temperature": 0.5},
    "contents": [
        {"parts": [{"text": "1+1?"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}], "role": "user"},
        {
            "parts": [
                {"text": "hm", "thought": True},
                {"functionCall": {"id": "c1", "args": {"a": 1}, "name": "add"}, "thoughtSignature": "S"},
            ],
            "role": "model",
        },
        {"parts": [{"functionResponse": {"id": "c1", "name": "add", "response": {"result": 2}}}], "role": "user"},
    ],
}
ASKED = {
    "messages": [
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "1+1?"},
                {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "AA=="},
            ],
        },
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "hm"},
                {"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a": 1}, "thoughtSignature": "S"},
            ],
        },
        {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "response": {"result": 2}, "name": "add"}]},
    ],
    "system": [{"type": "text", "content": "Be brief."}],
    "tools": [{"type": "function", "name": "add", "description": "adds", "parameters": {"type": "object"}}, {"type": "googleSearch"}],
    "params": {"temperature": 0.5},
}


@pytest.mark.parametrize("body", [SNAKE, CAMEL], ids=["snake", "camel"])
def test_a_request_in_both_spellings(body: dict[str, Any]) -> None:
    assert input_view(body) == ASKED


def test_contents_may_be_one_text() -> None:
    assert input_view({"contents": "hi"})["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]


@pytest.mark.parametrize(
    "body",
    [
        {"candidates": [{"content": {"parts": [{"text": "2"}], "role": "model"}, "finishReason": "MAX_TOKENS"}], "responseId": "r"},
        {"content": {"parts": [{"text": "2"}], "role": "model"}, "finish_reason": "MAX_TOKENS", "usage_metadata": {}},
    ],
    ids=["api", "adk"],
)
def test_a_response_of_the_api_and_of_adk(body: dict[str, Any]) -> None:
    said = [{"role": "assistant", "parts": [{"type": "text", "content": "2"}], "finish_reason": "length"}]
    assert output_view(body) == {"messages": said, "finish": "length"}


def test_a_content_inside_a_message_says_who_speaks() -> None:
    event = {"role": "user", "content": {"parts": [{"text": "2", "function_call": None}], "role": "model"}}
    assert messages([event], "user") == [{"role": "assistant", "parts": [{"type": "text", "content": "2"}]}]


def test_parts_with_a_type_are_no_gemini_parts() -> None:
    assert not gemini.reads({"role": "user", "parts": [{"type": "text", "text": "x"}]})
    assert gemini.answered({"content": [{"type": "text", "text": "x"}], "role": "assistant"}) is None
