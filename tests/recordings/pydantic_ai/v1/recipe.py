"""The weather scenario with an old pydantic-ai, whose messages are events in an attribute, or log records."""

import os

from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._events import EventLoggerProvider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIModel

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}

provider, logs = TracerProvider(), LoggerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
Agent.instrument_all(
    InstrumentationSettings(
        event_mode=os.environ.get("EVENT_MODE", "attributes"), tracer_provider=provider, event_logger_provider=EventLoggerProvider(logs)
    )
)
agent = Agent(OpenAIModel("gpt-4o-mini"), name="weather", system_prompt="You are a weather assistant.")


@agent.tool_plain
def get_weather(city: str) -> dict[str, object]:
    """The weather of a city."""
    return WEATHER[city]


@agent.tool_plain
def get_alerts(city: str) -> dict[str, object]:
    """The alerts of a city."""
    raise ModelRetry("alert service unavailable")


agent.run_sync("What is the weather in Paris and in Oslo?")
logs.shutdown()
provider.shutdown()
