"""A replay's shortcut at the methods of model SDKs: what it gives is what the SDK gives, and only where the record answers."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import anthropic.resources.messages.messages
import httpx2
import openai.resources.chat.completions.completions
import openai.resources.responses.responses
import pytest

from spanreplay.instrumentation import agent_run, shortcut, stainless
from spanreplay.instrumentation.shims import callbacks
from spanreplay.instrumentation.shortcuts import anthropic as anthropic_methods
from spanreplay.instrumentation.shortcuts import openai as openai_methods
from spanreplay.instrumentation.transports import httpx2 as transport
from support.model_server import chat
from support.taped import recorded, replayed

TOOLS: Any = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]


@pytest.fixture(autouse=True)
def _transport() -> Iterator[None]:
    transport.install()
    yield
    transport.uninstall()


@pytest.fixture
def hits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Paths of the calls that were known before a request was made of their arguments."""
    found: list[str] = []
    foreseen = shortcut.foreseen

    def counted(method: shortcut.Method, client: Any, arguments: Any) -> Any:
        hit = foreseen(method, client, arguments)
        if hit is not None:
            found.append(method.path)
        return hit

    monkeypatch.setattr("spanreplay.instrumentation.stainless.foreseen", counted)
    for sdk in (openai_methods, anthropic_methods):
        sdk.install()
        assert sdk.status() == "active"
    yield found
    for sdk in (openai_methods, anthropic_methods):
        sdk.uninstall()


def answers(request: httpx2.Request) -> httpx2.Response:
    """Of each API, with what is unusual: a field that the SDK does not know, and a missing one."""
    asked = json.loads(request.content)
    headers = {"x-request-id": "req_1", "request-id": "req_2", "anthropic-workspace-id": "w_1"}
    if asked.get("stream"):
        return httpx2.Response(200, headers=headers | {"content-type": "text/event-stream"}, stream=Pieces(events(request.url.path)))
    if request.url.path.endswith("/responses"):
        message = {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "hi"}],
        }
        return httpx2.Response(200, headers=headers, json={"id": "r", "object": "response", "output": [message], "new": {"a": [1]}})
    if request.url.path.endswith("/messages"):
        content = [{"type": "text", "text": "hi"}, {"type": "from_the_future", "x": 1}]
        made = {"id": "m", "type": "message", "role": "assistant", "model": asked["model"], "content": content, "stop_reason": "end_turn"}
        return httpx2.Response(200, headers=headers, json=made)
    if asked["messages"][-1]["content"] == "fail":
        return httpx2.Response(400, headers=headers, json={"error": {"message": "no"}})
    return httpx2.Response(200, headers=headers, json=chat("hi") | {"new": {"a": [1]}})


