"""The weather scenario with an agent of AutoGen AgentChat and OpenInference's instrumentation of it."""

import asyncio
import os

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


from openinference.instrumentation.autogen_agentchat import AutogenAgentChatInstrumentor

AutogenAgentChatInstrumentor().instrument(tracer_provider=provider)
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient


async def main() -> None:
    client = OpenAIChatCompletionClient(model="gpt-4o-mini", base_url=os.environ["OPENAI_BASE_URL"])
    agent = AssistantAgent(
        "weather", client, tools=[get_weather, get_alerts], system_message="You are a weather assistant.", max_tool_iterations=5
    )
    await agent.run(task="What is the weather in Paris and in Oslo?")


asyncio.run(main())
provider.shutdown()
