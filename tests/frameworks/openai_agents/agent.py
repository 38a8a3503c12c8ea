"""OpenAI Agents SDK: an agent with four plain tools and another agent behind a fifth, over both model APIs."""

import asyncio
import functools
import json
import sys

from agents import Agent, Runner, function_tool
from models import model
from toolbox import get_alerts, get_time, get_weather, roll


@functools.cache
def weather(api: str, way: str) -> Agent:
    specialist = Agent(name="specialist", instructions="You know about umbrellas.", model=model(api))

    async def ask_specialist(question: str) -> str:
        """Ask the specialist."""
        return str((await Runner.run(specialist, question)).final_output)

    tools = [function_tool(function) for function in (get_weather, get_time, roll, get_alerts, ask_specialist)]
    return Agent(name="weather", instructions="You are a weather assistant.", model=model(api), tools=tools)


async def asynchronous(agent: Agent, question: str) -> str:
    return str((await Runner.run(agent, question)).final_output)


async def stream(agent: Agent, question: str) -> str:
    result = Runner.run_streamed(agent, question)
    async for _ in result.stream_events():
        pass
    return str(result.final_output)


def run(mode: str, runner: asyncio.Runner) -> str:
    way, _, api = mode.partition("-")
    agent, question = weather(api, way), "What is the weather?"
    if way == "sync":
        return str(Runner.run_sync(agent, question).final_output)
    return runner.run({"async": asynchronous, "stream": stream}[way](agent, question))


with asyncio.Runner() as runner:  # one event loop: the model's HTTP client is kept for all runs
    for mode in sys.argv[1:]:
        print(json.dumps({"mode": mode, "output": run(mode, runner)}), flush=True)
