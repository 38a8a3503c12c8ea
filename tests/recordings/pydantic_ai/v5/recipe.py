"""The weather scenario with pydantic-ai and its own telemetry. A tool that fails with anything but ``ModelRetry`` would end the run."""

import os

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}
VERSION = int(os.environ.get("INSTRUMENTATION_VERSION", "5"))

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
Agent.instrument_all(InstrumentationSettings(tracer_provider=provider, version=VERSION))
agent = Agent(OpenAIChatModel("gpt-4o-mini"), name="weather", system_prompt="You are a weather assistant.")


@agent.tool_plain
def get_weather(city: str) -> dict[str, object]:
    """The weather of a city."""
    return WEATHER[city]


@agent.tool_plain
def get_alerts(city: str) -> dict[str, object]:
    """The alerts of a city."""
    raise ModelRetry("alert service unavailable")


agent.run_sync("What is the weather in Paris and in Oslo?")
provider.shutdown()
