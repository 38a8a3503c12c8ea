"""One agent hands over to another in a swarm of Strands Agents, with its own telemetry, content in span events."""

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)

from strands import Agent, tool  # noqa: E402
from strands.models.openai import OpenAIModel  # noqa: E402
from strands.multiagent import Swarm  # noqa: E402


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return "4 °C and rain"


def agent(name: str, *tools: object) -> Agent:
    return Agent(name=name, model=OpenAIModel(model_id="gpt-4o-mini"), tools=list(tools), callback_handler=None)


Swarm([agent("desk"), agent("forecaster", get_weather)])("What is the weather in Oslo?")
provider.shutdown()
