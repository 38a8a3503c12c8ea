"""Strands: an agent with four plain tools and another agent behind a fifth."""

import asyncio
import json
import sys

from strands import Agent, tool
from strands.models.openai import OpenAIModel
from toolbox import get_alerts, get_time, get_weather, roll

model = OpenAIModel(model_id="gpt-4o-mini")


@tool
async def ask_specialist(question: str) -> str:
    """Ask the specialist."""
    specialist = Agent(model=model, name="specialist", system_prompt="You know about umbrellas.", callback_handler=None)
    return str(await specialist.invoke_async(question)).strip()


def agent() -> Agent:
    tools = [tool(function) for function in (get_weather, get_time, roll, get_alerts)]
    return Agent(
        model=model, name="weather", system_prompt="You are a weather assistant.", tools=[*tools, ask_specialist], callback_handler=None
    )


async def stream(question: str) -> str:
    texts = [event["data"] async for event in agent().stream_async(question) if "data" in event]
    return "".join(texts)


MODES = {
    "sync": lambda q: str(agent()(q)).strip(),
    "async": lambda q: str(asyncio.run(agent().invoke_async(q))).strip(),
    "stream": lambda q: asyncio.run(stream(q)),
}
for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": MODES[mode]("What is the weather?")}), flush=True)
