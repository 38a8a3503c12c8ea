"""The weather scenario with an agent of AG2 and the telemetry that it has itself."""

import asyncio
import os

from ag2 import Agent
from ag2.config import OpenAIConfig
from ag2.middleware.builtin.telemetry import TelemetryMiddleware
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}


def get_weather(city: str) -> dict:
    """The weather of a city."""
    return WEATHER[city]


def get_alerts(city: str) -> dict:
    """The alerts of a city."""
    raise RuntimeError("alert service unavailable")


async def main() -> None:
    agent = Agent(
        "weather",
        "You are a weather assistant.",
        config=OpenAIConfig(model="gpt-4o-mini", base_url=os.environ["OPENAI_BASE_URL"], api_key="a-key"),
        tools=[get_weather, get_alerts],
        middleware=[TelemetryMiddleware(tracer_provider=provider, agent_name="weather", capture_content=True)],
    )
    print((await agent.ask("What is the weather in Paris and in Oslo?")).body)


asyncio.run(main())
provider.shutdown()
