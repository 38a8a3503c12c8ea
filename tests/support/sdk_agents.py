"""The real SDKs against a scripted server: clients, small agents, and the comparison of a run with its replays."""

import json
from collections.abc import Callable, Collection
from typing import Any

import anthropic
import httpx2
import openai

from spanreplay.semconv import attributes as names
from support.http_tape import Kept, Recorder, Tape, record, replay
from support.model_server import (
    ModelServer,
    Scripted,
    as_events,
    chat_chunks,
    message_events,
    response_events,
)

KEY = "sk-testKey0123456789abcdef"
ASK: list[Any] = [{"role": "user", "content": "Capital of France?"}]
MODEL = "gpt-4o-mini"
CLAUDE = "claude-test-1"


_open: list[httpx2.Client] = []


def close_clients() -> None:
    """Closes the synchronous clients made since."""
    while _open:
        _open.pop().close()


def _plain_client(make: Callable[..., httpx2.Client], options: dict[str, Any]) -> httpx2.Client:
    """A client that is closed after the test, without the cost of loading certificates."""
    timeout = options.get("timeout")
    _open.append(make(verify=False) if timeout is None else make(verify=False, timeout=timeout))
    return _open[-1]


def client(server: ModelServer, **options: Any) -> openai.OpenAI:
    """A client of the server."""
    made = _plain_client(openai.DefaultHttpxClient, options)
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY, http_client=made, **options)


def aclient(server: ModelServer, **options: Any) -> openai.AsyncOpenAI:
    """An asynchronous client of the server."""
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY, http_client=openai.DefaultAsyncHttpxClient(verify=False), **options)


def claude(server: ModelServer, **options: Any) -> anthropic.Anthropic:
    """An Anthropic client of the server."""
    made = _plain_client(anthropic.DefaultHttpxClient, options)
    return anthropic.Anthropic(base_url=server.url, api_key=KEY, http_client=made, **options)


def aclaude(server: ModelServer, **options: Any) -> anthropic.AsyncAnthropic:
    """An asynchronous Anthropic client of the server."""
    return anthropic.AsyncAnthropic(
        base_url=server.url, api_key=KEY, http_client=anthropic.DefaultAsyncHttpxClient(verify=False), **options
    )


def caught(agent: Callable[[], Any]) -> Callable[[], Any]:
    """An agent whose value is the exception it raises."""

    def run() -> Any:
        try:
            return agent()
        except Exception as error:
            return type(error), str(error), getattr(error, "status_code", None), type(error.__cause__)

    return run


def experiment(server: ModelServer, agent: Callable[[], Any], *script: Scripted, unlike: Collection[str] = ()) -> tuple[Any, Recorder]:
    """Record, replay with the server unable to answer, compare; returns the value and the recording.

    Args:
        server: answers while recording.
        agent: what to run.
        script: its answers.
        unlike: attributes in which two equal runs differ.
    """
    server.script(*script)
    value, recorded = record(agent)
    assert all(kept.outcome for kept in recorded.steps), "a step has not ended"
    assert recorded.ends == len(recorded.steps)
    before = len(server.requests)
    tape = Tape(recorded)
    again, replayed = replay(agent, tape)
    assert again == value
    assert len(server.requests) == before, "the replay sent a request"
    assert [ending(kept, unlike) for kept in replayed.steps] == [ending(kept, unlike) for kept in recorded.steps]
    assert [turn.given_up for turn in tape.turns] == [1] * len(tape.turns)
    unwatched = Tape(recorded)
    assert replay(agent, unwatched, sink=None)[0] == value
    assert [(s.path, s.outcome) for s in unwatched.ended_steps] == [(s.path, s.outcome) for s in tape.ended_steps]
    assert len(server.requests) == before
    return value, recorded


_PER_EXECUTION = {
    names.STEP_SEQ_START,
    names.STEP_SEQ_END,
    names.STEP_TURN,
    names.PROCESS_ID,
    names.WIRE_RESPONSE_CHUNKS,
    names.STEP_RETRY_OF,
    names.STEP_ERROR,
}


def ending(kept: Kept, unlike: Collection[str] = ()) -> dict[str, Any]:
    """All attributes that a replay must reproduce."""
    sizes = [size for size, _ in json.loads(kept.attributes.get(names.WIRE_RESPONSE_CHUNKS, "[]"))]
    return {**{name: value for name, value in kept.attributes.items() if name not in _PER_EXECUTION and name not in unlike}, "sizes": sizes}


def openai_chat(server: ModelServer) -> Any:
    """A chat completion."""
    return client(server).chat.completions.create(model=MODEL, messages=ASK, temperature=0.5).model_dump_json()


async def openai_chat_async(server: ModelServer) -> Any:
    """A chat completion, awaited."""
    async with aclient(server) as c:
        return (await c.chat.completions.create(model=MODEL, messages=ASK)).model_dump_json()


def openai_stream(server: ModelServer) -> Any:
    """A streamed chat completion."""
    stream = client(server).chat.completions.create(model=MODEL, messages=ASK, stream=True)
    return [chunk.model_dump_json() for chunk in stream]


def anthropic_stream(server: ModelServer) -> Any:
    """A streamed message."""
    return [e.model_dump_json() for e in claude(server).messages.create(model=CLAUDE, max_tokens=10, messages=ASK, stream=True)]


OPENAI_EVENTS = as_events(chat_chunks("Par", "is", "."), done=True)
RESPONSE_EVENTS = as_events(response_events(), named=True)
ANTHROPIC_EVENTS = as_events(message_events("Par", "is."), named=True)
