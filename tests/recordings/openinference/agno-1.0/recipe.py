"""The weather scenario with Agno and OpenInference's instrumentation of it."""

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))

from openinference.instrumentation.agno import AgnoInstrumentor  # noqa: E402 (it is to be there before the framework)

AgnoInstrumentor().instrument(tracer_provider=provider)

from agno.agent import Agent  # noqa: E402
from agno.models.openai import OpenAIChat  # noqa: E402

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}


def get_weather(city: str) -> dict:
    """The weather in a city."""
    return WEATHER[city]


def get_alerts(city: str) -> dict:
    """The alerts in force in a city."""
    raise RuntimeError("alert service unavailable")


agent = Agent(
    name="weather",
    model=OpenAIChat(id="gpt-4o-mini"),
    tools=[get_weather, get_alerts],
    instructions="You are a weather assistant.",
    telemetry=False,
)
agent.run("What is the weather in Paris and in Oslo?")
provider.shutdown()
