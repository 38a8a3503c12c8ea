"""The framework's own telemetry is switched on: its spans are no second step."""

import asyncio
import json

from agent_framework import Agent, tool
from agent_framework.observability import enable_instrumentation
from models import client
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from toolbox import get_weather

trace.set_tracer_provider(TracerProvider())
enable_instrumentation(enable_sensitive_data=True)

meteorologist = Agent(client("chat"), "You know the weather.", name="meteorologist", tools=[tool(get_weather)])
agent = Agent(client("chat"), "You help.", name="helper", tools=[meteorologist.as_tool(name="ask")])
print(json.dumps({"mode": "run", "output": asyncio.run(agent.run("What is the weather?")).text}), flush=True)
