"""Messages of LangChain in each form that it serialises them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.replay.reading.messages import input_view, output_view
from spanreplay.replay.shapes import langchain

CALL: dict[str, Any] = {"name": "get_weather", "args": {"city": "Paris"}, "id": "call_1", "type": "tool_call"}
WIRE_CALL: dict[str, Any] = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
EXPECTED = {"type": "tool_call", "id": "call_1", "name": "get_weather", "arguments": {"city": "Paris"}}


def dumped(kind: str, /, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": kwargs}


@pytest.mark.parametrize(
    "message",
    [
        dumped(
            "AIMessage", content="", type="ai", tool_calls=[CALL], invalid_tool_calls=[], response_metadata={"finish_reason": "tool_calls"}
        ),
        dumped("AIMessageChunk", content="", tool_calls=[CALL], response_metadata={"finish_reason": "tool_calls"}),
        {
            "type": "ai",
            "content": "",
            "tool_calls": [CALL],
            "additional_kwargs": {"tool_calls": [WIRE_CALL]},
            "response_metadata": {"finish_reason": "tool_calls"},
            "id": "run-1",
        },
        {"type": "ai", "data": {"content": "", "tool_calls": [CALL], "response_metadata": {"finish_reason": "tool_calls"}}},
        {
            "type": "ai",
            "content": [{"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {"city": "Paris"}}],
            "tool_calls": [CALL],
            "response_metadata": {"stop_reason": "tool_use"},
        },
        {
            "role": "assistant",
            "content": "",
            "additional_kwargs": {"tool_calls": [WIRE_CALL], "refusal": None},
            "response_metadata": {"finish_reason": "tool_calls"},
        },
    ],
    ids=["dumpd", "dumpd of a chunk", "model_dump", "message_to_dict", "blocks", "chat message"],
)
def test_a_tool_call_is_read_once_from_every_form(message: dict[str, Any]) -> None:
    view = output_view(message)
    assert view["messages"] == [{"role": "assistant", "parts": [EXPECTED], "finish_reason": "tool_call"}]
    assert view["finish"] == "tool_call"


def test_a_block_whose_type_is_no_text_is_no_call() -> None:
    odd: dict[str, Any] = {"type": ["tool_use"], "name": "get_weather"}
    view = input_view([{"type": "ai", "content": [odd], "tool_calls": [CALL]}])
    assert view["messages"][0]["parts"][-1] == EXPECTED


def test_a_request_of_a_chat_model() -> None:
    view = input_view(
        {
            "messages": [
                [
                    dumped("SystemMessage", content="be kind", type="system"),
                    dumped("HumanMessage", content=[{"type": "text", "text": "look"}], type="human", name="Ann"),
                    dumped("ToolMessage", content="21", tool_call_id="call_1", type="tool", status="success"),
                ]
            ]
        }
    )
    assert view["messages"] == [
        {"role": "system", "parts": [{"type": "text", "content": "be kind"}]},
        {"role": "user", "parts": [{"type": "text", "content": "look"}], "name": "Ann"},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": "21"}]},
    ]


def test_pairs_of_role_and_content() -> None:
    view = input_view({"messages": [["human", "hi"], ["ai", "yes?"]]})
    assert [(message["role"], message["parts"][0]["content"]) for message in view["messages"]] == [("user", "hi"), ("assistant", "yes?")]


def test_prompts_of_a_model_that_completes() -> None:
    assert input_view({"prompts": ["Human: hi"]})["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "Human: hi"}]}]


def test_generations() -> None:
    message = dumped("AIMessage", content="Sunny.", type="ai")
    body = {"generations": [[{"text": "Sunny.", "generation_info": {"finish_reason": "stop"}, "message": message}]], "llm_output": {}}
    assert output_view(body) == {"messages": [{"role": "assistant", "parts": [{"type": "text", "content": "Sunny."}]}], "finish": "stop"}
    plain = {"generations": [[{"text": "Sunny."}]]}
    assert output_view(plain)["messages"] == [{"role": "assistant", "parts": [{"type": "text", "content": "Sunny."}]}]


def test_what_could_not_be_parsed_of_a_call_stays_with_it() -> None:
    broken = {"name": "f", "args": "{oops", "id": "c", "error": "no JSON", "type": "invalid_tool_call"}
    made = output_view({"type": "ai", "content": "", "tool_calls": [CALL], "invalid_tool_calls": [broken]})["messages"][0]["parts"]
    assert made == [EXPECTED, {"type": "tool_call", "id": "c", "name": "f", "arguments": "{oops", "error": "no JSON"}]


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": "hi"},
        {"type": "text", "text": "hi"},
        {"type": "function", "function": {"name": "f"}},
        {"type": "message", "role": "assistant", "content": []},
        {"lc": 1, "type": "not_implemented", "id": ["x"], "repr": "…"},
        {"lc": 1, "type": "constructor", "id": ["langchain", "prompts", "PromptTemplate"], "kwargs": {"template": "t"}},
        {"type": "tool", "name": "f"},
    ],
)
def test_messages_of_others_are_left_to_them(item: dict[str, Any]) -> None:
    assert not langchain.reads(item)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["ai", "human", "tool", "text", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["lc", "type", "kwargs", "id", "content", "tool_calls", "additional_kwargs", "data", "role", "generations", "message"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@settings(max_examples=150, deadline=None)
@given(JSON)
def test_nothing_raises(value: Any) -> None:
    input_view(value)
    output_view(value)
    if isinstance(value, dict) and langchain.reads(value):
        assert all(isinstance(message["parts"], list) for message in langchain.messages(value, "user"))


def test_a_pair_of_role_and_blocks_is_a_message() -> None:
    view = input_view({"messages": [["user", [{"type": "text", "text": "hi"}]], ["ai", "yes?"]]})
    assert [(message["role"], message["parts"]) for message in view["messages"]] == [
        ("user", [{"type": "text", "content": "hi"}]),
        ("assistant", [{"type": "text", "content": "yes?"}]),
    ]
