"""Responses: the request's items, statuses, streams that end without the finished response."""

import json
from pathlib import Path
from typing import Any

import pytest

from spanreplay.instrumentation import _sse
from spanreplay.instrumentation.provider import ModelResponse
from spanreplay.instrumentation.providers.openai_responses import PROVIDER
from spanreplay.semconv import attributes as names

FIXTURES = Path(__file__).parents[2] / "fixtures" / "providers" / "openai_responses"


def plain(**body: Any) -> ModelResponse:
    return PROVIDER.response(200, "application/json", json.dumps({"output": [], **body}).encode(), {})


def message(response: ModelResponse) -> Any:
    return json.loads(str(response.attributes[names.GEN_AI_OUTPUT_MESSAGES]))[0]


def events() -> list[dict[str, Any]]:
    return [json.loads(event.data) for event in _sse.events((FIXTURES / "stream.sse").read_bytes())]


def streamed(made: list[dict[str, Any]]) -> ModelResponse:
    return PROVIDER.response(200, "text/event-stream", _sse.render((event["type"], event) for event in made), {})


def test_request() -> None:
    view = PROVIDER.request(json.loads((FIXTURES / "request.json").read_text("utf-8"))).attributes
    assert json.loads(str(view[names.GEN_AI_SYSTEM_INSTRUCTIONS])) == [{"type": "text", "content": "Answer in one sentence."}]
    assert json.loads(str(view[names.GEN_AI_INPUT_MESSAGES])) == [
        {"role": "developer", "parts": [{"type": "text", "content": "Metric units."}]},
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "And this?"},
                {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "aGVsbG8=", "detail": "auto"},
                {"type": "file", "mime_type": None, "modality": "image", "file_id": "file-1"},
                {"type": "uri", "mime_type": None, "modality": "document", "uri": "https://example.com/a.pdf"},
                {"type": "input_scent", "note": "rose"},
            ],
        },
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "", "id": "rs_0", "summary": [], "encrypted_content": "gAAAopaque=="},
                {"type": "tool_call", "id": "call_1", "name": "look", "arguments": {"at": [1, 2]}},
            ],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": "a cat"}]},
        {"role": "assistant", "parts": [{"type": "item_reference", "id": "msg_9"}]},
    ]
    assert json.loads(str(view[names.GEN_AI_TOOL_DEFINITIONS]))[1] == {"type": "web_search"}
    json_names = (names.GEN_AI_SYSTEM_INSTRUCTIONS, names.GEN_AI_INPUT_MESSAGES, names.GEN_AI_TOOL_DEFINITIONS)
    assert {name: value for name, value in view.items() if name not in json_names} == {
        names.GEN_AI_OPERATION_NAME: "chat",
        names.GEN_AI_PROVIDER_NAME: "openai",
        names.OPENAI_API_TYPE: "responses",
        names.GEN_AI_REQUEST_MODEL: "gpt-weather-1",
        names.GEN_AI_REQUEST_PREVIOUS_RESPONSE_ID: "resp_1",
        names.GEN_AI_CONVERSATION_ID: "conv_5",
        names.GEN_AI_REQUEST_TEMPERATURE: 0.5,
        names.GEN_AI_REQUEST_TOP_P: 1.0,
        names.GEN_AI_REQUEST_MAX_TOKENS: 300,
        names.GEN_AI_REQUEST_REASONING_LEVEL: "high",
        names.GEN_AI_OUTPUT_TYPE: "json",
        names.GEN_AI_REQUEST_STREAM: False,
    }


def test_request_with_plain_text_or_a_stored_prompt() -> None:
    view = PROVIDER.request({"model": "m", "input": "Hi"}).attributes
    assert json.loads(str(view[names.GEN_AI_INPUT_MESSAGES])) == [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]
    stored = {"prompt": {"id": "pmpt_1", "version": "2"}}
    assert PROVIDER.matches("POST", "/v1/responses", stored)
    assert PROVIDER.request(stored).attributes[names.GEN_AI_PROMPT_VERSION] == "2"


