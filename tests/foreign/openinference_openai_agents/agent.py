"""OpenAI's Agents SDK on its Responses API, recorded by OpenInference."""

import asyncio
import sys

from agents import Agent, Runner, function_tool
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from toolbox import get_alerts, get_weather

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)

agent = Agent(
    name="weather",
    model="gpt-4o-mini",
    instructions="You are a weather assistant.",
    tools=[function_tool(get_weather), function_tool(get_alerts)],
)
print(asyncio.run(Runner.run(agent, sys.argv[1])).final_output)
provider.shutdown()
