"""The weather scenario with the OpenAI Agents SDK, which uses the Responses API, and OpenLLMetry's instrumentation of it.

A front desk hands over to the weather agent first.
"""

import asyncio

from agents import Agent, Runner, function_tool, set_trace_processors
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

set_trace_processors([])  # the SDK would send traces to OpenAI as well
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)

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

asyncio.run(Runner.run(desk, "What is the weather in Paris and in Oslo?"))
provider.shutdown()
