"""The weather scenario with a crew of one agent of CrewAI, and OpenInference's instrumentations of it and of its client."""

import os

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}


def get_weather(city: str) -> dict:
    """The weather of a city."""
    return WEATHER[city]


def get_alerts(city: str) -> dict:
    """The alerts of a city."""
    raise RuntimeError("alert service unavailable")


os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
from openinference.instrumentation.crewai import CrewAIInstrumentor
from openinference.instrumentation.openai import OpenAIInstrumentor

CrewAIInstrumentor().instrument(tracer_provider=provider)
OpenAIInstrumentor().instrument(tracer_provider=provider)
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

llm = LLM(model="openai/gpt-4o-mini", base_url=os.environ["OPENAI_BASE_URL"], api_key="a-key")
agent = Agent(
    role="weather",
    goal="Tell the weather.",
    backstory="You are a weather assistant.",
    llm=llm,
    tools=[tool("get_weather")(get_weather), tool("get_alerts")(get_alerts)],
)
task = Task(description="What is the weather in Paris and in Oslo?", expected_output="The weather.", agent=agent)
print(Crew(agents=[agent], tasks=[task]).kickoff())
provider.shutdown()
