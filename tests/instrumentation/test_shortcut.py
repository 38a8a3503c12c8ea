"""A replay's shortcut at the methods of model SDKs: what it gives is what the SDK gives, and only where the record answers."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic.resources.messages.messages
import httpx2
import openai.resources.chat.completions.completions
import openai.resources.responses.responses
import pytest

from spanreplay.instrumentation import agent_run, shortcut
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
    """Paths of the requests that were not made."""
    found: list[str] = []
    begun = shortcut.begun

    def counted(method: shortcut.Method, client: Any, arguments: Any) -> Any:
        hit = begun(method, client, arguments)
        if hit is not None:
            found.append(method.path)
        return hit

    monkeypatch.setattr("spanreplay.instrumentation.stainless.begun", counted)
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


SDK_METHODS = {chat_loop: 2, chat_async: 3, responses: 2, messages: 1}


def inside(agent: Callable[[], Any], kept: list[Any]) -> Callable[[], Any]:
    def run() -> Any:
        with agent_run("talker"):
            kept[:] = agent()

    return run


def everything(made: Any) -> Any:
    """All that a caller can see of an object."""
    return type(made), made.model_dump(warnings=False), made._request_id, made.model_extra, made.model_fields_set, repr(made)


@pytest.mark.parametrize("agent", SDK_METHODS)
def test_it_gives_what_the_sdk_gives(agent: Callable[[], Any], hits: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    tape = recorded(inside(agent, kept))
    live = [everything(made) for made in kept]
    assert (len(live), hits) == (SDK_METHODS[agent], [])
    result = replayed(tape, inside(agent, kept))
    assert result.equal, result
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
def test_what_differs_goes_the_ordinary_way_and_is_found(change: dict[str, Any], hits: list[str]) -> None:
    def agent(**more: Any) -> Callable[[], Any]:
        return inside(lambda: [sync_client().chat.completions.create(**{"model": "m", "messages": asked(), **more})], [])

    tape = recorded(agent())
    (difference,) = replayed(tape, agent(**change)).differences
    assert difference.kind == "input"
    assert hits == []


def not_one_request(kind: str) -> Callable[[], Any]:
    def stream() -> Any:
        return list(sync_client().chat.completions.create(model="m", messages=asked(), stream=True))

    def raw() -> Any:
        return [sync_client().chat.completions.with_raw_response.create(model="m", messages=asked()).parse()]

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

    found: dict[str, Callable[[], Any]] = {"stream": stream, "raw": raw, "fails": fails, "hooked": hooked, "own class": own_class}
    return found[kind]


@pytest.mark.parametrize("kind", ["stream", "raw", "fails", "hooked", "own class"])
def test_what_is_more_than_a_request_and_an_object_goes_the_ordinary_way(kind: str, hits: list[str]) -> None:
    agent = not_one_request(kind)
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
