"""The weather scenario with smolagents and OpenInference's instrumentation of it. The answer is a call of the tool ``final_answer``."""

from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
SmolagentsInstrumentor().instrument(tracer_provider=provider)

from smolagents import OpenAIServerModel, ToolCallingAgent, tool  # noqa: E402

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}


@tool
def get_weather(city: str) -> dict:
    """The weather of a city.

    Args:
        city: The city.
    """
    return WEATHER[city]


@tool
def get_alerts(city: str) -> dict:
    """The alerts of a city.

    Args:
        city: The city.
    """
    raise RuntimeError("alert service unavailable")


PROMPTS = {  # in place of those that the framework ships
    "system_prompt": "You are a weather assistant. You give your answer with the tool final_answer.",
    "planning": {"initial_plan": "", "update_plan_pre_messages": "", "update_plan_post_messages": ""},
    "managed_agent": {"task": "", "report": ""},
    "final_answer": {"pre_messages": "", "post_messages": ""},
}

agent = ToolCallingAgent(
    tools=[get_weather, get_alerts], model=OpenAIServerModel("gpt-4o-mini"), prompt_templates=PROMPTS, verbosity_level=0
)
agent.run("What is the weather in Paris and in Oslo?")
provider.shutdown()
