from spanreplay.replay.reading.messages import input_view, messages, output_view
from spanreplay.replay.shapes import bedrock

CALL = {"toolUse": {"toolUseId": "t1", "name": "add", "input": {"a": 1}}}
RESULT = {"toolResult": {"toolUseId": "t1", "status": "error", "content": [{"text": "no"}]}}


def test_blocks_become_parts() -> None:
    said = [
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
                {"text": "I add."},
                CALL,
                {"image": {"format": "png", "source": {"bytes": "AA=="}}},
                {"document": {"format": "pdf", "name": "d", "source": {"s3Location": {"uri": "s3://b/d"}}}},
                {"cachePoint": {"type": "default"}},
            ],
        },
        {"role": "user", "content": [RESULT, {"text": "go on"}]},
    ]
    assert messages(said, "user") == [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "hm", "signature": "s"},
                {"type": "text", "content": "I add."},
                {"type": "tool_call", "id": "t1", "name": "add", "arguments": {"a": 1}},
                {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AA=="},
                {"type": "uri", "modality": "document", "mime_type": "application/pdf", "uri": "s3://b/d", "name": "d"},
                {"type": "cachePoint", "content": {"type": "default"}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"type": "tool_call_response", "id": "t1", "response": [{"text": "no"}], "status": "error"},
                {"type": "text", "content": "go on"},
            ],
        },
    ]


def test_a_request_and_a_response() -> None:
    asked = input_view(
        {
            "modelId": "m",
            "messages": [{"role": "user", "content": [{"text": "hi"}]}],
            "system": [{"text": "be kind"}],
            "toolConfig": {"tools": [{"toolSpec": {"name": "add", "inputSchema": {"json": {"type": "object"}}}}]},
            "inferenceConfig": {"maxTokens": 9},
        }
    )
    assert asked == {
        "messages": [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}],
        "system": [{"type": "text", "content": "be kind"}],
        "tools": [{"type": "function", "name": "add", "parameters": {"type": "object"}}],
        "params": {"maxTokens": 9},
    }
    answered = output_view({"output": {"message": {"role": "assistant", "content": [CALL]}}, "stopReason": "tool_use"})
    assert answered == {
        "messages": [{"role": "assistant", "parts": [{"type": "tool_call", "id": "t1", "name": "add", "arguments": {"a": 1}}]}],
        "finish": "tool_use",
    }


def test_blocks_with_a_type_are_another_api() -> None:
    assert not bedrock.reads({"role": "user", "content": [{"type": "image", "image": {"url": "u"}}]})
    assert bedrock.asked({"messages": [{"role": "user", "content": "hi"}], "model": "m"}) is None
