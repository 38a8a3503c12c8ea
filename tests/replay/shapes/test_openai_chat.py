from spanreplay.replay.reading.messages import definitions, input_view, output_view

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"n": 1}'}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
SAID = [
    {"role": "system", "parts": [{"type": "text", "content": "s"}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "f", "arguments": {"n": 1}}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "r"}]},
]


def test_a_request_and_bare_messages_read_the_same() -> None:
    messages = [
        {"role": "system", "content": "s"},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ]
    view = input_view({"model": "m", "messages": messages, "tools": [TOOL], "temperature": 0, "stream": True, "seed": None})
    assert (view["messages"], view["system"], view["params"]) == (SAID, [], {"temperature": 0})
    assert view["tools"] == definitions([TOOL]) == [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
    assert input_view(messages)["messages"] == input_view({"messages": messages})["messages"] == SAID


def test_a_response_has_a_message_a_choice() -> None:
    choices = [{"index": n, "message": {"role": "assistant", "content": str(n)}, "finish_reason": "stop"} for n in range(2)]
    view = output_view({"id": "x", "choices": choices})
    assert [message["parts"][0]["content"] for message in view["messages"]] == ["0", "1"]
    assert view["finish"] == "stop"


def test_a_completion_has_texts() -> None:
    asked = input_view({"model": "davinci", "prompt": ["a", "b"], "max_tokens": 5})
    assert [message["parts"][0]["content"] for message in asked["messages"]] == ["a", "b"]
    assert asked["params"] == {"max_tokens": 5}
    answered = output_view({"choices": [{"text": "c", "finish_reason": "length"}]})
    assert answered == {"messages": [{"role": "assistant", "parts": [{"type": "text", "content": "c"}]}], "finish": "length"}


def test_what_is_no_body_is_what_was_said() -> None:
    for value, text in ((["a"], "a"), ("a", "a"), ({"answer": 42}, '{"answer": 42}'), ([1, 2], "[1, 2]"), (7, "7"), ({"text": "a"}, "a")):
        assert output_view(value)["messages"] == [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]
    assert output_view({"text": "a", "finish_reason": "stop"})["finish"] == "stop"
