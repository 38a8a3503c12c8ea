"""A shorter weather scenario with DSPy's ReAct, whose model asks for tools in its text, and OpenInference's instrumentation of it."""

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


from openinference.instrumentation.dspy import DSPyInstrumentor

DSPyInstrumentor().instrument(tracer_provider=provider)
import dspy

dspy.configure(lm=dspy.LM("openai/gpt-4o-mini", api_base=os.environ["OPENAI_BASE_URL"], api_key="a-key", cache=False))


def weather(city: str) -> dict:
    """The weather of a city."""
    return WEATHER[city]


class Asked(dspy.Signature):
    """Tell the weather."""

    question: str = dspy.InputField()
    answer: str = dspy.OutputField()


print(dspy.ReAct(Asked, tools=[get_weather, get_alerts])(question="What is the weather in Paris and in Oslo?"))
provider.shutdown()
