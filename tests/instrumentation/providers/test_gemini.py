"""Gemini: what the path says, streams with and without events, prompts that are blocked, what other spellings become."""

import json
from pathlib import Path
from typing import Any

import pytest

from spanreplay.instrumentation.provider import ModelResponse, recognise
from spanreplay.instrumentation.providers.gemini import PROVIDER
from spanreplay.semconv import attributes as names

FIXTURES = Path(__file__).parents[2] / "fixtures" / "providers" / "gemini"
ASK: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
JSON_TYPE = "application/json"


def asked(path: str, body: dict[str, Any]) -> Any:
    found = recognise("POST", path, JSON_TYPE, json.dumps(body).encode())
    assert found is not None
    assert found[0] is PROVIDER
    return found[1]


def parts(response: ModelResponse) -> Any:
    return messages(response)[0]["parts"]


def messages(response: ModelResponse) -> Any:
    return json.loads(str(response.attributes.get(names.GEN_AI_OUTPUT_MESSAGES, "[]")))


def plain(body: Any) -> ModelResponse:
    return PROVIDER.response(200, JSON_TYPE, json.dumps(body).encode(), {})


def candidate(*given: Any, **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(given), "role": "model"}, **more}]}


# ---- requests ----------------------------------------------------------------------------------------------------


def test_request() -> None:
    body = json.loads((FIXTURES / "request.json").read_text("utf-8"))
    view = PROVIDER.request(asked("/v1beta/models/gemini-weather-1:generateContent", body)).attributes
    assert json.loads(str(view[names.GEN_AI_SYSTEM_INSTRUCTIONS])) == [{"type": "text", "content": "Answer in one sentence."}]
    assert json.loads(str(view[names.GEN_AI_INPUT_MESSAGES])) == [
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "What is in this picture?"},
                {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "aGVsbG8="},
                {"type": "uri", "mime_type": "image/jpeg", "modality": "image", "uri": "https://example.com/cat.jpg"},
                {
                    "type": "uri",
                    "mime_type": "video/mp4",
                    "modality": "video",
                    "uri": "https://example.com/cat.mp4",
                    "videoMetadata": {"fps": 2},
                },
            ],
        },
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Look closer.", "thoughtSignature": "c2lnbmVk"},
                {"type": "tool_call", "id": None, "name": "look", "arguments": {"at": [1, 2]}, "thoughtSignature": "c2ln"},
                {"type": "tool_call", "id": "call_2", "name": "look", "arguments": {}},
                {"type": "generic", "generic_type": "unknown", "value": {"executableCode": {"language": "PYTHON", "code": "1 + 1"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"type": "tool_call_response", "id": None, "response": {"result": "a cat"}, "name": "look"},
                {"type": "tool_call_response", "id": "call_2", "response": {"error": "too dark"}, "name": "look"},
            ],
        },
    ]
    assert json.loads(str(view[names.GEN_AI_TOOL_DEFINITIONS])) == [
        {
            "type": "function",
            "name": "look",
            "description": "Looks closer.",
            "parameters": {"type": "OBJECT", "properties": {"at": {"type": "ARRAY"}}},
        },
        {"type": "function", "name": "now", "parameters": {"type": "object"}},
        {"type": "googleSearch"},
    ]
    rest = {name: value for name, value in view.items() if not name.endswith(("messages", "instructions", "definitions"))}
    assert rest == {
        names.GEN_AI_OPERATION_NAME: "generate_content",
        names.GEN_AI_PROVIDER_NAME: "gcp.gen_ai",
        names.GEN_AI_REQUEST_MODEL: "gemini-weather-1",
        names.GEN_AI_REQUEST_TEMPERATURE: 0.0,
        names.GEN_AI_REQUEST_TOP_P: 0.5,
        names.GEN_AI_REQUEST_TOP_K: 40,
        names.GEN_AI_REQUEST_MAX_TOKENS: 300,
        names.GEN_AI_REQUEST_CHOICE_COUNT: 2,
        names.GEN_AI_REQUEST_SEED: 11,
        names.GEN_AI_REQUEST_STOP_SEQUENCES: ("END",),
        names.GEN_AI_REQUEST_FREQUENCY_PENALTY: 0.25,
        names.GEN_AI_REQUEST_PRESENCE_PENALTY: -1.0,
        names.GEN_AI_REQUEST_REASONING_LEVEL: "LOW",
        names.GEN_AI_OUTPUT_TYPE: "json",
    }


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/v1beta/models/gemini-x:generateContent", {"model": "gemini-x"}),
        ("/v1beta/tunedModels/my%20own:generateContent?key=k", {"model": "my own"}),
        ("/v1/projects/p/locations/l/endpoints/12:streamGenerateContent", {"model": "12", "stream": True}),
        ("/v1beta/models/gemini-x:streamGenerateContent?key=k&alt=sse", {"model": "gemini-x", "stream": True, "alt": "sse"}),
    ],
)
def test_the_path_names_the_model_and_the_way_of_answering(path: str, told: dict[str, Any]) -> None:
    request = asked(path, {**ASK, "model": "models/other"})
    assert request == {**ASK, **told}
    view = PROVIDER.request(request)
    assert (view.model, view.stream) == (told["model"], "stream" in told)
    assert view.attributes.get(names.GEN_AI_REQUEST_STREAM) is told.get("stream")


