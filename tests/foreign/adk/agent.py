"""Google's Agent Development Kit with Gemini, recorded by its own instrumentation."""

import asyncio
import os
import sys

os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.genai import types
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from toolbox import get_alerts, get_weather

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)


def failed(tool: object, args: object, tool_context: object, error: Exception) -> dict:
    return {"failed": str(error)}


agent = LlmAgent(
    name="weather",
    model="gemini-2.5-flash",
    instruction="You are a weather assistant.",
    tools=[get_weather, get_alerts],
    on_tool_error_callback=failed,
)


async def main() -> None:
    runner = InMemoryRunner(agent, app_name="weather")
    session = await runner.session_service.create_session(app_name="weather", user_id="ana")
    asked = types.Content(role="user", parts=[types.Part(text=sys.argv[1])])
    said = [event async for event in runner.run_async(user_id="ana", session_id=session.id, new_message=asked)]
    print(said[-1].content.parts[-1].text)


asyncio.run(main())
provider.shutdown()
