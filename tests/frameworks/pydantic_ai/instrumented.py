"""Pydantic AI with its own instrumentation switched on: still one step for each call."""

import asyncio
import json
import logging

from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel
from toolbox import get_time, get_weather

logging.disable()
Agent.instrument_all(InstrumentationSettings(tracer_provider=TracerProvider()))
model = OpenAIChatModel("gpt-4o-mini")
specialist = Agent(model, name="specialist", tools=[get_time])
agent = Agent(model, name="weather", instructions="You are a weather assistant.", tools=[get_weather])


@agent.tool_plain
async def ask_specialist(question: str) -> str:
    """Ask the specialist."""
    return (await specialist.run(question)).output


async def main() -> None:
    plain = await agent.run("How is it?")
    print(json.dumps({"mode": "plain", "output": plain.output}), flush=True)
    async with agent.run_stream("Streamed?") as run:
        print(json.dumps({"mode": "stream", "output": await run.get_output()}), flush=True)


asyncio.run(main())
