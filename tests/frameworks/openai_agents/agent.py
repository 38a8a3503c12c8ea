"""OpenAI Agents SDK: an agent with four plain tools and another agent behind a fifth, over both model APIs."""

import asyncio
import json
import sys

from agents import Agent, Runner, function_tool
from models import model
from toolbox import get_alerts, get_time, get_weather, roll


def weather(api: str) -> Agent:
    specialist = Agent(name="specialist", instructions="You know about umbrellas.", model=model(api))

    async def ask_specialist(question: str) -> str:
        """Ask the specialist."""
        return str((await Runner.run(specialist, question)).final_output)

    tools = [function_tool(function) for function in (get_weather, get_time, roll, get_alerts, ask_specialist)]
    return Agent(name="weather", instructions="You are a weather assistant.", model=model(api), tools=tools)


async def asynchronous(api: str, question: str) -> str:
    return str((await Runner.run(weather(api), question)).final_output)


async def stream(api: str, question: str) -> str:
    result = Runner.run_streamed(weather(api), question)
    async for _ in result.stream_events():
        pass
    return str(result.final_output)


def run(mode: str) -> str:
    way, _, api = mode.partition("-")
    question = "What is the weather?"
    if way == "sync":
        return str(Runner.run_sync(weather(api), question).final_output)
    return asyncio.run({"async": asynchronous, "stream": stream}[way](api, question))


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": run(mode)}), flush=True)
