"""Pydantic AI: every way of reading a run as it goes, to its end and not."""

import asyncio
import json
import sys

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from toolbox import get_time, get_weather

agent = Agent(OpenAIChatModel("gpt-4o-mini"), name="weather", instructions="Be short.", tools=[get_weather, get_time])


async def texts() -> object:
    async with agent.run_stream("texts") as run:
        return [text async for text in run.stream_text(delta=True, debounce_by=None)]


async def nodes() -> object:
    async with agent.iter("nodes") as run:
        seen = [type(node).__name__ async for node in run]
    assert run.result is not None
    return [seen, run.result.output]


async def events() -> object:
    seen = []
    async with agent.run_stream_events("events") as stream:
        async for event in stream:
            seen.append(type(event).__name__)
            result = event
    return [seen, result.result.output]


async def handler() -> object:
    seen: list[str] = []

    async def handle(_: object, stream: object) -> None:
        seen.extend([type(event).__name__ async for event in stream])

    result = await agent.run("handler", event_stream_handler=handle)
    return [seen, result.output]


async def left() -> object:
    async with agent.run_stream("left") as run:
        async for text in run.stream_text(debounce_by=None):
            return text
    return None


async def main() -> None:
    for mode in sys.argv[1:]:
        print(json.dumps({"mode": mode, "output": await globals()[mode]()}), flush=True)


asyncio.run(main())
