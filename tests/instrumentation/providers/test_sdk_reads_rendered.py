"""The official clients accept what is rendered from messages alone, plain and streamed."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google import genai
from google.genai import types

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


def answer(messages: list[dict[str, Any]], usage: dict[str, int] | None = None) -> Callable[[httpx2.Request], httpx2.Response]:
    def handle(request: httpx2.Request) -> httpx2.Response:
        found = recognise(request.method, request.url.raw_path.decode(), request.headers["content-type"], request.read())
        assert found is not None
        counted = USAGE if usage is None else usage
        kind, body = found[0].render(messages, request=found[1], response_id="id_1", model="m-1", usage=counted)
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


@pytest.fixture
def gemini() -> Iterator[genai.Client]:
    with httpx2.Client(transport=httpx2.MockTransport(answer(MESSAGES))) as http:
        yield gemini_client(http, answer(MESSAGES))


def gemini_client(http: httpx2.Client, handle: Callable[[httpx2.Request], httpx2.Response]) -> genai.Client:
    ahttp = httpx2.AsyncClient(transport=httpx2.MockTransport(handle))
    options = types.HttpOptions(base_url="http://model.invalid", httpx_client=http, httpx_async_client=ahttp)
    return genai.Client(api_key="none", http_options=options)


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


def check_gemini(parts: list[types.Part]) -> None:
    assert [part.text for part in parts if part.text is not None] == [TEXT]
    calls = [part.function_call for part in parts if part.function_call is not None]
    check_calls([(str(call.id), str(call.name), call.args) for call in calls])


def parts_of(response: types.GenerateContentResponse) -> list[types.Part]:
    assert response.candidates is not None
    content = response.candidates[0].content
    return [] if content is None else content.parts or []


def test_generate_content(gemini: genai.Client) -> None:
    async def awaited() -> types.GenerateContentResponse:
        return await gemini.aio.models.generate_content(model="m", contents="Hi")

    for made in (gemini.models.generate_content(model="m", contents="Hi"), asyncio.run(awaited())):
        assert (made.response_id, made.model_version, made.candidates and made.candidates[0].finish_reason) == (
            "id_1",
            "m-1",
            types.FinishReason.STOP,
        )
        check_gemini(parts_of(made))
        assert made.usage_metadata is not None
        assert (made.usage_metadata.prompt_token_count, made.usage_metadata.cached_content_token_count) == (40, 32)


def test_generate_content_streamed(gemini: genai.Client) -> None:
    async def awaited() -> list[types.GenerateContentResponse]:
        return [chunk async for chunk in await gemini.aio.models.generate_content_stream(model="m", contents="Hi")]

    for chunks in (list(gemini.models.generate_content_stream(model="m", contents="Hi")), asyncio.run(awaited())):
        check_gemini([part for chunk in chunks for part in parts_of(chunk)])
        last = chunks[-1]
        assert last.candidates is not None
        assert last.candidates[0].finish_reason == types.FinishReason.STOP
        assert last.usage_metadata is not None
        assert last.usage_metadata.total_token_count == 61


# ---- what other instrumentations leave of an answer --------------------------------------------------------------

LEFT: dict[str, list[dict[str, Any]]] = {
    "calls without ids, arguments as text, no reason to finish": [
        {"role": "assistant", "parts": [{"type": "tool_call", "name": "weather", "arguments": '{"city": "Zürich"}'} for _ in range(2)]}
    ],
    "fields that the API does not know": [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "Yes", "annotations": [], "id": "x", "index": 0}],
            "finish_reason": "STOP",
        }
    ],
    "reasoning without what signs it": [
        {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "Yes"}], "finish_reason": None}
    ],
    "a refusal": [{"role": "assistant", "parts": [{"type": "refusal", "content": "No."}], "finish_reason": "stop"}],
    "nothing said": [{"role": "assistant", "parts": [], "finish_reason": "stop"}],
    "an empty text": [{"role": "assistant", "parts": [{"type": "text", "content": ""}], "finish_reason": "stop"}],
    "a text in two messages": [
        {"role": "assistant", "parts": [{"type": "text", "content": "Ye"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "s"}]},
    ],
}
SAID = {
    "calls without ids, arguments as text, no reason to finish": "",
    "fields that the API does not know": "Yes",
    "reasoning without what signs it": "Yes",
    "a refusal": "No.",
    "nothing said": "",
    "an empty text": "",
    "a text in two messages": "Yes",
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("left", LEFT)
def test_answers_that_others_recorded(left: str, stream: bool) -> None:
    with httpx2.Client(transport=httpx2.MockTransport(answer(LEFT[left], {}))) as http:
        for said, calls in (_chat(http, stream), _responses(http, stream), _messages(http, stream), _gemini(http, stream)):
            assert said == SAID[left]
            assert [(name, made) for _, name, made in calls] == [("weather", {"city": "Zürich"})] * (2 if left.startswith("calls") else 0)
            assert len({call_id for call_id, _, _ in calls} - {None}) in (len(calls), 0), "two calls have the same id"


Told = tuple[str, list[tuple[str | None, str | None, Any]]]


def _chat(http: httpx2.Client, stream: bool) -> Told:
    client = openai.OpenAI(api_key="none", base_url="http://model.invalid/v1", http_client=http)
    if stream:
        with client.chat.completions.stream(model="m", messages=ASK) as events:
            message: Any = events.get_final_completion().choices[0].message
    else:
        made = client.chat.completions.create(model="m", messages=ASK)
        type(made).model_validate(made.model_dump())
        message = made.choices[0].message
    calls = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]
    return message.content or message.refusal or "", calls


def _responses(http: httpx2.Client, stream: bool) -> Told:
    client = openai.OpenAI(api_key="none", base_url="http://model.invalid/v1", http_client=http)
    if stream:
        events = list(client.responses.create(model="m", input="Hi", stream=True))
        for event in events:
            type(event).model_validate(event.model_dump())
        made: Any = events[-1].response  # type: ignore[union-attr]
    else:
        made = client.responses.create(model="m", input="Hi")
        type(made).model_validate(made.model_dump())
    calls = [(item.call_id, item.name, json.loads(item.arguments)) for item in made.output if item.type == "function_call"]
    chunks = [chunk for item in made.output if item.type == "message" for chunk in item.content]
    return "".join(chunk.refusal if chunk.type == "refusal" else chunk.text for chunk in chunks), calls


def _messages(http: httpx2.Client, stream: bool) -> Told:
    client = anthropic.Anthropic(api_key="none", base_url="http://model.invalid", http_client=http)
    if stream:
        with client.messages.stream(model="m", max_tokens=9, messages=ASK) as events:
            made: Any = events.get_final_message()
    else:
        made = client.messages.create(model="m", max_tokens=9, messages=ASK)
        type(made).model_validate(made.model_dump())
    calls = [(block.id, block.name, block.input) for block in made.content if block.type == "tool_use"]
    return "".join(block.text for block in made.content if block.type == "text"), calls


def _gemini(http: httpx2.Client, stream: bool) -> Told:
    client = gemini_client(http, answer([]))
    if stream:
        chunks = list(client.models.generate_content_stream(model="m", contents="Hi"))
    else:
        chunks = [client.models.generate_content(model="m", contents="Hi")]
    parts = [part for chunk in chunks for part in parts_of(chunk)]
    calls = [(call.id, call.name, call.args) for part in parts if (call := part.function_call) is not None]
    return "".join(part.text for part in parts if part.text and not part.thought), calls


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
