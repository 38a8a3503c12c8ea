"""One agent hands over to another, with Google's Agent Development Kit and its own telemetry, content on spans."""

import asyncio
import os

os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)

from google.adk.agents import LlmAgent  # noqa: E402
from google.adk.runners import InMemoryRunner  # noqa: E402
from google.genai import types  # noqa: E402


def get_weather(city: str) -> str:
    """The weather of a city."""
    return "4 °C and rain"


forecaster = LlmAgent(name="forecaster", model="gemini-2.5-flash", description="Tells the weather.", tools=[get_weather])
desk = LlmAgent(name="desk", model="gemini-2.5-flash", instruction="You pass questions on.", sub_agents=[forecaster])


async def main() -> None:
    runner = InMemoryRunner(agent=desk, app_name="weather")
    await runner.session_service.create_session(app_name="weather", user_id="user-1", session_id="session-1")
    asked = types.Content(role="user", parts=[types.Part(text="What is the weather in Oslo?")])
    async for _ in runner.run_async(user_id="user-1", session_id="session-1", new_message=asked):
        pass


asyncio.run(main())
provider.shutdown()
