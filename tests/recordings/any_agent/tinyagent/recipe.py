"""The weather scenario with any-agent's own framework and its own telemetry."""

import os
from pathlib import Path

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
if "AS_TRACE" not in os.environ:
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)

from any_agent import AgentConfig, AnyAgent  # noqa: E402

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}


def get_weather(city: str) -> dict[str, object]:
    """The weather of a city."""
    return WEATHER[city]


def get_alerts(city: str) -> dict[str, object]:
    """The alerts of a city."""
    raise RuntimeError("alert service unavailable")


agent = AnyAgent.create(
    "tinyagent",
    AgentConfig(
        name="weather",
        model_id="openai:gpt-4o-mini",
        api_base=os.environ["OPENAI_BASE_URL"],
        instructions="You are a weather assistant.",
        tools=[get_weather, get_alerts],
    ),
)
told = agent.run("What is the weather in Paris and in Oslo?")
if "AS_TRACE" in os.environ:
    Path(os.environ["RECORDING_FILE"]).write_text(told.model_dump_json(indent=1) + "\n", encoding="utf-8")
provider.shutdown()
