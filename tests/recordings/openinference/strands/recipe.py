"""The weather scenario with Strands Agents, whose spans OpenInference's processor makes its own."""

import os

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
trace.set_tracer_provider(provider)

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}


def get_weather(city: str) -> dict:
    """The weather of a city."""
    return WEATHER[city]


def get_alerts(city: str) -> dict:
    """The alerts of a city."""
    raise RuntimeError("alert service unavailable")


from openinference.instrumentation.strands_agents import StrandsAgentsToOpenInferenceProcessor

provider.add_span_processor(StrandsAgentsToOpenInferenceProcessor())
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
from strands import Agent, tool
from strands.models.openai import OpenAIModel

agent = Agent(
    model=OpenAIModel(client_args={"api_key": "a-key", "base_url": os.environ["OPENAI_BASE_URL"]}, model_id="gpt-4o-mini"),
    name="weather",
    system_prompt="You are a weather assistant.",
    tools=[tool(get_weather), tool(get_alerts)],
    callback_handler=None,
)
print(agent("What is the weather in Paris and in Oslo?"))
provider.shutdown()