def test_snake_case_bare_texts_and_a_lone_content_are_read_too() -> None:
    view = PROVIDER.request(
        {
            "system_instruction": "Be brief.",
            "contents": {"parts": {"text": "Hi"}},
            "generation_config": {"max_output_tokens": 5, "response_mime_type": "application/json"},
            "tools": [{"function_declarations": [{"name": "f", "parameters_json_schema": {}}], "code_execution": {}}],
        }
    ).attributes
    assert json.loads(str(view[names.GEN_AI_SYSTEM_INSTRUCTIONS])) == [{"type": "text", "content": "Be brief."}]
    assert json.loads(str(view[names.GEN_AI_INPUT_MESSAGES])) == [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]
    assert view[names.GEN_AI_REQUEST_MAX_TOKENS] == 5
    assert view[names.GEN_AI_OUTPUT_TYPE] == "json"
    assert json.loads(str(view[names.GEN_AI_TOOL_DEFINITIONS])) == [{"type": "function", "name": "f"}, {"type": "codeExecution"}]
    called = PROVIDER.request({"contents": ["Hi", {"role": "model", "parts": [{"function_call": {"name": "f", "args": {"a": 1}}}]}]})
    assert [message["role"] for message in json.loads(str(called.attributes[names.GEN_AI_INPUT_MESSAGES]))] == ["user", "assistant"]


# ---- responses ---------------------------------------------------------------------------------------------------


