"""A stream that is left after its first words, and one that is left after a tool."""

import asyncio
import json
import sys

from strands import Agent, tool
from strands.models.openai import OpenAIModel
from toolbox import get_weather


async def abandoned(mode: str) -> str:
    agent = Agent(model=OpenAIModel(model_id="gpt-4o-mini"), name="weather", tools=[tool(get_weather)], callback_handler=None)
    stream = agent.stream_async("What is the weather?")
    said = ""
    async for event in stream:
        if mode == "spoken" and event.get("data"):
            said = event["data"]
            break
        if mode == "called" and event.get("message", {}).get("role") == "user":
            said = event["message"]["content"][0]["toolResult"]["content"][0]["text"]
            break
    await stream.aclose()
    return said


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": asyncio.run(abandoned(mode))}), flush=True)
