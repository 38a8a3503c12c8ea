"""Pydantic AI: an agent with four plain tools and another agent behind a fifth."""

import asyncio
import json
import sys

from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.models.openai import OpenAIChatModel
from toolbox import get_alerts, get_time, get_weather, roll

model = OpenAIChatModel("gpt-4o-mini")
specialist = Agent(model, name="specialist", instructions="You know about umbrellas.")
agent = Agent(model, name="weather", instructions="You are a weather assistant.", tools=[get_weather, get_time, roll], retries=2)


@agent.tool_plain(name="get_alerts")
def alerts(city: str) -> str:
    """Get the weather alerts of a city."""
    try:
        return get_alerts(city)
    except RuntimeError as error:
        raise ModelRetry(str(error)) from error


@agent.tool_plain
async def ask_specialist(question: str) -> str:
    """Ask the specialist."""
    return (await specialist.run(question)).output


def sync(question: str) -> str:
    return agent.run_sync(question).output


async def asynchronous(question: str) -> str:
    return (await agent.run(question)).output


async def stream(question: str) -> str:
    async with agent.run_stream(question) as run:
        return await run.get_output()


loop = asyncio.new_event_loop()  # one for all: releases before 2.0 keep a client that is bound to its loop
asyncio.set_event_loop(loop)
MODES = {"sync": sync, "async": lambda q: loop.run_until_complete(asynchronous(q)), "stream": lambda q: loop.run_until_complete(stream(q))}
for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": MODES[mode]("What is the weather?")}), flush=True)
