"""A run with a limit of time, one of whose two tools never ends, and a stream that is left after a call."""

import asyncio
import json
import sys

from agent_framework import Agent, tool
from models import client
from toolbox import get_weather, wait_for_ever


def agent() -> Agent:
    return Agent(client("chat"), "You are a weather assistant.", name="weather", tools=[tool(get_weather), tool(wait_for_ever)])


async def limited() -> str:
    try:
        async with asyncio.timeout(4):
            return (await agent().run("What is the weather?")).text
    except TimeoutError:
        return "too late"


async def left() -> str:
    async for update in agent().run("What is the weather?", stream=True):
        found = [content for content in update.contents if content.type == "function_result"]
        if found:
            return str(found[0].result)
    return "nothing"


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": asyncio.run({"limited": limited, "left": left}[mode]())}), flush=True)