@pytest.mark.parametrize("dropped", ["output", "terminal"])
def test_items_come_from_the_events_where_the_end_does_not_bring_them(dropped: str) -> None:
    made = events()
    if dropped == "output":
        made[-1]["response"]["output"] = []
    else:
        made.pop()
    response = streamed(made)
    assert response.complete is (dropped == "output")
    expected = json.loads((FIXTURES / "expected.json").read_text("utf-8"))
    assert message(response)["parts"] == expected["messages"][0]["parts"]


def test_deltas_are_kept_where_the_stream_was_cut_inside_an_item() -> None:
    made = [event for event in events() if event["type"] not in ("response.output_item.done", "response.completed")]
    made = [event for event in made if not event["type"].endswith("arguments.done")]
    assert "finish_reason" not in message(streamed(made))
    assert "finish_reason" not in message(streamed(made[2:])), "also where the stream's beginning is not there"
    parts = message(streamed(made))["parts"]
    assert [part.get("content", part.get("arguments")) for part in parts] == [
        "Both cities are needed.",
        None,
        "Two places, one moment…",
        {"city": "Zürich", "days": 2},
        {"city": "Łódź", "days": 1},
    ]


@pytest.mark.parametrize(
    ("body", "outcome", "reason", "error"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "ok", "length", None),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "ok", "content_filter", None),
        ({"status": "failed", "error": {"code": "server_error", "message": "Oh."}}, "error", "error", ("server_error", "Oh.")),
        ({"status": "cancelled"}, "error", "error", ("cancelled", "the response was cancelled")),
        ({"status": "completed"}, "ok", "stop", None),
    ],
)
def test_status(body: dict[str, Any], outcome: str, reason: str, error: tuple[str, str] | None) -> None:
    for response in (plain(**body), streamed([{"type": f"response.{body['status']}", "response": {"output": [], **body}}])):
        assert (response.outcome, response.complete, response.error) == (outcome, True, error)
        assert response.attributes[names.GEN_AI_RESPONSE_STATUS] == body["status"]
        assert response.attributes[names.GEN_AI_RESPONSE_FINISH_REASONS] == (reason,)


def test_queued_in_the_background_has_no_message_yet() -> None:
    response = plain(status="queued")
    assert response.attributes == {names.GEN_AI_RESPONSE_STATUS: "queued"}


def test_refusal_custom_call_raw_reasoning_and_phase_survive() -> None:
    output = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "raw"}]},
        {"type": "message", "role": "assistant", "phase": "commentary", "content": [{"type": "output_text", "text": "a"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        {"type": "custom_tool_call", "call_id": "c", "name": "note", "input": "{}"},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"},
    ]
    expected = [
        {"type": "reasoning", "content": "raw", "id": "rs_1", "summary": [], "content_parts": [{"type": "reasoning_text", "text": "raw"}]},
        {"type": "text", "content": "a", "phase": "commentary"},
        {"type": "refusal", "refusal": "no"},
        {"type": "tool_call", "id": "c", "name": "note", "arguments": "{}", "tool_type": "custom"},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"},
    ]
    made = message(plain(status="completed", output=output))
    assert made == {"role": "assistant", "parts": expected, "finish_reason": "tool_call"}
    for stream in (False, True):
        kind, body = PROVIDER.render([made], request={"stream": stream}, response_id=None, model=None, usage={})
        assert message(PROVIDER.response(200, kind, body, {})) == made


def test_reasoning_of_another_instrumentation_is_written_as_a_summary() -> None:
    given = [{"role": "assistant", "parts": [{"type": "reasoning", "content": "thought"}]}]
    _, body = PROVIDER.render(given, request={}, response_id="resp_1", model=None, usage={})
    assert json.loads(body)["output"][0]["summary"] == [{"type": "summary_text", "text": "thought"}]