class Pieces(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A body that comes event by event."""

    def __init__(self, body: bytes) -> None:
        self._pieces = body.split(b"\n\n")

    def __iter__(self) -> Iterator[bytes]:
        yield from (piece + b"\n\n" for piece in self._pieces if piece)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece


def events(path: str) -> bytes:
    """A stream of each API."""
    made: list[dict[str, Any]]
    if path.endswith("/responses"):
        whole = {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": [], "status": "completed"}
        delta = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "hi", "new": 1}
        made = [{"type": "response.created", "response": whole}, delta, {"type": "response.completed", "response": whole}]
    elif path.endswith("/messages"):
        message = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": [], "usage": {"output_tokens": 1}}
        made = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]
    else:
        piece = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        made = [
            piece | {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": None}], "new": {"a": [1]}},
            piece | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ]
    named = "".join(f"event: {event.get('type')}\n" * ("type" in event) + f"data: {json.dumps(event)}\n\n" for event in made)
    return (named if "type" in made[0] else f"{named}data: [DONE]\n\n").encode()


def sync_client() -> openai.OpenAI:
    return openai.OpenAI(api_key="k", base_url="http://model.test/v1", http_client=httpx2.Client(transport=httpx2.MockTransport(answers)))


def async_client() -> openai.AsyncOpenAI:
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answers))
    return openai.AsyncOpenAI(api_key="k", base_url="http://model.test/v1", http_client=client)


def claude() -> anthropic.Anthropic:
    return anthropic.Anthropic(
        api_key="k", base_url="http://model.test", http_client=httpx2.Client(transport=httpx2.MockTransport(answers))
    )


def asked(text: str = "hello") -> Any:
    return [{"role": "user", "content": text}]


def chat_loop() -> Any:
    """What was said is sent again as the SDK's own object."""
    client = sync_client()
    messages = asked()
    first = client.chat.completions.create(model="m", messages=messages, tools=TOOLS, temperature=0, seed=openai.omit)
    messages += [first.choices[0].message, {"role": "user", "content": "and?"}]
    second = client.chat.completions.create(model="m", messages=messages, extra_headers={"x-mine": "1"}, timeout=5)
    return [first, second]


def chat_async() -> Any:
    async def talk() -> Any:
        client = async_client()
        return list(await asyncio.gather(*(client.chat.completions.create(model="m", messages=asked(str(n))) for n in range(3))))

    return asyncio.run(talk())


def responses() -> Any:
    client = sync_client()
    first = client.responses.create(model="m", input="hello")
    given: Any = [*first.output, {"role": "user", "content": "and?"}]
    return [first, client.responses.create(model="m", input=given, instructions="be brief")]


def messages() -> Any:
    return [claude().messages.create(model="claude", max_tokens=10, system="s", messages=asked())]


def streams() -> Any:
    chunks = sync_client().chat.completions.create(model="m", messages=asked(), tools=TOOLS, stream=True)
    told = sync_client().responses.create(model="m", input="hello", stream=True)
    with claude().messages.create(model="claude", max_tokens=10, messages=asked(), stream=True) as said:
        return [*chunks, *told, *said]


def async_streams() -> Any:
    async def talk() -> Any:
        first = await async_client().chat.completions.create(model="m", messages=asked(), stream=True)
        second = await async_client().responses.create(model="m", input="hello", stream=True)
        return [chunk async for chunk in first] + [event async for event in second]

    return asyncio.run(talk())


def whole_responses() -> Any:
    raw = sync_client().chat.completions.with_raw_response.create(model="m", messages=asked(), timeout=9)
    with sync_client().responses.with_streaming_response.create(model="m", input="hello", extra_headers={"x-mine": "1"}) as streamed:
        read = streamed.parse()
    assert raw.http_response.request.extensions["timeout"]["read"] == 9
    assert streamed.http_response.request.headers["x-mine"] == "1"
    assert raw.headers["x-request-id"] == streamed.headers["x-request-id"] == "req_1"
    return [raw.parse(), read]


SDK_METHODS = {chat_loop: 2, chat_async: 3, responses: 2, messages: 1, streams: 3, async_streams: 2, whole_responses: 2}


def inside(agent: Callable[[], Any], kept: list[Any]) -> Callable[[], Any]:
    def run() -> Any:
        with agent_run("talker"):
            kept[:] = agent()

    return run


def everything(made: Any) -> Any:
    """All that a caller can see of an object."""
    request_id = getattr(made, "_request_id", None)
    return type(made), made.model_dump(warnings=False), request_id, made.model_extra, made.model_fields_set, repr(made)


@pytest.mark.parametrize("agent", SDK_METHODS)
def test_it_gives_what_the_sdk_gives(agent: Callable[[], Any], hits: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    tape = recorded(inside(agent, kept))
    live = [everything(made) for made in kept]
    assert live
    assert hits == []
    result = replayed(tape, inside(agent, kept))
    assert result.equal, result
    assert result.verdict.order_relaxed == 0
    assert [everything(made) for made in kept] == live
    assert len(hits) == SDK_METHODS[agent]
    openai_methods.uninstall()
    anthropic_methods.uninstall()
    monkeypatch.setenv("SPANREPLAY_SHORTCUTS", "off")
    slow = replayed(tape, inside(agent, kept))
    assert slow.verdict == result.verdict
    assert [everything(made) for made in kept] == live
    assert len(hits) == SDK_METHODS[agent]


def test_what_is_given_is_the_callers_own(hits: list[str]) -> None:
    kept: list[Any] = []
    tape = recorded(inside(chat_loop, kept))
    for _ in range(2):
        assert replayed(tape, inside(chat_loop, kept)).equal
        assert kept[0].choices[0].message.content == "hi"
        kept[0].choices[0].message.content = "changed"
    assert len(hits) == 4


def test_a_stream_that_is_left_earlier_is_judged_the_same(hits: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def agent(number: int) -> Callable[[], Any]:
        def read() -> Any:
            with sync_client().chat.completions.create(model="m", messages=asked(), stream=True) as chunks:
                return list(itertools.islice(chunks, number))

        return inside(read, [])

    tape = recorded(agent(9))
    quick = replayed(tape, agent(1)).verdict
    assert len(hits) == 1
    openai_methods.uninstall()
    monkeypatch.setenv("SPANREPLAY_SHORTCUTS", "off")
    assert replayed(tape, agent(1)).verdict == quick
    assert len(hits) == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        {"messages": asked("hello!")},
        {"temperature": 0.5},
        {"tools": TOOLS},
        {"model": "n"},
        {"extra_body": {"top_k": 1}},
    ],
)
def test_what_differs_goes_the_ordinary_way_and_is_found(change: dict[str, Any], stream: bool, hits: list[str]) -> None:
    def agent(**more: Any) -> Callable[[], Any]:
        given = {"model": "m", "messages": asked(), "stream": stream, **more}
        return inside(lambda: list(sync_client().chat.completions.create(**given)), [])

    tape = recorded(agent())
    (difference,) = replayed(tape, agent(**change)).differences
    assert difference.kind == "input"
    assert hits == []


def not_known(kind: str) -> Callable[[], Any]:
    def fails() -> Any:
        with pytest.raises(openai.BadRequestError):
            sync_client().chat.completions.create(model="m", messages=asked("fail"))
        return []

    def hooked() -> Any:
        client = httpx2.Client(transport=httpx2.MockTransport(answers), event_hooks={"request": [lambda _: None]})
        return [
            openai.OpenAI(api_key="k", base_url="http://model.test/v1", http_client=client).chat.completions.create(
                model="m", messages=asked()
            )
        ]

    def own_class() -> Any:
        class Mine(openai.OpenAI):
            pass

        client = httpx2.Client(transport=httpx2.MockTransport(answers))
        return [Mine(api_key="k", base_url="http://model.test/v1", http_client=client).chat.completions.create(model="m", messages=asked())]

    def left() -> Any:
        with sync_client().chat.completions.create(model="m", messages=asked(), stream=True) as chunks:
            return [next(iter(chunks))]

    found: dict[str, Callable[[], Any]] = {"left": left, "fails": fails, "hooked": hooked, "own class": own_class}
    return found[kind]


@pytest.mark.parametrize("kind", ["left", "fails", "hooked", "own class"])
def test_what_is_more_than_a_request_and_a_whole_response_goes_the_ordinary_way(kind: str, hits: list[str]) -> None:
    agent = not_known(kind)
    tape = recorded(inside(agent, []))
    assert replayed(tape, inside(agent, [])).equal
    assert hits == []


def test_a_method_that_somebody_has_patched_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    original = openai.resources.chat.completions.Completions.create
    monkeypatch.setattr(openai.resources.chat.completions.Completions, "create", lambda self, **given: original(self, **given))
    openai_methods.install()
    try:
        assert "patched" in openai_methods.status()
    finally:
        openai_methods.uninstall()


def test_an_older_release_is_told_of_a_request_only_what_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai._base_client, "make_request_options", lambda *, extra_headers=None, timeout=None: {})
    openai_methods._sdk.cache_clear()
    openai_methods.install()
    try:
        shortened: Any = openai.resources.responses.responses.Responses.create
        assert openai_methods.status() == "active"
        assert shortened is not shortened.__wrapped__
        assert openai_methods._sdk(openai).known(security={}, timeout=1) == {"timeout": 1}
    finally:
        openai_methods.uninstall()
        openai_methods._sdk.cache_clear()


def test_what_a_method_does_in_threads_has_no_place_in_the_order_of_jobs() -> None:
    async def create(_: object) -> bool:
        return callbacks._of_sdk.get()

    method = stainless._observed(create, type, cast("Any", None))
    assert asyncio.run(method(object()))
    assert not callbacks._of_sdk.get()
