"""Cohere: requests, thinking, a plan before the calls."""

import json
from pathlib import Path

from spanreplay.instrumentation.providers.cohere_chat import PROVIDER
from spanreplay.semconv import attributes as names

FIXTURES = Path(__file__).parents[2] / "fixtures" / "providers" / "cohere_chat"


def test_request() -> None:
    view = PROVIDER.request(json.loads((FIXTURES / "request.json").read_bytes())).attributes
    assert json.loads(str(view[names.GEN_AI_INPUT_MESSAGES])) == [
        {"role": "system", "parts": [{"type": "text", "content": "Answer in one sentence."}]},
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "What is in this picture?"},
                {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "aGVsbG8=", "detail": "low"},
            ],
        },
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Look closer.", "field": "tool_plan"},
                {"type": "tool_call", "id": "call_1", "name": "look", "arguments": {"at": [1, 2]}},
            ],
        },
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "call_1", "response": [{"type": "document", "document": {"data": "a cat"}}]}],
        },
    ]
    rest = {name: value for name, value in view.items() if not name.endswith(("messages", "definitions"))}
    assert rest == {
        names.GEN_AI_OPERATION_NAME: "chat",
        names.GEN_AI_PROVIDER_NAME: "cohere",
        names.GEN_AI_REQUEST_MODEL: "command-weather-1",
        names.GEN_AI_REQUEST_MAX_TOKENS: 300,
        names.GEN_AI_REQUEST_TEMPERATURE: 0.0,
        names.GEN_AI_REQUEST_TOP_P: 0.5,
        names.GEN_AI_REQUEST_TOP_K: 40,
        names.GEN_AI_REQUEST_SEED: 11,
        names.GEN_AI_REQUEST_STOP_SEQUENCES: ("END",),
        names.GEN_AI_REQUEST_FREQUENCY_PENALTY: 0.25,
        names.GEN_AI_REQUEST_PRESENCE_PENALTY: 0.5,
        names.GEN_AI_OUTPUT_TYPE: "json",
        names.GEN_AI_REQUEST_STREAM: False,
    }


def test_thinking_is_not_a_plan() -> None:
    parts = [
        {"type": "reasoning", "content": "Calls first.", "field": "tool_plan"},
        {"type": "reasoning", "content": "Hm."},
        {"type": "text", "content": "Hi"},
    ]
    said = [{"role": "assistant", "parts": parts, "finish_reason": "stop"}]
    for stream in (False, True):
        kind, body = PROVIDER.render(said, request={"stream": stream}, response_id="r", model=None, usage={})
        assert json.loads(str(PROVIDER.response(200, kind, body, {}).attributes[names.GEN_AI_OUTPUT_MESSAGES])) == said
    assert json.loads(body.decode().partition("data: ")[2].partition("\n")[0])["type"] == "message-start"
