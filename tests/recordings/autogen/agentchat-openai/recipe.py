"""The weather scenario with a team of one AutoGen AgentChat assistant, and OpenTelemetry's instrumentation of the OpenAI client beside."""

import asyncio
import os

os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import SingleThreadedAgentRuntime
from autogen_ext.models.openai import OpenAIChatCompletionClient
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
OpenAIInstrumentor().instrument(tracer_provider=provider)

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}


async def get_weather(city: str) -> dict:
    """The weather of a city."""
    return WEATHER[city]


async def get_alerts(city: str) -> dict:
    """The alerts of a city."""
    raise RuntimeError("alert service unavailable")


async def team() -> None:
    client = OpenAIChatCompletionClient(model="gpt-4o-mini")
    weather = AssistantAgent(
        "weather",
        model_client=client,
        system_message="You are a weather assistant.",
        tools=[get_weather, get_alerts],
        max_tool_iterations=5,
    )
    runtime = SingleThreadedAgentRuntime(tracer_provider=provider)
    runtime.start()
    chat = RoundRobinGroupChat([weather], termination_condition=TextMentionTermination("could not be read"), runtime=runtime)
    await chat.run(task="What is the weather in Paris and in Oslo?")
    await runtime.stop()
    await client.close()


async def main() -> None:
    with provider.get_tracer("app").start_as_current_span("weather team"):
        await team()


asyncio.run(main())
provider.shutdown()
