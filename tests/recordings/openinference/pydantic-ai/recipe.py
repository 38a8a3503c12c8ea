"""The weather scenario with pydantic-ai, to whose spans OpenInference's processor adds its own attributes."""

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


from openinference.instrumentation.pydantic_ai import OpenInferenceSpanProcessor

provider.add_span_processor(OpenInferenceSpanProcessor())
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel


def get_alerts(city: str) -> dict:
    """The alerts of a city."""
    raise ModelRetry("alert service unavailable")


Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))
agent = Agent(OpenAIChatModel("gpt-4o-mini"), name="weather", system_prompt="You are a weather assistant.", tools=[get_weather, get_alerts])
agent.run_sync("What is the weather in Paris and in Oslo?")
provider.shutdown()
