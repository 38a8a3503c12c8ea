"""Agno: a run with a limit of time, one of whose two tools never ends, and a stream that is left after a call."""

import asyncio
import json
import sys

from agent import model
from agno.agent import Agent
from toolbox import get_weather, wait_for_ever


def agent() -> Agent:
    return Agent(name="weather", model=model("chat"), tools=[get_weather, wait_for_ever], telemetry=False)


async def limited() -> str:
    try:
        async with asyncio.timeout(4):
            return str((await agent().arun("What is the weather?")).content)
    except TimeoutError:
        return "too late"


async def left() -> str:
    events = agent().arun("What is the weather?", stream=True, stream_events=True)
    async for event in events:
        if event.event == "ToolCallCompleted":
            break
    await events.aclose()
    return str(event.tool.result)


async def main() -> None:
    for mode in sys.argv[1:]:
        print(json.dumps({"mode": mode, "output": await {"limited": limited, "left": left}[mode]()}), flush=True)


asyncio.run(main())
