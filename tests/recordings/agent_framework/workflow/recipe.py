"""The weather scenario split over two agents in a workflow of the Microsoft Agent Framework, sensitive data on."""

import asyncio
import os

os.environ["ENABLE_SENSITIVE_DATA"] = "true"

from agent_framework import Agent, WorkflowBuilder
from agent_framework.openai import OpenAIChatCompletionClient
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}


def get_weather(city: str) -> dict:
    """The weather of a city."""
    return WEATHER[city]


def get_alerts(city: str) -> dict:
    """The alerts of a city."""
    raise RuntimeError("alert service unavailable")


async def main() -> None:
    client = OpenAIChatCompletionClient(model="gpt-4o-mini")
    reporter = Agent(client=client, name="reporter", instructions="You are a weather assistant.", tools=[get_weather, get_alerts])
    editor = Agent(client=client, name="editor", instructions="Make it short.")
    workflow = WorkflowBuilder(start_executor=reporter, name="bulletin").add_edge(reporter, editor).build()
    await workflow.run("What is the weather in Paris and in Oslo?")


asyncio.run(main())
provider.shutdown()
