"""litellm: a loop of one's own around a model, with plain tools and another agent behind a fifth."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks GitHub for prices when it is imported

import litellm
from toolbox import get_alerts, get_time, get_weather, roll

from spanreplay.instrumentation import agent_run, tool

MODEL = {"model": "openai/gpt-4o-mini", "api_key": "a-key", "api_base": os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")}


def described(function: Callable[..., Any]) -> dict[str, Any]:
    names = [name for name in function.__annotations__ if name != "return"]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}
    return {"type": "function", "function": {"name": function.__name__, "description": function.__doc__, "parameters": schema}}


@tool
async def ask_specialist(question: str) -> str:
    """Ask the specialist."""
    with agent_run("specialist", input=question) as run:
        run.output = await complete([{"role": "user", "content": question}], "async", [])
        return str(run.output)


TOOLS = [*map(tool, (get_weather, get_time, roll, get_alerts)), ask_specialist]


async def ask(messages: list[dict[str, Any]], way: str, tools: list[Any]) -> Any:
    given: dict[str, Any] = {**MODEL, "messages": messages} | ({"tools": [described(each) for each in tools]} if tools else {})
    if way == "sync":
        return litellm.completion(**given).choices[0].message
    if way == "async":
        return (await litellm.acompletion(**given)).choices[0].message
    chunks = [chunk async for chunk in await litellm.acompletion(stream=True, **given)]
    return litellm.stream_chunk_builder(chunks, messages=messages).choices[0].message


async def complete(messages: list[dict[str, Any]], way: str, tools: list[Any]) -> str:
    by_name = {each.__name__: each for each in tools}

    async def run(call: Any) -> dict[str, Any]:
        try:
            result = by_name[call.function.name](**json.loads(call.function.arguments))
            text = await result if asyncio.iscoroutine(result) else result
        except RuntimeError as error:
            text = str(error)
        return {"role": "tool", "tool_call_id": call.id, "content": text}

    while True:
        message = await ask(messages, way, tools)
        if not message.tool_calls:
            return str(message.content)
        calls = [
            {"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}}
            for c in message.tool_calls
        ]
        messages = [*messages, {"role": "assistant", "content": message.content, "tool_calls": calls}]
        messages += await asyncio.gather(*[run(call) for call in message.tool_calls])


async def answer(way: str) -> str:
    question = "What is the weather?"
    with agent_run("weather", input=question) as run:
        run.output = await complete([{"role": "user", "content": question}], way, TOOLS)
        return str(run.output)


async def main() -> None:
    for mode in sys.argv[1:]:  # in one event loop: litellm keeps its clients
        print(json.dumps({"mode": mode, "output": await answer(mode)}), flush=True)


asyncio.run(main())
