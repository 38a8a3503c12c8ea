"""The weather scenario with Google's ADK and OpenInference's instrumentation of it, by which all model calls write to one span."""

import asyncio

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


from openinference.instrumentation.google_adk import GoogleADKInstrumentor

GoogleADKInstrumentor().instrument(tracer_provider=provider)
from google.adk.agents import LlmAgent
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.genai import types


class TellsErrors(BasePlugin):
    async def on_tool_error_callback(self, *, tool, tool_args, tool_context, error):
        return {"error": str(error)}


agent = LlmAgent(
    name="weather",
    model="gemini-2.5-flash",
    description="Tells the weather.",
    instruction="You are a weather assistant.",
    tools=[get_weather, get_alerts],
)


async def main() -> None:
    runner = InMemoryRunner(agent=agent, app_name="weather", plugins=[TellsErrors(name="tells_errors")])
    await runner.session_service.create_session(app_name="weather", user_id="user-1", session_id="session-1")
    asked = types.Content(role="user", parts=[types.Part(text="What is the weather in Paris and in Oslo?")])
    async for _ in runner.run_async(user_id="user-1", session_id="session-1", new_message=asked):
        pass


asyncio.run(main())
provider.shutdown()
