"""The weather scenario with pydantic-ai and Logfire, which sends a copy of every span when it starts, and a remark that is no span."""

import logfire
from logfire._internal.tracer import PendingSpanProcessor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.openai import OpenAIChatModel

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}

# Spans go where the environment says; the copies are what Logfire adds for its own back end.
exporting = BatchSpanProcessor(OTLPSpanExporter())
copies = PendingSpanProcessor(RandomIdGenerator(), exporting)
logfire.configure(send_to_logfire=False, console=False, service_name="weather", additional_span_processors=[copies])
logfire.instrument_pydantic_ai()
agent = Agent(OpenAIChatModel("gpt-4o-mini"), name="weather", system_prompt="You are a weather assistant.")


@agent.tool_plain
def get_weather(city: str) -> dict[str, object]:
    """The weather of a city."""
    logfire.info("asked for {city}", city=city)
    return WEATHER[city]


@agent.tool_plain
def get_alerts(city: str) -> dict[str, object]:
    """The alerts of a city."""
    raise ModelRetry("alert service unavailable")


with logfire.span("a day's work"):
    agent.run_sync("What is the weather in Paris and in Oslo?")
logfire.shutdown()
exporting.shutdown()
