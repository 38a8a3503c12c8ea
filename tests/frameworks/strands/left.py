"""Strands: a run with a limit of time, one of whose two tools never ends."""

import asyncio
import json

from strands import Agent, tool
from strands.models.openai import OpenAIModel
from toolbox import get_weather, wait_for_ever


async def main() -> None:
    tools = [tool(get_weather), tool(wait_for_ever)]
    agent = Agent(model=OpenAIModel(model_id="gpt-4o-mini"), name="weather", tools=tools, callback_handler=None)
    try:
        async with asyncio.timeout(4):
            said = str(await agent.invoke_async("What is the weather?"))
    except TimeoutError:
        said = "too late"
    print(json.dumps({"mode": "limited", "output": said}), flush=True)


asyncio.run(main())
