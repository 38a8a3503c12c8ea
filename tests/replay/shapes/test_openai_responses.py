from typing import Any

from spanreplay.replay.reading.messages import input_view, output_view
from spanreplay.replay.shapes import openai_responses

ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "1+1 and 2+2?"},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "two sums"}], "encrypted_content": "xyz"},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add", "arguments": '{"a":1}', "status": "completed"},
    {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "add", "arguments": '{"a":2}', "status": "completed"},
    {"type": "function_call_output", "call_id": "call_1", "output": "2"},
    {"type": "function_call_output", "call_id": "call_2", "output": '{"sum": 4}'},
    {"role": "assistant", "type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "2 and 4", "annotations": []}]},
]
SAID = [
    {"role": "user", "parts": [{"type": "text", "content": "1+1 and 2+2?"}]},
    {
        "role": "assistant",
        "parts": [
            {
                "type": "reasoning",
                "content": "two sums",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "two sums"}],
                "encrypted_content": "xyz",
            },
            {"type": "tool_call", "id": "call_1", "name": "add", "arguments": {"a": 1}},
            {"type": "tool_call", "id": "call_2", "name": "add", "arguments": {"a": 2}},
        ],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": "2"}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_2", "response": '{"sum": 4}'}]},
    {"role": "assistant", "parts": [{"type": "text", "content": "2 and 4"}]},
]


def test_a_request_and_a_bare_list_of_items_read_the_same() -> None:
    body = {
        "model": "gpt-5",
        "instructions": "add",
        "input": ITEMS,
        "temperature": 0.5,
        "tools": [{"type": "function", "name": "add", "parameters": {}}],
    }
    whole = input_view(body)
    assert whole["messages"] == SAID
    assert whole["system"] == [{"type": "text", "content": "add"}]
    assert whole["tools"] == [{"type": "function", "name": "add", "parameters": {}}]
    assert whole["params"] == {"temperature": 0.5}
    assert input_view(ITEMS)["messages"] == SAID
    assert input_view({"model": "gpt-5", "input": "hi"})["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]


def test_items_among_messages_are_messages() -> None:
    assert openai_responses.reads(ITEMS[2])
    assert openai_responses.messages(ITEMS[2], "user") == [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "call_1", "name": "add", "arguments": {"a": 1}}]}
    ]
    assert not openai_responses.reads({"role": "user", "content": "hi"})
    assert not openai_responses.reads({"type": "text", "text": "hi"})


def test_a_response_is_one_message() -> None:
    made = output_view({"id": "resp_1", "object": "response", "status": "completed", "output": ITEMS[1:4]})
    assert [part["type"] for message in made["messages"] for part in message["parts"]] == ["reasoning", "tool_call", "tool_call"]
    assert (len(made["messages"]), made["finish"]) == (1, "tool_call")
    assert output_view(ITEMS[2:4])["messages"][0]["parts"][1]["id"] == "call_2", "a bare list of output items"


NO_REQUESTS: list[dict[str, Any]] = [
    {"input": ["a", "b"], "model": "embed"},
    {"input": [1]},
    {"input": "hi"},
    {"input": [{"role": "user"}]},
    {"input": []},
    {},
]
NO_RESPONSES: list[dict[str, Any]] = [{"output": []}, {"output": "x"}, {"output": [{"a": 1}]}, {"output": {"message": {}}}, {}]


def test_what_is_no_request_or_response_is_none() -> None:
    assert [openai_responses.asked(body) for body in NO_REQUESTS] == [None] * len(NO_REQUESTS)
    assert [openai_responses.answered(body) for body in NO_RESPONSES] == [None] * len(NO_RESPONSES)


def test_a_list_of_responses_is_what_they_say_together() -> None:
    one = {"id": "resp_1", "object": "response", "output": [ITEMS[2]]}
    assert output_view([one]) == output_view(one)
    said = output_view([one, {**one, "output": ITEMS[-1:]}])
    assert [[part["type"] for part in message["parts"]] for message in said["messages"]] == [["tool_call"], ["text"]]
