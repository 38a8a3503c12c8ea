"""Strands with its own spans switched on: still one step for each call."""

import asyncio
import json

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from strands import Agent, tool
from strands.models.openai import OpenAIModel
from toolbox import get_weather

trace.set_tracer_provider(TracerProvider())
model = OpenAIModel(model_id="gpt-4o-mini")
specialist = Agent(model=model, name="specialist", tools=[tool(get_weather)], callback_handler=None)
agent = Agent(model=model, name="weather", tools=[specialist.as_tool(name="ask_specialist")], callback_handler=None)
print(json.dumps({"mode": "async", "output": str(asyncio.run(agent.invoke_async("How is it?"))).strip()}))
