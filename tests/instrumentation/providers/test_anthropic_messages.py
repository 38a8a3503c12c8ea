"""Messages: the request's blocks, blocks streamed side by side, cached tokens."""

import json
from pathlib import Path
from typing import Any

import pytest

from spanreplay.instrumentation import _eventstream, _sse
from spanreplay.instrumentation.provider import ModelResponse, recognise
from spanreplay.instrumentation.providers.anthropic_messages import PROVIDER
from spanreplay.semconv import attributes as names

FIXTURES = Path(__file__).parents[2] / "fixtures" / "providers" / "anthropic_messages"


def streamed(*events: dict[str, Any]) -> ModelResponse:
    return PROVIDER.response(200, "text/event-stream", _sse.render((event["type"], event) for event in events), {})


def block(index: int, made: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": made},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
    ]


def test_request() -> None:
    view = PROVIDER.request(json.loads((FIXTURES / "request.json").read_text("utf-8"))).attributes
    assert json.loads(str(view[names.GEN_AI_SYSTEM_INSTRUCTIONS])) == [
        {"type": "text", "content": "Answer in one sentence.", "cache_control": {"type": "ephemeral"}}
    ]
    assert json.loads(str(view[names.GEN_AI_INPUT_MESSAGES])) == [
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "What is in this picture?"},
                {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "aGVsbG8="},
                {"type": "uri", "mime_type": None, "modality": "image", "uri": "https://example.com/cat.jpg"},
                {"type": "file", "mime_type": None, "modality": "document", "file_id": "file_7", "title": "Notes"},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a note"}},
            ],
        },
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Look closer.", "signature": "c2lnbmVk"},
                {"type": "tool_call", "id": "toolu_1", "name": "look", "arguments": {"at": [1, 2]}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"type": "tool_call_response", "id": "toolu_1", "response": [{"type": "text", "text": "too dark"}], "is_error": True}
            ],
        },
        {"role": "assistant", "parts": [{"type": "text", "content": "I see nothing."}]},
        {"role": "user", "parts": [{"type": "text", "content": "Try again."}]},
    ]
    assert json.loads(str(view[names.GEN_AI_TOOL_DEFINITIONS])) == [
        {
            "type": "function",
            "name": "look",
            "description": "Looks closer.",
            "parameters": {"type": "object", "properties": {"at": {"type": "array"}}},
        },
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 2},
    ]
    json_names = (names.GEN_AI_SYSTEM_INSTRUCTIONS, names.GEN_AI_INPUT_MESSAGES, names.GEN_AI_TOOL_DEFINITIONS)
    assert {name: value for name, value in view.items() if name not in json_names} == {
        names.GEN_AI_OPERATION_NAME: "chat",
        names.GEN_AI_PROVIDER_NAME: "anthropic",
        names.GEN_AI_REQUEST_MODEL: "claude-weather-1",
        names.GEN_AI_REQUEST_MAX_TOKENS: 300,
        names.GEN_AI_REQUEST_TEMPERATURE: 1.0,
        names.GEN_AI_REQUEST_TOP_P: 0.5,
        names.GEN_AI_REQUEST_TOP_K: 40,
        names.GEN_AI_REQUEST_STOP_SEQUENCES: ("END", "STOP"),
        names.GEN_AI_REQUEST_REASONING_LEVEL: "low",
        names.GEN_AI_REQUEST_STREAM: False,
    }


def test_a_thread_message_of_another_api_is_no_model_call() -> None:
    assert not PROVIDER.matches("POST", "/v1/threads/t/messages", {"role": "user", "content": "Hi"})


def test_calls_streamed_side_by_side_are_told_apart_by_index() -> None:
    def piece(index: int, text: str) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": text}}

    call = {"type": "tool_use", "name": "f", "input": {}}
    response = streamed(
        {"type": "message_start", "message": {}},
        *block(2, {**call, "id": "c"}),
        *block(0, {**call, "id": "a"}),
        *block(1, {**call, "id": "b"}),
        *(piece(index, '{"n":') for index in (1, 0, 2)),
        *(piece(index, f"{index}}}") for index in (2, 1)),
        {"type": "message_stop"},
    )
    assert [(call.id, call.arguments) for call in response.tool_calls] == [("a", '{"n":'), ("b", {"n": 1}), ("c", {"n": 2})]


