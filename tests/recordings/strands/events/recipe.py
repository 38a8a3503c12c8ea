"""The weather scenario with Strands Agents and its own telemetry, whose content is in span events by default."""

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)

from strands import Agent, tool  # noqa: E402
from strands.models.openai import OpenAIModel  # noqa: E402

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}


@tool
def get_weather(city: str) -> dict:
    """The weather of a city."""
    return {"status": "success", "content": [{"json": WEATHER[city]}]}


@tool
def get_alerts(city: str) -> dict:
    """The alerts of a city."""
    raise RuntimeError("alert service unavailable")


agent = Agent(
    name="weather",
    model=OpenAIModel(model_id="gpt-4o-mini"),
    tools=[get_weather, get_alerts],
    system_prompt="You are a weather assistant.",
    trace_attributes={"session.id": "session-1"},
    callback_handler=None,
)
agent("What is the weather in Paris and in Oslo?")
provider.shutdown()
