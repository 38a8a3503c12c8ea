"""An agent on OpenAI responses: plain, asynchronous and streamed loops. Reasoning goes back to the model as it came."""

import asyncio
from typing import Any, Final

from openai import AsyncOpenAI, OpenAI

from acceptance.agents.toolbox import Talk, Task, description, main, parameters

MODEL: Final = "gpt-5.5"


def _client(base_url: str) -> Any:
    return OpenAI(base_url=f"{base_url}/v1", api_key="sk-test", max_retries=0)


def _async_client(base_url: str) -> Any:
    return AsyncOpenAI(base_url=f"{base_url}/v1", api_key="sk-test", max_retries=0)


def _begin(task: Task, talk: Talk) -> dict[str, Any]:
    talk.messages = [{"role": "user", "content": task.question}]
    return {
        "model": MODEL,
        "instructions": task.system,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "tools": [{"type": "function", "name": n, "description": description(n), "parameters": parameters(n)} for n in task.tools],
    }


def _said(talk: Talk, response: Any) -> list[Any]:
    """Note what the model said; returns the tool calls in it."""
    items = [item.model_dump(exclude_none=True) for item in response.output]
    talk.messages += items
    talk.reasoning += [item for item in items if item["type"] == "reasoning"]
    calls = [item for item in response.output if item.type == "function_call"]
    if not calls:
        talk.final = response.output_text
    return calls


def _answered(call: Any, output: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call.call_id, "output": output}


def plain(base_url: str, task: Task, talk: Talk) -> None:
    """One request after the other."""
    request = _begin(task, talk)
    with _client(base_url) as client:
        while talk.final is None:
            for call in _said(talk, client.responses.create(input=talk.messages, **request)):
                talk.messages.append(_answered(call, talk.use_now(call.name, call.arguments, call.call_id)))


async def asynchronous(base_url: str, task: Task, talk: Talk) -> None:
    """Tool calls side by side."""
    request = _begin(task, talk)
    async with _async_client(base_url) as client:
        while talk.final is None:
            await _use_all(talk, _said(talk, await client.responses.create(input=talk.messages, **request)))


async def _use_all(talk: Talk, calls: list[Any]) -> None:
    texts = await asyncio.gather(*(talk.use(c.name, c.arguments, c.call_id) for c in calls))
    talk.messages += [_answered(call, text) for call, text in zip(calls, texts, strict=True)]


def streamed(base_url: str, task: Task, talk: Talk) -> None:
    """Events as they come; the last one has the whole response."""
    request = _begin(task, talk)
    with _client(base_url) as client:
        while talk.final is None:
            for event in client.responses.create(input=talk.messages, stream=True, **request):
                if event.type == "response.completed":
                    for call in _said(talk, event.response):
                        talk.messages.append(_answered(call, talk.use_now(call.name, call.arguments, call.call_id)))


async def streamed_asynchronous(base_url: str, task: Task, talk: Talk) -> None:
    """Events as they come, tool calls side by side."""
    request = _begin(task, talk)
    async with _async_client(base_url) as client:
        while talk.final is None:
            calls: list[Any] = []
            async for event in await client.responses.create(input=talk.messages, stream=True, **request):
                if event.type == "response.completed":
                    calls = _said(talk, event.response)
            await _use_all(talk, calls)


LOOPS: Final = {"plain": plain, "async": asynchronous, "stream": streamed, "astream": streamed_asynchronous}

if __name__ == "__main__":
    main(LOOPS)