def test_usage_of_the_last_event_wins_and_absent_counts_stay() -> None:
    response = streamed(
        {"type": "message_start", "message": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 1}}},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9, "input_tokens": None}},
        {"type": "message_stop"},
    )
    assert response.attributes[names.GEN_AI_USAGE_INPUT_TOKENS] == 12
    assert response.attributes[names.GEN_AI_USAGE_OUTPUT_TOKENS] == 9
    assert response.attributes[names.GEN_AI_RESPONSE_FINISH_REASONS] == ("max_tokens",)
    assert json.loads(str(response.attributes[names.GEN_AI_OUTPUT_MESSAGES]))[0]["finish_reason"] == "length"


def test_server_tools_and_compaction_are_kept_whole() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result", "url": "u"}]},
        {"type": "compaction", "content": "so far"},
    ]
    made = [{"role": "assistant", "parts": blocks, "finish_reason": "pause_turn"}]
    for stream in (False, True):
        kind, body = PROVIDER.render(made, request={"stream": stream}, response_id=None, model=None, usage={})
        response = PROVIDER.response(200, kind, body, {})
        assert json.loads(str(response.attributes[names.GEN_AI_OUTPUT_MESSAGES])) == made
        assert response.tool_calls == ()
    query = [{"type": "input_json_delta", "partial_json": '{"query":"x"}'}]
    live = streamed({"type": "message_start", "message": {}}, *block(0, {**blocks[0], "input": {}}, *query), {"type": "message_stop"})
    assert json.loads(str(live.attributes[names.GEN_AI_OUTPUT_MESSAGES]))[0]["parts"] == blocks[:1]


def test_arguments_kept_as_text_by_another_instrumentation_become_the_input() -> None:
    given = [{"parts": [{"type": "tool_call", "id": None, "name": "f", "arguments": '{"x": 1}'}], "finish_reason": "tool_calls"}]
    _, body = PROVIDER.render(given, request={}, response_id=None, model=None, usage={})
    made = json.loads(body)
    assert made["content"][0]["input"] == {"x": 1}
    assert made["content"][0]["id"].startswith("toolu_")
    assert made["stop_reason"] == "tool_use"


# ---- hosted by others --------------------------------------------------------------------------------------------

HOSTED = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
SAID = [{"role": "assistant", "parts": [{"type": "text", "content": "Hello…"}], "finish_reason": "stop"}]


@pytest.mark.parametrize(
    ("path", "model", "added"),
    [
        ("/model/us.anthropic.claude-1%3A0/invoke", "us.anthropic.claude-1:0", {}),
        ("/model/claude/invoke-with-response-stream", "claude", {"stream": True, "frames": "aws"}),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/claude-1@2025:rawPredict", "claude-1@2025", {}),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/claude-1@2025:streamRawPredict", "claude-1@2025", {"stream": True}),
    ],
)
def test_where_the_path_names_the_model(path: str, model: str, added: dict[str, Any]) -> None:
    found = recognise("POST", path, "application/json", json.dumps(HOSTED).encode())
    assert found == (PROVIDER, {**HOSTED, "model": model, **added})
    assert recognise("POST", path, "application/json", b'{"messages": []}') is None
    kind, body = PROVIDER.render(SAID, request=found[1], response_id="msg_1", model=None, usage={"input_tokens": 3, "output_tokens": 2})
    read = PROVIDER.response(200, kind, body, found[1])
    assert (read.outcome, read.complete, json.loads(str(read.attributes[names.GEN_AI_OUTPUT_MESSAGES]))) == ("ok", True, SAID)
    assert PROVIDER.terminal(body) is ("stream" in added)


def test_a_stream_in_a_stream_that_is_cut_or_broken() -> None:
    asked = {**HOSTED, "model": "m", "stream": True, "frames": "aws"}
    kind, body = PROVIDER.render(SAID, request=asked, response_id="msg_1", model=None, usage={})
    for place in range(1, len(body) - 1, 61):
        part = PROVIDER.response(200, kind, body[:place], asked)
        assert (part.outcome, part.complete, PROVIDER.terminal(body[:place])) == ("ok", False, False)
    failing = _eventstream.encode({":exception-type": "throttlingException", ":message-type": "exception"}, b'{"message": "wait"}')
    failed = PROVIDER.response(200, kind, body[: body.index(b"chunk", 400) - 30] + failing, asked)
    assert failed.outcome in ("error", "malformed")
    whole = _eventstream.wrapped(b'{"type": "message_start"}') + failing
    assert PROVIDER.response(200, kind, whole, asked).error == ("throttlingException", "wait")
    assert PROVIDER.terminal(whole)
    for odd in (_eventstream.wrapped(b"[]"), _eventstream.wrapped(b"{oops"), _eventstream.event("chunk", b'{"bytes": 7}')):
        assert PROVIDER.response(200, kind, odd, asked).outcome == "malformed"
        assert not PROVIDER.terminal(odd)
