"""An agent that meets every way in which a model fails, notes what it saw, and in the end dies of one.

``faults_agent.py URL CLOSED_URL``: a server that gives the responses of ``test_faults.py`` in their order, and an address where nobody
listens.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any, Final

from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

from acceptance.agents.toolbox import Talk
from spanreplay.instrumentation import agent_run

URL, CLOSED = sys.argv[1:3] if len(sys.argv) > 2 else ("", "")
CHAT: Final[Any] = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Hello?"}]}
RESPONSE: Final[Any] = {"model": "gpt-5.5", "input": "Hello?"}
MESSAGE: Final[Any] = {"model": "claude-haiku-4-5", "max_tokens": 99, "messages": [{"role": "user", "content": "Hello?"}]}


def _openai(url: str = URL, **given: Any) -> Any:
    return OpenAI(base_url=f"{url}/v1", api_key="sk-test", **{"max_retries": 0, **given})


def _async_openai(**given: Any) -> Any:
    return AsyncOpenAI(base_url=f"{URL}/v1", api_key="sk-test", **{"max_retries": 0, **given})


def _anthropic(url: str = URL, **given: Any) -> Any:
    return Anthropic(base_url=url, api_key="sk-test", **{"max_retries": 0, **given})


def _ask(client: Any) -> Any:
    with client:
        return client.chat.completions.create(**CHAT).choices[0].message.content


def _ask_anthropic(client: Any) -> Any:
    with client:
        return client.messages.create(**MESSAGE).content[0].text


def _stream(seen: list[Any], *, leave_after: int = 99, **given: Any) -> None:
    with _openai(**given) as client, client.chat.completions.create(stream=True, **CHAT) as stream:
        for number, chunk in enumerate(stream, 1):
            seen.append(chunk.choices[0].delta.content)
            if number == leave_after:
                break


async def _async_stream(seen: list[Any], *, leave_after: int = 99) -> None:
    async with _async_openai() as client:
        stream = await client.chat.completions.create(stream=True, **CHAT)
        async with stream:
            number = 0
            async for chunk in stream:
                seen.append(chunk.choices[0].delta.content)
                number += 1
                if number == leave_after:
                    break


def _message_stream(seen: list[Any], *, leave_after: int = 99) -> None:
    with _anthropic() as client, client.messages.stream(**MESSAGE) as stream:
        for number, event in enumerate(stream, 1):
            seen.append(event.type)
            if number == leave_after:
                break


def _response_stream(seen: list[Any]) -> None:
    with _openai() as client:
        seen.extend(event.type for event in client.responses.create(stream=True, **RESPONSE))


async def _async_retry() -> Any:
    async with _async_openai(max_retries=1) as client:
        return (await client.chat.completions.create(**CHAT)).choices[0].message.content


async def _given_up() -> Any:
    async with _async_openai() as client, asyncio.timeout(0.15):
        return await client.chat.completions.create(**CHAT)


async def _async_anthropic_retry() -> Any:
    async with AsyncAnthropic(base_url=URL, api_key="sk-test", max_retries=2) as client:
        made: Any = await client.messages.create(**MESSAGE)
        return made.content[0].text


FAULTS: Final[dict[str, Callable[[list[Any]], Any]]] = {
    "bad request": lambda seen: _ask(_openai()),
    "limit, then an answer": lambda seen: _ask(_openai(max_retries=1)),
    "limit twice": lambda seen: asyncio.run(_async_retry()),
    "no answer in time": lambda seen: _ask(_openai(timeout=0.15)),
    "nobody listens": lambda seen: _ask(_openai(CLOSED)),
    "cut JSON": lambda seen: _ask(_openai()),
    "a page instead of JSON": lambda seen: _ask(_openai()),
    "hung up before the answer": lambda seen: _ask(_openai()),
    "stream cut": _stream,
    "stream stalls": lambda seen: _stream(seen, timeout=0.15),
    "stream left early": lambda seen: _stream(seen, leave_after=2),
    "async stream cut": lambda seen: asyncio.run(_async_stream(seen)),
    "async stream left early": lambda seen: asyncio.run(_async_stream(seen, leave_after=1)),
    "given up": lambda seen: asyncio.run(_given_up()),
    "response fails in its stream": _response_stream,
    "messages: bad request": lambda seen: _ask_anthropic(_anthropic()),
    "messages: overloaded, limit, then an answer": lambda seen: asyncio.run(_async_anthropic_retry()),
    "messages: no answer in time": lambda seen: _ask_anthropic(_anthropic(timeout=0.15)),
    "messages: nobody listens": lambda seen: _ask_anthropic(_anthropic(CLOSED)),
    "messages: cut JSON": lambda seen: _ask_anthropic(_anthropic()),
    "messages: stream cut": _message_stream,
    "messages: error in the stream": _message_stream,
    "messages: stream left early": lambda seen: _message_stream(seen, leave_after=3),
}


def main() -> None:
    """Meet them all."""
    for name, fault in FAULTS.items():
        talk = Talk()
        seen: list[Any] = []
        with agent_run(name) as run:
            try:
                talk.final = fault(seen)
            except Exception as error:
                talk.met(error)
            run.output = talk.final
        print(json.dumps({"fault": name, "final": talk.final, "seen": seen, "errors": talk.errors}))
    with agent_run("dies"):
        _ask(_openai())


if __name__ == "__main__":
    main()
