"""The weather scenario with Google's Agent Development Kit and its own telemetry, content on spans."""

import asyncio
import os

os.environ.setdefault("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")

from opentelemetry import _logs, trace
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider, logs = TracerProvider(), LoggerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
trace.set_tracer_provider(provider)
_logs.set_logger_provider(logs)

from google.adk.agents import LlmAgent  # noqa: E402
from google.adk.plugins.base_plugin import BasePlugin  # noqa: E402
from google.adk.runners import InMemoryRunner  # noqa: E402
from google.genai import types  # noqa: E402

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}


def get_weather(city: str) -> dict[str, object]:
    """The weather of a city."""
    return WEATHER[city]


def get_alerts(city: str) -> dict[str, object]:
    """The alerts of a city."""
    raise RuntimeError("alert service unavailable")


class TellsErrors(BasePlugin):
    """Tells the model of a tool's failure, which would end the run otherwise."""

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
logs.shutdown()
provider.shutdown()
