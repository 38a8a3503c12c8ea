"""The official clients accept what is rendered from messages alone, plain and streamed."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from spanreplay.instrumentation.provider import recognise

TEXT = "Grüße, 世界 🌍\nsecond line"
ARGUMENTS = {"city": "Zürich", "days": [1, 2]}
MESSAGES: list[dict[str, Any]] = [
    {
        "role": "assistant",
        "parts": [
            {"type": "text", "content": TEXT},
            {"type": "tool_call", "id": "call_a", "name": "weather", "arguments": ARGUMENTS},
            {"type": "tool_call", "id": "call_b", "name": "now", "arguments": {}},
        ],
        "finish_reason": "tool_call",
    }
]
USAGE = {"gen_ai.usage.input_tokens": 40, "gen_ai.usage.output_tokens": 21, "gen_ai.usage.cache_read.input_tokens": 32}
ASK: list[Any] = [{"role": "user", "content": "Hi"}]


def answer(messages: list[dict[str, Any]]) -> Callable[[httpx2.Request], httpx2.Response]:
    def handle(request: httpx2.Request) -> httpx2.Response:
        found = recognise(request.method, request.url.path, request.headers["content-type"], request.read())
        assert found is not None
        kind, body = found[0].render(messages, request=found[1], response_id="id_1", model="m-1", usage=USAGE)
        return httpx2.Response(200, headers={"content-type": kind}, content=body)

    return handle


@pytest.fixture
def client() -> Iterator[openai.OpenAI]:
    with httpx2.Client(transport=httpx2.MockTransport(answer(MESSAGES))) as http:
        yield openai.OpenAI(api_key="none", base_url="http://model.invalid/v1", http_client=http, max_retries=0)


@pytest.fixture
def claude() -> Iterator[anthropic.Anthropic]:
    with httpx2.Client(transport=httpx2.MockTransport(answer(MESSAGES))) as http:
        yield anthropic.Anthropic(api_key="none", base_url="http://model.invalid", http_client=http, max_retries=0)


def check_calls(calls: list[tuple[str, str, object]]) -> None:
    assert [(call_id, name, json.loads(made) if isinstance(made, str) else made) for call_id, name, made in calls] == [
        ("call_a", "weather", ARGUMENTS),
        ("call_b", "now", {}),
    ]


def test_chat(client: openai.OpenAI) -> None:
    made = client.chat.completions.create(model="m", messages=ASK)
    message = made.choices[0].message
    assert (made.id, made.model, made.choices[0].finish_reason, message.content) == ("id_1", "m-1", "tool_calls", TEXT)
    check_calls([(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or [] if call.type == "function"])
    assert made.usage is not None
    assert made.usage.prompt_tokens_details is not None
    assert (made.usage.prompt_tokens, made.usage.total_tokens, made.usage.prompt_tokens_details.cached_tokens) == (40, 61, 32)
    type(made).model_validate(made.model_dump())


def test_chat_streamed(client: openai.OpenAI) -> None:
    chunks = list(client.chat.completions.create(model="m", messages=ASK, stream=True))
    assert all(type(chunk).model_validate(chunk.model_dump()) for chunk in chunks)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == TEXT
    with client.chat.completions.stream(model="m", messages=ASK, stream_options={"include_usage": True}) as stream:
        made = stream.get_final_completion()
    message = made.choices[0].message
    assert (made.choices[0].finish_reason, message.content, made.usage and made.usage.total_tokens) == ("tool_calls", TEXT, 61)
    check_calls([(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or []])


def test_responses(client: openai.OpenAI) -> None:
    made = client.responses.create(model="m", input="Hi", instructions="Be brief.")
    assert (made.id, made.status, made.output_text, made.instructions) == ("id_1", "completed", TEXT, "Be brief.")
    check_calls([(item.call_id, item.name, item.arguments) for item in made.output if item.type == "function_call"])
    assert made.usage is not None
    assert made.usage.input_tokens_details.cached_tokens == 32
    type(made).model_validate(made.model_dump())


def test_responses_streamed(client: openai.OpenAI) -> None:
    events = list(client.responses.create(model="m", input="Hi", stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == TEXT
    for event in events:
        type(event).model_validate(event.model_dump())
    with client.responses.stream(model="m", input="Hi") as stream:
        made = stream.get_final_response()
    assert (made.output_text, made.status) == (TEXT, "completed")
    check_calls([(item.call_id, item.name, item.arguments) for item in made.output if item.type == "function_call"])


def test_messages(claude: anthropic.Anthropic) -> None:
    made = claude.messages.create(model="m", max_tokens=9, messages=ASK)
    assert (made.id, made.model, made.stop_reason) == ("id_1", "m-1", "tool_use")
    assert [block.text for block in made.content if block.type == "text"] == [TEXT]
    check_calls([(block.id, block.name, block.input) for block in made.content if block.type == "tool_use"])
    assert (made.usage.input_tokens, made.usage.cache_read_input_tokens, made.usage.output_tokens) == (8, 32, 21)
    type(made).model_validate(made.model_dump())


def test_messages_streamed(claude: anthropic.Anthropic) -> None:
    events = list(claude.messages.create(model="m", max_tokens=9, messages=ASK, stream=True))
    for event in events:
        type(event).model_validate(event.model_dump())
    with claude.messages.stream(model="m", max_tokens=9, messages=ASK) as stream:
        assert "".join(stream.text_stream) == TEXT
        made = stream.get_final_message()
    assert (made.stop_reason, made.usage.output_tokens) == ("tool_use", 21)
    check_calls([(block.id, block.name, block.input) for block in made.content if block.type == "tool_use"])


REASONING: dict[str, dict[str, Any]] = {
    "openai.responses": {"type": "reasoning", "content": "hm", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
    "anthropic": {"type": "reasoning", "content": "hm", "signature": "c2ln"},
}


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_and_refusal(stream: bool) -> None:
    handle = answer(
        [
            {
                "role": "assistant",
                "parts": [REASONING["openai.responses"] | {"encrypted_content": "gA=="}, {"type": "refusal", "refusal": "No."}],
            }
        ]
    )
    with httpx2.Client(transport=httpx2.MockTransport(handle)) as http:
        client = openai.OpenAI(api_key="none", base_url="http://model.invalid/v1", http_client=http)
        if stream:
            with client.responses.stream(model="m", input="Hi") as events:
                response: Any = events.get_final_response()
        else:
            response = client.responses.create(model="m", input="Hi")
    thought, message = response.output
    assert (thought.id, thought.summary[0].text, thought.encrypted_content) == ("rs_1", "hm", "gA==")
    assert message.content[0].refusal == "No."
    handle = answer([{"role": "assistant", "parts": [REASONING["anthropic"], {"type": "text", "content": "No."}], "finish_reason": "stop"}])
    with httpx2.Client(transport=httpx2.MockTransport(handle)) as http:
        claude = anthropic.Anthropic(api_key="none", base_url="http://model.invalid", http_client=http)
        if stream:
            with claude.messages.stream(model="m", max_tokens=9, messages=ASK) as events_:
                made: Any = events_.get_final_message()
        else:
            made = claude.messages.create(model="m", max_tokens=9, messages=ASK)
    assert (made.content[0].thinking, made.content[0].signature, made.stop_reason) == ("hm", "c2ln", "end_turn")
