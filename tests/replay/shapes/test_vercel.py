from typing import Any

import pytest

from spanreplay.replay.reading.messages import input_view, messages
from spanreplay.replay.shapes import vercel

CALL = {"type": "tool-call", "toolCallId": "c", "toolName": "add", "input": {"a": 1}}


def result(**fields: Any) -> dict[str, Any]:
    return {"type": "tool-result", "toolCallId": "c", "toolName": "add", **fields}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"output": {"type": "json", "value": {"sum": 2}}}, {"response": {"sum": 2}}),
        ({"output": {"type": "text", "value": "two"}}, {"response": "two"}),
        ({"output": {"type": "error-text", "value": "no"}}, {"response": "no", "is_error": True}),
        ({"output": {"type": "error-json", "value": {"why": 1}}}, {"response": {"why": 1}, "is_error": True}),
        ({"output": {"type": "content", "value": [{"type": "text", "text": "2"}]}}, {"response": [{"type": "text", "text": "2"}]}),
        ({"output": {"type": "execution-denied", "reason": "risky"}}, {"response": {"denied": True, "reason": "risky"}}),
        ({"output": {"type": "something new", "x": 1}}, {"response": {"type": "something new", "x": 1}}),
        ({"result": {"sum": 2}}, {"response": {"sum": 2}}),
        ({"result": "no", "isError": True}, {"response": "no", "is_error": True}),
    ],
    ids=["json", "text", "error-text", "error-json", "content", "denied", "unknown", "version 4", "version 4 error"],
)
def test_results_of_tools(given: dict[str, Any], told: dict[str, Any]) -> None:
    (message,) = messages([{"role": "tool", "content": [result(**given)]}], "user") or []
    assert message == {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "name": "add", **told}]}


@pytest.mark.parametrize(
    "call",
    [CALL, {**CALL, "input": '{"a": 1}'}, {"type": "tool-call", "toolCallId": "c", "toolName": "add", "args": {"a": 1}}],
    ids=["object", "text", "version 4"],
)
def test_calls_and_what_stands_beside_them(call: dict[str, Any]) -> None:
    content = [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "I add."}, call]
    assert input_view([{"role": "user", "content": "hi"}, {"role": "assistant", "content": content}])["messages"] == [
        {"role": "user", "parts": [{"type": "text", "content": "hi"}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "hm"},
                {"type": "text", "content": "I add."},
                {"type": "tool_call", "id": "c", "name": "add", "arguments": {"a": 1}},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"type": "file", "mediaType": "image/png", "data": "aGk="}, {"type": "blob", "modality": "image", "content": "aGk="}),
        (
            {"type": "file", "mediaType": "image/png", "data": {"type": "data", "data": "aGk="}},
            {"type": "blob", "modality": "image", "content": "aGk="},
        ),
        (
            {"type": "file", "mediaType": "image/png", "data": {"type": "url", "url": "https://x/a.png"}},
            {"type": "uri", "modality": "image", "uri": "https://x/a.png"},
        ),
        (
            {"type": "image", "mimeType": "image/png", "image": "https://x/a.png"},
            {"type": "uri", "modality": "image", "uri": "https://x/a.png"},
        ),
        ({"type": "image", "mimeType": "image/png", "image": {"0": 1}}, {"type": "file", "modality": "image", "data": {"0": 1}}),
    ],
)
def test_files_and_images_of_all_versions(given: dict[str, Any], told: dict[str, Any]) -> None:
    (message,) = vercel.messages({"role": "user", "content": [given]}, "user")
    assert message["parts"] == [{"mime_type": "image/png", **told}]
    assert vercel.messages(
        {"content": [{"type": "file", "mediaType": "application/pdf", "filename": "a.pdf", "data": "aGk="}]}, "user"
    ) == [
        {
            "role": "user",
            "parts": [{"type": "blob", "mime_type": "application/pdf", "modality": "document", "content": "aGk=", "filename": "a.pdf"}],
        }
    ]


def test_approvals_keep_who_decided_what() -> None:
    content = [
        {"type": "tool-approval-request", "approvalId": "p", "toolCallId": "c"},
        {"type": "tool-approval-response", "approvalId": "p", "approved": False, "reason": "risky"},
        {"type": "redacted-reasoning", "data": "x"},
    ]
    (message,) = vercel.messages({"role": "tool", "content": content}, "user")
    assert message["parts"] == [
        {"type": "tool_approval_request", "approval_id": "p", "tool_call_id": "c"},
        {"type": "tool_approval_response", "approval_id": "p", "approved": False, "reason": "risky"},
        {"type": "redacted_reasoning", "data": "x"},
    ]


def test_messages_of_others_are_left_to_others() -> None:
    assert not vercel.reads({"role": "user", "content": "hi"})
    assert not vercel.reads({"role": "user", "content": [{"type": "text", "text": "hi"}, 1, {"type": ["file"]}]})
    assert not vercel.reads({"role": "assistant", "content": [{"type": "tool-call", "id": "c", "name": "add"}]})
    assert vercel.asked({"messages": []}) is None
    assert vercel.answered({"choices": []}) is None
