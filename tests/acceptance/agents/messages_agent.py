"""An agent on Anthropic messages: plain, asynchronous and streamed loops."""

import asyncio
from typing import Any, Final

from anthropic import Anthropic, AsyncAnthropic

from acceptance.agents.toolbox import Talk, Task, description, main, parameters

MODEL: Final = "claude-haiku-4-5"


def _client(base_url: str) -> Any:
    return Anthropic(base_url=base_url, api_key="sk-test", max_retries=0)


def _async_client(base_url: str) -> Any:
    return AsyncAnthropic(base_url=base_url, api_key="sk-test", max_retries=0)


def _begin(task: Task, talk: Talk) -> dict[str, Any]:
    talk.messages = [{"role": "user", "content": task.question}]
    return {
        "model": MODEL,
        "max_tokens": 4096,
        "system": task.system,
        "tools": [{"name": n, "description": description(n), "input_schema": parameters(n)} for n in task.tools],
    }


def _said(talk: Talk, message: Any) -> list[Any]:
    """Note what the model said; returns the tool calls in it."""
    blocks = [block.model_dump(exclude_none=True) for block in message.content]
    talk.messages.append({"role": "assistant", "content": blocks})
    talk.reasoning += [block for block in blocks if block["type"].endswith("thinking")]
    calls = [block for block in message.content if block.type == "tool_use"]
    if not calls:
        talk.final = "".join(block.text for block in message.content if block.type == "text")
    return calls


def _answer(talk: Talk, calls: list[Any], texts: list[str]) -> None:
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in zip(calls, texts, strict=True)]
    if results:
        talk.messages.append({"role": "user", "content": results})


def plain(base_url: str, task: Task, talk: Talk) -> None:
    """One request after the other."""
    request = _begin(task, talk)
    with _client(base_url) as client:
        while talk.final is None:
            calls = _said(talk, client.messages.create(messages=talk.messages, **request))
            _answer(talk, calls, [talk.use_now(c.name, c.input, c.id) for c in calls])


async def asynchronous(base_url: str, task: Task, talk: Talk) -> None:
    """Tool calls side by side."""
    request = _begin(task, talk)
    async with _async_client(base_url) as client:
        while talk.final is None:
            calls = _said(talk, await client.messages.create(messages=talk.messages, **request))
            _answer(talk, calls, await asyncio.gather(*(talk.use(c.name, c.input, c.id) for c in calls)))


def streamed(base_url: str, task: Task, talk: Talk) -> None:
    """The SDK's own helper puts the events together."""
    request = _begin(task, talk)
    with _client(base_url) as client:
        while talk.final is None:
            with client.messages.stream(messages=talk.messages, **request) as stream:
                words = list(stream.text_stream)
                message = stream.get_final_message()
            calls = _said(talk, message)
            assert "".join(words) == "".join(block.text for block in message.content if block.type == "text")
            _answer(talk, calls, [talk.use_now(c.name, c.input, c.id) for c in calls])


async def streamed_asynchronous(base_url: str, task: Task, talk: Talk) -> None:
    """The SDK's own helper, tool calls side by side."""
    request = _begin(task, talk)
    async with _async_client(base_url) as client:
        while talk.final is None:
            async with client.messages.stream(messages=talk.messages, **request) as stream:
                message = await stream.get_final_message()
            calls = _said(talk, message)
            _answer(talk, calls, await asyncio.gather(*(talk.use(c.name, c.input, c.id) for c in calls)))


LOOPS: Final = {"plain": plain, "async": asynchronous, "stream": streamed, "astream": streamed_asynchronous}

if __name__ == "__main__":
    main(LOOPS)
