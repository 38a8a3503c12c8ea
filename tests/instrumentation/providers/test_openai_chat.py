"""Chat completions: the request's shapes, what compatible servers do differently."""

import json
from pathlib import Path
from typing import Any

import pytest

from spanreplay.instrumentation import _sse
from spanreplay.instrumentation.provider import ModelResponse
from spanreplay.instrumentation.providers.openai_chat import PROVIDER
from spanreplay.semconv import attributes as names

FIXTURES = Path(__file__).parents[2] / "fixtures" / "providers" / "openai_chat"


def read(*chunks: dict[str, Any], done: bool = True) -> ModelResponse:
    stream = _sse.render([*(("", chunk) for chunk in chunks), *([("", "[DONE]")] if done else [])])
    return PROVIDER.response(200, "text/event-stream", stream, {})


def delta(index: int = 0, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": fields, "finish_reason": finish}]}


def parts(response: ModelResponse, choice: int = 0) -> Any:
    return json.loads(str(response.attributes[names.GEN_AI_OUTPUT_MESSAGES]))[choice]["parts"]


def plain(message: dict[str, Any]) -> ModelResponse:
    return PROVIDER.response(200, "application/json", json.dumps({"choices": [{"message": message}]}).encode(), {})


def test_request() -> None:
    view = PROVIDER.request(json.loads((FIXTURES / "request.json").read_text("utf-8"))).attributes
    messages = json.loads(str(view[names.GEN_AI_INPUT_MESSAGES]))
    assert messages == [
        {"role": "system", "parts": [{"type": "text", "content": "Answer in one sentence."}]},
        {
            "role": "user",
            "name": "ada",
            "parts": [
                {"type": "text", "content": "What is in this picture?"},
                {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "aGVsbG8=", "detail": "low"},
                {"type": "uri", "mime_type": None, "modality": "image", "uri": "https://example.com/cat.jpg"},
                {"type": "blob", "mime_type": "audio/wav", "modality": "audio", "content": "c291bmQ="},
                {"type": "file", "mime_type": None, "modality": "document", "file_id": "file-7"},
                {"type": "hologram", "depth": 3},
            ],
        },
        {
            "role": "assistant",
            "parts": [
                {"type": "tool_call", "id": "call_1", "name": "look", "arguments": {"at": [1, 2]}},
                {"type": "tool_call", "id": "call_2", "name": "look", "arguments": '{"at": '},
            ],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": "a cat"}]},
        {"role": "assistant", "parts": [{"type": "refusal", "refusal": "I would rather not."}]},
    ]
    assert json.loads(str(view[names.GEN_AI_TOOL_DEFINITIONS])) == [
        {
            "type": "function",
            "name": "look",
            "description": "Looks closer.",
            "parameters": {"type": "object", "properties": {"at": {"type": "array"}}},
        },
        {"type": "custom", "name": "note", "format": {"type": "text"}},
    ]
    rest = {name: value for name, value in view.items() if name not in (names.GEN_AI_INPUT_MESSAGES, names.GEN_AI_TOOL_DEFINITIONS)}
    assert rest == {
        names.GEN_AI_OPERATION_NAME: "chat",
        names.GEN_AI_PROVIDER_NAME: "openai",
        names.OPENAI_API_TYPE: "chat_completions",
        names.GEN_AI_REQUEST_MODEL: "gpt-weather-1",
        names.GEN_AI_REQUEST_TEMPERATURE: 0.0,
        names.GEN_AI_REQUEST_TOP_P: 0.5,
        names.GEN_AI_REQUEST_MAX_TOKENS: 300,
        names.GEN_AI_REQUEST_CHOICE_COUNT: 2,
        names.GEN_AI_REQUEST_SEED: 11,
        names.GEN_AI_REQUEST_STOP_SEQUENCES: ("END",),
        names.GEN_AI_REQUEST_FREQUENCY_PENALTY: 0.25,
        names.GEN_AI_REQUEST_PRESENCE_PENALTY: -1.0,
        names.GEN_AI_REQUEST_REASONING_LEVEL: "low",
        names.GEN_AI_OUTPUT_TYPE: "json",
        names.GEN_AI_REQUEST_STREAM: False,
    }


def test_wrong_types_are_absent_and_numbers_stay_in_range() -> None:
    view = PROVIDER.request(
        {"model": 7, "max_tokens": 2**70, "seed": True, "temperature": "hot", "top_p": float("nan"), "stop": {}}
    ).attributes
    assert set(view) == {names.GEN_AI_OPERATION_NAME, names.GEN_AI_PROVIDER_NAME, names.OPENAI_API_TYPE}
    assert PROVIDER.request({"max_tokens": 5.0}).attributes[names.GEN_AI_REQUEST_MAX_TOKENS] == 5


def test_a_deployment_in_the_path_stands_for_the_model() -> None:
    assert PROVIDER.matches("POST", "/openai/deployments/x/chat/completions", {"messages": []})
    assert not PROVIDER.matches("POST", "/v1/chat/completions", {"messages": []})


def test_numbers_that_are_not_json_and_lone_surrogates_are_still_written_as_json() -> None:
    view = PROVIDER.request({"model": "m\ud800", "messages": [{"role": "user", "content": "\ud800", "x": float("inf")}]}).attributes
    assert view[names.GEN_AI_REQUEST_MODEL] == "m?"
    text = str(view[names.GEN_AI_INPUT_MESSAGES])
    text.encode()
    assert json.loads(text)[0]["parts"][0]["content"] == "\ud800"
    assert json.loads(text)[0]["parts"][1]["value"] == "Infinity"


def test_several_choices_interleaved() -> None:
    response = read(
        delta(0, content="a"), delta(1, content="x"), delta(1, content="y", finish="stop"), delta(0, content="b", finish="length")
    )
    assert [parts(response, 0)[0]["content"], parts(response, 1)[0]["content"]] == ["ab", "xy"]
    assert response.attributes[names.GEN_AI_RESPONSE_FINISH_REASONS] == ("length", "stop")
    kind, body = PROVIDER.render(
        json.loads(str(response.attributes[names.GEN_AI_OUTPUT_MESSAGES])), request={"n": 2}, response_id=None, model=None, usage={}
    )
    again = PROVIDER.response(200, kind, body, {})
    assert again.attributes[names.GEN_AI_OUTPUT_MESSAGES] == response.attributes[names.GEN_AI_OUTPUT_MESSAGES]


@pytest.mark.parametrize("index", [None, 0])
def test_parallel_calls_without_their_own_index(index: int | None) -> None:
    def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
        made = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        return delta(tool_calls=[made if index is None else {"index": index, **made}])

    response = read(call("a", "f", '{"x":'), call("a", "f", "1}"), call("b", "g", "{}"), call("", "", ""), delta(finish="tool_calls"))
    assert [(call.id, call.name, call.arguments) for call in response.tool_calls] == [("a", "f", {"x": 1}), ("b", "g", {})]


def test_what_compatible_servers_add_is_kept_and_written_back() -> None:
    message = {
        "role": "assistant",
        "reasoning": "hm",
        "content": [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": [{"type": "text", "text": "b"}]}],
        "audio": {"id": "audio_1"},
        "tool_calls": [
            {"id": "c", "type": "custom", "custom": {"name": "note", "input": "{}"}},
            {
                "id": "d",
                "type": "function",
                "function": {"name": "f", "arguments": ""},
                "extra_content": {"google": {"thought_signature": "s"}},
            },
        ],
    }
    response = plain(message)
    expected = [
        {"type": "reasoning", "content": "hm", "field": "reasoning"},
        {"type": "text", "content": "a"},
        {"type": "thinking", "thinking": [{"type": "text", "text": "b"}]},
        {"type": "tool_call", "id": "c", "name": "note", "arguments": "{}", "tool_type": "custom"},
        {"type": "tool_call", "id": "d", "name": "f", "arguments": "", "extra_content": {"google": {"thought_signature": "s"}}},
        {"type": "generic", "generic_type": "message.audio", "value": {"id": "audio_1"}},
    ]
    assert parts(response) == expected
    for stream in (False, True):
        made = [{"role": "assistant", "parts": expected}]
        kind, body = PROVIDER.render(made, request={"stream": stream}, response_id=None, model=None, usage={})
        assert parts(PROVIDER.response(200, kind, body, {})) == expected


def test_legacy_function_call_and_annotations() -> None:
    message = {"content": "see", "annotations": [{"type": "url_citation"}], "function_call": {"name": "f", "arguments": "{}"}}
    expected = [
        {"type": "text", "content": "see", "annotations": [{"type": "url_citation"}]},
        {"type": "tool_call", "id": None, "name": "f", "arguments": {}, "tool_type": "function_call"},
    ]
    assert parts(plain(message)) == expected
    kind, body = PROVIDER.render([{"parts": expected}], request={}, response_id=None, model=None, usage={})
    assert json.loads(body)["choices"][0]["message"]["function_call"] == {"name": "f", "arguments": "{}"}
    assert parts(PROVIDER.response(200, kind, body, {})) == expected


def test_messages_of_another_instrumentation_make_one_choice() -> None:
    given = [
        {"role": "assistant", "parts": [{"type": "text", "content": "a"}, {"type": "text", "content": "b"}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": None, "name": "f", "arguments": '{"x": 1}'}],
            "finish_reason": "tool_calls",
        },
    ]
    _, body = PROVIDER.render(given, request={"model": "m"}, response_id=None, model=None, usage={"input_tokens": 3})
    made = json.loads(body)
    assert made["model"] == "m"
    assert made["usage"]["prompt_tokens"] == 3
    assert [choice["finish_reason"] for choice in made["choices"]] == ["tool_calls"]
    message = made["choices"][0]["message"]
    assert message["content"] == "ab"
    assert message["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"x": 1}'}
    assert message["tool_calls"][0]["id"].startswith("call_")
