"""The weather scenario with the OpenAI Agents SDK and Logfire's own instrumentation of it. A front desk hands over to the weather agent."""

import asyncio
import os

import logfire
from agents import Agent, Runner, function_tool, set_default_openai_api

set_default_openai_api(os.environ.get("API", "responses"))
logfire.configure(send_to_logfire=False, console=False)
logfire.instrument_openai_agents()

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}


@function_tool
def get_weather(city: str) -> dict:
    """The weather in a city."""
    return WEATHER[city]


@function_tool
def get_alerts(city: str) -> dict:
    """The alerts in force in a city."""
    raise RuntimeError("alert service unavailable")


weather = Agent(name="weather", instructions="You are a weather assistant.", model="gpt-4o-mini", tools=[get_weather, get_alerts])
desk = Agent(name="desk", instructions="Hand over.", model="gpt-4o-mini", handoffs=[weather])


async def main() -> None:
    run = Runner.run_streamed(desk, "What is the weather in Paris and in Oslo?")
    async for _ in run.stream_events():
        pass


asyncio.run(main())
logfire.shutdown()
