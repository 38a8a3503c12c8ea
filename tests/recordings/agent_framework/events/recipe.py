"""The weather scenario with an agent of the Microsoft Agent Framework, its content in log events of the conventions 1.36."""

import asyncio
import os

os.environ["ENABLE_SENSITIVE_DATA"] = "true"
os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "http"

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient
from opentelemetry import _logs, trace
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
logs = LoggerProvider()
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
_logs.set_logger_provider(logs)

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}


def get_weather(city: str) -> dict:
    """The weather of a city."""
    return WEATHER[city]


def get_alerts(city: str) -> dict:
    """The alerts of a city."""
    raise RuntimeError("alert service unavailable")


async def main() -> None:
    agent = Agent(
        client=OpenAIChatCompletionClient(model="gpt-4o-mini"),
        name="weather",
        instructions="You are a weather assistant.",
        tools=[get_weather, get_alerts],
    )
    await agent.run("What is the weather in Paris and in Oslo?", session=agent.create_session(session_id="session-1"))


asyncio.run(main())
provider.shutdown()
logs.shutdown()
