"""Ollama: requests of both kinds, prompts, what streams unasked."""

import json
from pathlib import Path

from spanreplay.instrumentation.provider import recognise
from spanreplay.instrumentation.providers.ollama import PROVIDER
from spanreplay.semconv import attributes as names

FIXTURES = Path(__file__).parents[2] / "fixtures" / "providers" / "ollama"


def test_request() -> None:
    view = PROVIDER.request(json.loads((FIXTURES / "request.json").read_bytes())).attributes
    assert json.loads(str(view[names.GEN_AI_INPUT_MESSAGES])) == [
        {"role": "system", "parts": [{"type": "text", "content": "Answer in one sentence."}]},
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "What is in this picture?"},
                {"type": "blob", "mime_type": None, "modality": "image", "content": "aGVsbG8="},
            ],
        },
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Look closer."},
                {"type": "tool_call", "id": None, "name": "look", "arguments": {"at": [1, 2]}},
            ],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": None, "response": "a cat", "name": "look"}]},
    ]
    assert view[names.GEN_AI_REQUEST_SEED] == 11
    assert view[names.GEN_AI_OUTPUT_TYPE] == "json"
    assert view[names.GEN_AI_REQUEST_REASONING_LEVEL] == "low"


def test_a_prompt_is_a_message_and_streams_unless_told_not_to() -> None:
    body = {"model": "m", "prompt": "Hi", "system": "Be short.", "options": {"num_predict": -1}}
    found = recognise("POST", "/api/generate", "application/json", json.dumps(body).encode())
    assert found is not None
    view = PROVIDER.request(found[1])
    assert view.stream is True
    assert view.attributes[names.GEN_AI_OPERATION_NAME] == "text_completion"
    assert names.GEN_AI_REQUEST_MAX_TOKENS not in view.attributes
    assert json.loads(str(view.attributes[names.GEN_AI_INPUT_MESSAGES])) == [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]
    assert json.loads(str(view.attributes[names.GEN_AI_SYSTEM_INSTRUCTIONS])) == [{"type": "text", "content": "Be short."}]


def test_generated_text_plain_and_streamed() -> None:
    said = [
        {
            "role": "assistant",
            "parts": [{"type": "reasoning", "content": "Hm."}, {"type": "text", "content": "Hi"}],
            "finish_reason": "stop",
        }
    ]
    for stream in (False, True):
        asked = {"model": "m", "prompt": "Hi", "stream": stream}
        kind, body = PROVIDER.render(said, request=asked, response_id=None, model=None, usage={"input_tokens": 1, "output_tokens": 2})
        assert json.loads(body.splitlines()[0])["response"] == ("" if stream else "Hi")
        read = PROVIDER.response(200, kind, body, asked)
        assert (read.outcome, read.complete) == ("ok", True)
        assert json.loads(str(read.attributes[names.GEN_AI_OUTPUT_MESSAGES])) == said
        assert read.attributes[names.GEN_AI_USAGE_OUTPUT_TOKENS] == 2
    assert recognise("POST", "/api/generate", "application/json", b'{"model": "m", "prompt": 1}') is None
