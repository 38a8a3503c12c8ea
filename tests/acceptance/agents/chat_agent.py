"""An agent on OpenAI chat completions: plain, asynchronous and streamed loops."""

import asyncio
from typing import Any, Final

from openai import AsyncOpenAI, OpenAI

from acceptance.agents.toolbox import Talk, Task, description, main, parameters

MODEL: Final = "gpt-4o-mini"


def _client(base_url: str) -> Any:
    return OpenAI(base_url=f"{base_url}/v1", api_key="sk-test", max_retries=0)


def _async_client(base_url: str) -> Any:
    return AsyncOpenAI(base_url=f"{base_url}/v1", api_key="sk-test", max_retries=0)


def _begin(task: Task, talk: Talk) -> dict[str, Any]:
    talk.messages = [{"role": "system", "content": task.system}, {"role": "user", "content": task.question}]
    return {
        "model": MODEL,
        "tools": [
            {"type": "function", "function": {"name": n, "description": description(n), "parameters": parameters(n)}} for n in task.tools
        ],
    }


def _said(talk: Talk, message: dict[str, Any]) -> list[dict[str, Any]]:
    """Note the model's message; returns the tool calls in it."""
    talk.messages.append(message)
    calls: list[dict[str, Any]] = message.get("tool_calls") or []
    if not calls:
        talk.final = message["content"]
    return calls


def _answered(call: dict[str, Any], content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call["id"], "content": content}


class _Gathered:
    """Puts the chunks of a stream together."""

    def __init__(self) -> None:
        self._content: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}

    def add(self, chunk: Any) -> None:
        for choice in chunk.choices:
            if choice.delta.content:
                self._content.append(choice.delta.content)
            for part in choice.delta.tool_calls or ():
                call = self._calls.setdefault(part.index, {"id": part.id, "type": "function", "function": {"name": "", "arguments": ""}})
                call["function"]["name"] += part.function.name or ""
                call["function"]["arguments"] += part.function.arguments or ""

    def message(self) -> dict[str, Any]:
        made: dict[str, Any] = {"role": "assistant", "content": "".join(self._content) or None}
        if self._calls:
            made["tool_calls"] = [self._calls[index] for index in sorted(self._calls)]
        return made


def plain(base_url: str, task: Task, talk: Talk) -> None:
    """One request after the other."""
    request = _begin(task, talk)
    with _client(base_url) as client:
        while talk.final is None:
            reply = client.chat.completions.create(messages=talk.messages, **request)
            for call in _said(talk, reply.choices[0].message.model_dump(exclude_none=True)):
                talk.messages.append(_answered(call, talk.use_now(call["function"]["name"], call["function"]["arguments"], call["id"])))


async def asynchronous(base_url: str, task: Task, talk: Talk) -> None:
    """Tool calls side by side."""
    request = _begin(task, talk)
    async with _async_client(base_url) as client:
        while talk.final is None:
            reply = await client.chat.completions.create(messages=talk.messages, **request)
            await _use_all(talk, _said(talk, reply.choices[0].message.model_dump(exclude_none=True)))


async def _use_all(talk: Talk, calls: list[dict[str, Any]]) -> None:
    texts = await asyncio.gather(*(talk.use(c["function"]["name"], c["function"]["arguments"], c["id"]) for c in calls))
    talk.messages += [_answered(call, text) for call, text in zip(calls, texts, strict=True)]


def streamed(base_url: str, task: Task, talk: Talk) -> None:
    """The model's words as they come."""
    request = _begin(task, talk)
    with _client(base_url) as client:
        while talk.final is None:
            gathered = _Gathered()
            for chunk in client.chat.completions.create(messages=talk.messages, stream=True, **request):
                gathered.add(chunk)
            for call in _said(talk, gathered.message()):
                talk.messages.append(_answered(call, talk.use_now(call["function"]["name"], call["function"]["arguments"], call["id"])))


async def streamed_asynchronous(base_url: str, task: Task, talk: Talk) -> None:
    """The model's words as they come, tool calls side by side."""
    request = _begin(task, talk)
    async with _async_client(base_url) as client:
        while talk.final is None:
            gathered = _Gathered()
            async for chunk in await client.chat.completions.create(messages=talk.messages, stream=True, **request):
                gathered.add(chunk)
            await _use_all(talk, _said(talk, gathered.message()))


LOOPS: Final = {"plain": plain, "async": asynchronous, "stream": streamed, "astream": streamed_asynchronous}

if __name__ == "__main__":
    main(LOOPS)
