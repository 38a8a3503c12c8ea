"""Microsoft Agent Framework: an agent with four plain tools and another agent behind a fifth, over both model APIs."""

import asyncio
import json
import sys

from agent_framework import Agent, tool
from models import client
from toolbox import get_alerts, get_time, get_weather, roll


async def run(mode: str, question: str) -> str:
    way, _, api = mode.partition("-")
    specialist = Agent(client(api), "You know about umbrellas.", name="specialist")

    @tool
    async def ask_specialist(question: str) -> str:
        """Ask the specialist."""
        return (await specialist.run(question)).text

    tools = [*map(tool, (get_weather, get_time, roll, get_alerts)), ask_specialist]
    agent = Agent(client(api), "You are a weather assistant.", name="weather", tools=tools)
    if way == "async":
        return (await agent.run(question)).text
    stream = agent.run(question, stream=True)
    async for _ in stream:
        pass
    return (await stream.get_final_response()).text


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": asyncio.run(run(mode, "What is the weather?"))}), flush=True)