def test_a_blocked_prompt_is_an_answer_without_parts() -> None:
    for body in (
        {"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "m"},
        {"candidates": [], "promptFeedback": {"blockReason": "SAFETY"}},
    ):
        read = plain(body)
        assert (read.outcome, read.attributes[names.GEN_AI_RESPONSE_FINISH_REASONS]) == ("ok", ("SAFETY",))
        assert messages(read) == [{"role": "assistant", "parts": [], "finish_reason": "content_filter"}]
    stream = b'data: {"promptFeedback": {"blockReason": "OTHER"}}\n\n'
    assert PROVIDER.response(200, "text/event-stream", stream, {}).complete
    assert PROVIDER.terminal(stream)


def test_a_reason_that_has_no_word_in_the_conventions_is_kept() -> None:
    read = plain(candidate(finishReason="MALFORMED_FUNCTION_CALL", finishMessage="Malformed function call: f("))
    assert messages(read)[0]["finish_reason"] == "MALFORMED_FUNCTION_CALL"
    _, body = PROVIDER.render(messages(read), request={}, response_id="r", model="m", usage={})
    assert json.loads(body)["candidates"] == [
        {
            "content": {"parts": [], "role": "model"},
            "finishReason": "MALFORMED_FUNCTION_CALL",
            "finishMessage": "Malformed function call: f(",
            "index": 0,
        }
    ]


def test_a_signature_that_comes_last_and_other_parts_stand_by_themselves() -> None:
    chunks = [
        candidate({"text": "a", "thought": True}),
        candidate({"text": "b"}),
        candidate({"text": "c"}, {"text": "d"}),
        candidate({"text": "", "thoughtSignature": "s"}),
        candidate({"codeExecutionResult": {"outcome": "OUTCOME_OK"}}, finishReason="STOP"),
    ]
    stream = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode()
    assert parts(PROVIDER.response(200, "text/event-stream", stream, {})) == [
        {"type": "reasoning", "content": "a"},
        {"type": "text", "content": "bc"},
        {"type": "text", "content": "d"},
        {"type": "text", "content": "", "thoughtSignature": "s"},
        {"type": "generic", "generic_type": "unknown", "value": {"codeExecutionResult": {"outcome": "OUTCOME_OK"}}},
    ]


# ---- a stream that is an array -----------------------------------------------------------------------------------

ARRAY = {"stream": True}
SAID: list[dict[str, Any]] = [
    {
        "role": "assistant",
        "parts": [{"type": "text", "content": "Zürich, ]}"}, {"type": "tool_call", "id": None, "name": "f", "arguments": {"a": [1]}}],
        "finish_reason": "stop",
    }
]


def test_an_array_of_chunks_is_a_stream() -> None:
    kind, body = PROVIDER.render(SAID, request=ARRAY, response_id="r", model="m", usage={"input_tokens": 3})
    assert kind == JSON_TYPE
    assert len(json.loads(body)) == 2
    read = PROVIDER.response(200, kind, body, ARRAY)
    assert (messages(read), read.complete, read.attributes[names.GEN_AI_USAGE_INPUT_TOKENS]) == (SAID, True, 3)
    assert PROVIDER.terminal(body)
    first = body.index(b",\n")
    for length in range(len(body) - 1):
        part = PROVIDER.response(200, kind, body[:length], ARRAY)
        assert (part.outcome, part.complete) == (("ok", False) if length >= first else ("malformed", True))


def test_an_error_in_an_array() -> None:
    body = json.dumps([candidate({"text": "a"}), {"error": {"code": 503, "message": "Overloaded"}}]).encode()
    read = PROVIDER.response(200, JSON_TYPE, body, ARRAY)
    assert (read.outcome, read.error, read.complete) == ("error", ("503", "Overloaded"), True)
    refused = PROVIDER.response(400, JSON_TYPE, b'[{"error": {"code": 400, "message": "Bad"}}]', ARRAY)
    assert refused.error == ("400", "Bad")


# ---- messages of others ------------------------------------------------------------------------------------------


def test_parts_of_every_sort_are_written() -> None:
    given: list[dict[str, Any]] = [
        {"type": "text", "content": {"not": "text"}},
        {"type": "thinking", "thinking": "unknown sort"},
        {"type": "refusal", "refusal": "No."},
        {"type": "tool_call", "name": "f", "arguments": '{"a": 1}'},
        {"type": "tool_call", "id": "c", "name": "g", "arguments": None},
        {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "aGk="},
        {"type": "uri", "uri": "https://example.com/a.png"},
        {"type": "file", "file_id": "files/7", "mime_type": "text/plain"},
        {"type": "hologram", "depth": 3},
    ]
    _, body = PROVIDER.render([{"role": "assistant", "parts": given}], request={"model": "m"}, response_id=None, model=None, usage={})
    made = json.loads(body)
    assert made["candidates"][0]["content"]["parts"] == [
        {"text": '{"not":"text"}'},
        {"text": '{"type":"thinking","thinking":"unknown sort"}'},
        {"text": "No."},
        {"functionCall": {"name": "f", "args": {"a": 1}}},
        {"functionCall": {"id": "c", "name": "g"}},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
        {"fileData": {"fileUri": "https://example.com/a.png"}},
        {"fileData": {"mimeType": "text/plain", "fileUri": "files/7"}},
        {"text": '{"type":"hologram","depth":3}'},
    ]
    assert (made["candidates"][0]["finishReason"], made["modelVersion"], "usageMetadata" in made) == ("STOP", "m", False)


def test_several_candidates_only_where_they_were_asked_for() -> None:
    given = [{"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": "stop"} for text in ("a", "b")]
    for stream in (False, True):
        request = {"generationConfig": {"candidateCount": 2}, "stream": stream, "alt": "sse"}
        kind, body = PROVIDER.render(given, request=request, response_id=None, model=None, usage={})
        assert messages(PROVIDER.response(200, kind, body, request)) == given
    _, body = PROVIDER.render(given, request={}, response_id=None, model=None, usage={})
    assert len(json.loads(body)["candidates"]) == 1
